package kubesim

import (
	"slices"
	"strings"
	"time"
)

// settleWorkloads sets the status of DaemonSets, Deployments and StatefulSets as
// kube-controller-manager does when the kubelets have started their pods (pkg/controller/daemon,
// pkg/controller/deployment, pkg/controller/statefulset of Kubernetes v1.34.2).
func (c *Cluster) settleWorkloads(now time.Time) {
	for _, path := range c.paths("DaemonSet") {
		c.progress(path, now, c.daemons)
	}
	for _, path := range c.paths("Deployment") {
		c.progress(path, now, c.replicas)
	}
	for _, path := range c.paths("StatefulSet") {
		c.progress(path, now, c.replicas)
	}
}

// progress sets the status of a workload, from the number of pods that it should have, and of those
// that are ready. It keeps the status while nothing has changed.
func (c *Cluster) progress(path string, now time.Time, count func(Object) (want, ready int)) {
	o := c.Objects[path]
	generation, _ := value(o, "metadata", "generation").(float64)
	want, ready := count(o)
	if seen, _ := value(o, "status", "observedGeneration").(float64); seen == generation && value(o, "kubesim", "want") == want &&
		value(o, "kubesim", "ready") == ready {
		return
	}
	w, r := float64(want), float64(ready)
	status := Object{"observedGeneration": generation}
	switch text(o, "kind") {
	case "DaemonSet":
		status["desiredNumberScheduled"], status["currentNumberScheduled"], status["updatedNumberScheduled"] = w, w, w
		status["numberReady"], status["numberAvailable"], status["numberMisscheduled"] = r, r, 0.0
	default:
		status["replicas"], status["updatedReplicas"], status["readyReplicas"], status["availableReplicas"] = w, w, r, r
		status["currentReplicas"], status["currentRevision"], status["updateRevision"] = w, "1", "1"
		status["conditions"] = []any{available(now, ready >= want)}
	}
	o["status"], o["kubesim"] = status, Object{"want": want, "ready": ready}
	c.put(path, o, now)
}

// available is the condition of a Deployment.
func available(now time.Time, is bool) Object {
	status, reason := "False", "MinimumReplicasUnavailable"
	if is {
		status, reason = "True", "MinimumReplicasAvailable"
	}
	return Object{"type": "Available", "status": status, "reason": reason, "lastTransitionTime": now.UTC().Format(time.RFC3339)}
}

// daemons counts the Nodes that a DaemonSet has pods on, and those that are ready to run them. Pods
// in the network of the host start before the Node is ready; no test needs that.
func (c *Cluster) daemons(o Object) (want, ready int) {
	for _, path := range c.paths("Node") {
		node := c.Objects[path]
		if !takes(node, template(o)) || !tolerated(node, template(o)) {
			continue
		}
		want++
		if !c.broken(o) && nodeReady(node) {
			ready++
		}
	}
	return want, ready
}

// replicas counts the pods of a Deployment. All of them are ready if there is a Node for them.
func (c *Cluster) replicas(o Object) (want, ready int) {
	want = 1
	if n, ok := value(o, "spec", "replicas").(float64); ok {
		want = int(n)
	}
	if c.broken(o) {
		return want, 0
	}
	for _, path := range c.paths("Node") {
		if node := c.Objects[path]; nodeReady(node) && takes(node, template(o)) && tolerated(node, template(o)) {
			return want, want
		}
	}
	return want, 0
}

// template returns the pod of a workload.
func template(o Object) Object {
	pod, _ := value(o, "spec", "template").(Object)
	return pod
}

func nodeReady(node Object) bool {
	return slices.ContainsFunc(list(node, "status", "conditions"), func(x Object) bool { return text(x, "type") == "Ready" && text(x, "status") == "True" })
}

// tolerated reports whether a pod tolerates the taints of a Node. DaemonSets tolerate those that
// say that a Node is not ready (pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations).
func tolerated(node, pod Object) bool {
	return !slices.ContainsFunc(list(node, "spec", "taints"), func(t Object) bool {
		if text(t, "effect") == "PreferNoSchedule" || strings.HasPrefix(text(t, "key"), "node.kubernetes.io/") {
			return false
		}
		return !slices.ContainsFunc(list(pod, "spec", "tolerations"), func(x Object) bool {
			key, effect := text(x, "key"), text(x, "effect")
			return (key == "" || key == text(t, "key")) && (effect == "" || effect == text(t, "effect")) &&
				(text(x, "operator") == "Exists" || text(x, "value") == text(t, "value"))
		})
	})
}
