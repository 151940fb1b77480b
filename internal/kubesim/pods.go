package kubesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// paths returns the paths of the objects of a kind, sorted.
func (c *Cluster) paths(kind string) []string {
	return c.those(func(_ string, o Object) bool { return text(o, "kind") == kind })
}

// those returns the paths of the objects of which the function says yes, sorted.
func (c *Cluster) those(are func(path string, o Object) bool) (out []string) {
	for path, o := range c.Objects {
		if are(path, o) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// startsIn is how long a pod takes to start.
const startsIn = 4 * time.Second

// settlePods creates the pods of ReplicaSets, schedules them, and removes those whose
// Node is gone.
func (c *Cluster) settlePods(now time.Time) {
	for _, path := range c.paths("Pod") {
		o := c.Objects[path]
		node := text(o, "spec", "nodeName")
		if node != "" && c.Objects["/api/v1/nodes/"+node] == nil {
			delete(c.Objects, path)
			delete(c.Dying, path)
			continue
		}
		if node == "" && c.claimed(o) {
			c.schedule(path, o, now)
		}
		if at := instant(o, "kubesim", "scheduled"); !at.IsZero() && text(o, "status", "phase") == "Pending" && now.Sub(at) >= startsIn &&
			!c.brokenPod(o) && c.withoutFiles(text(o, "metadata", "namespace"), o) == "" {
			o["status"] = Object{"phase": "Running", "conditions": []any{
				Object{"type": "PodScheduled", "status": "True"}, Object{"type": "Ready", "status": "True"},
			}}
			c.put(path, o, now)
		}
	}
	for _, path := range c.paths("ReplicaSet") {
		c.replicate(c.Objects[path], now)
	}
	for _, path := range c.paths("StatefulSet") {
		c.stateful(c.Objects[path], now)
	}
	c.settleClaims(now)
	for _, path := range c.paths("VolumeAttachment") {
		c.attach(path, now)
		c.detach(path, now)
	}
}

// schedule assigns a pod to the Node with the fewest pods, among those that accept it.
func (c *Cluster) schedule(path string, pod Object, now time.Time) {
	best, fewest := "", 0
	for _, p := range c.paths("Node") {
		node := c.Objects[p]
		cordoned, _ := value(node, "spec", "unschedulable").(bool)
		tainted := slices.ContainsFunc(list(node, "spec", "taints"), func(t Object) bool { return text(t, "effect") == "NoSchedule" })
		if cordoned || tainted || unreachable(node) || !takes(node, pod) {
			continue
		}
		name, n := text(node, "metadata", "name"), 0
		for _, o := range c.Objects {
			if text(o, "kind") == "Pod" && text(o, "spec", "nodeName") == name {
				n++
			}
		}
		if best == "" || n < fewest {
			best, fewest = name, n
		}
	}
	if best == "" {
		if condition := c.unscheduled(pod); fmt.Sprint(value(pod, "status", "conditions")) != fmt.Sprint([]any{condition}) {
			pod["status"] = Object{"phase": "Pending", "conditions": []any{condition}}
			c.put(path, pod, now)
		}
		return
	}
	pod["status"] = Object{"phase": "Pending", "conditions": []any{Object{"type": "PodScheduled", "status": "True"}}}
	spec, _ := pod["spec"].(Object)
	spec["nodeName"] = best
	pod["kubesim"] = Object{"scheduled": now.UTC().Format(time.RFC3339)}
	c.put(path, pod, now)
}

// takes reports whether a Node has room for a pod, and the labels that it demands by its nodeSelector and its affinity (GetRequiredNodeAffinity in
// k8s.io/component-helpers).
func takes(node, pod Object) bool {
	if lacks(node, pod) != "" {
		return false
	}
	labels, _ := value(node, "metadata", "labels").(Object)
	wanted, _ := value(pod, "spec", "nodeSelector").(Object)
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	terms := list(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term Object) bool {
		has := Object{"metadata.name": value(node, "metadata", "name")}
		return !isEmpty(term["matchExpressions"]) && demands(labels, list(term, "matchExpressions"), isEmpty(term["matchFields"])) ||
			!isEmpty(term["matchFields"]) && demands(has, list(term, "matchFields"), true) && demands(labels, list(term, "matchExpressions"), true)
	})
}

// demands reports whether labels meet all expressions. Gt and Lt are not simulated: they are never met.
func demands(labels Object, expressions []Object, complete bool) bool {
	return complete && !slices.ContainsFunc(expressions, func(e Object) bool {
		v, has := labels[text(e, "key")]
		values, _ := e["values"].([]any)
		switch text(e, "operator") {
		case "In":
			return !has || !slices.Contains(values, v)
		case "NotIn":
			return has && slices.Contains(values, v)
		case "Exists":
			return !has
		case "DoesNotExist":
			return has
		}
		return true
	})
}

// replicate creates the missing pods of a ReplicaSet.
func (c *Cluster) replicate(set Object, now time.Time) {
	want, _ := value(set, "spec", "replicas").(float64)
	if c.refusedPods(set) != "" {
		return
	}
	name, namespace := text(set, "metadata", "name"), text(set, "metadata", "namespace")
	have := 0.0
	for path, o := range c.Objects {
		_, dying := c.Dying[path]
		owners := list(o, "metadata", "ownerReferences")
		if text(o, "kind") == "Pod" && !dying && text(o, "metadata", "deletionTimestamp") == "" && len(owners) > 0 && text(owners[0], "name") == name {
			have++
		}
	}
	labels, _ := value(set, "spec", "template", "metadata", "labels").(Object)
	volumes, _ := value(set, "spec", "template", "spec", "volumes").([]any)
	for ; have < want; have++ {
		pod := fmt.Sprintf("%s-%d", name, c.Serial)
		c.put("/api/v1/namespaces/"+namespace+"/pods/"+pod, Object{
			"apiVersion": "v1", "kind": "Pod", "spec": Object{"volumes": volumes}, "status": Object{"phase": "Pending"},
			"metadata": Object{"name": pod, "namespace": namespace, "labels": maps.Clone(labels), "ownerReferences": []any{
				Object{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": true},
			}},
		}, now)
	}
}

// attach attaches a volume.
func (c *Cluster) attach(path string, now time.Time) {
	if o := c.Objects[path]; o["status"] == nil {
		o["status"] = Object{"attached": true}
		c.put(path, o, now)
	}
}

// detachIn is how long a volume takes to be detached after no pod uses it.
const detachIn = 6 * time.Second

// detach detaches a volume after the pod in its annotation has left the Node.
func (c *Cluster) detach(path string, now time.Time) {
	o := c.Objects[path]
	pod := text(o, "metadata", "annotations", "kubesim/pod")
	if pod == "" {
		return // no annotation: attached until the test detaches it
	}
	namespace, name, _ := strings.Cut(pod, "/")
	user := c.Objects["/api/v1/namespaces/"+namespace+"/pods/"+name]
	if _, going := c.Dying[path]; !going && text(user, "spec", "nodeName") != text(o, "spec", "nodeName") {
		c.Dying[path] = now.Add(detachIn)
	}
}

// unreachable reports whether the kubelet of a Node reports no status.
func unreachable(node Object) bool {
	return slices.ContainsFunc(list(node, "status", "conditions"), func(x Object) bool { return text(x, "type") == "Ready" && text(x, "status") == "Unknown" })
}

// Waiting reports whether a pod waits for a Node, because its claims exist and no Node takes it.
func (c *Cluster) Waiting() bool {
	return slices.ContainsFunc(c.All("Pod"), func(o Object) bool { return text(o, "spec", "nodeName") == "" && c.claimed(o) })
}
