package kubesim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// protection keeps a claim that a pod uses.
const protection = "kubernetes.io/pvc-protection"

// All lists the objects of a kind, in order of their paths.
func (c *Cluster) All(kind string) (out []Object) {
	for _, path := range c.paths(kind) {
		out = append(out, c.Objects[path])
	}
	return out
}

// Runs reports whether a controller runs that has one of the words in the name
// of its DaemonSet or Deployment: it needs a node that is heard of.
func (c *Cluster) Runs(words ...string) bool {
	return c.Quorate() && c.runs(words...) && slices.ContainsFunc(c.All("Node"), func(o Object) bool { return !unreachable(o) })
}

// Finalize gives an object a finalizer.
func (c *Cluster) Finalize(now time.Time, o Object, finalizer string) {
	meta, _ := o["metadata"].(Object)
	meta["finalizers"] = append(finalizers(o), finalizer)
	c.Put(now, o)
}

// Release takes a finalizer away. An object that is being deleted goes with the
// last one.
func (c *Cluster) Release(now time.Time, o Object, finalizer string) {
	meta, _ := o["metadata"].(Object)
	meta["finalizers"] = slices.DeleteFunc(finalizers(o), func(f any) bool { return f == finalizer })
	if len(finalizers(o)) == 0 && text(meta, "deletionTimestamp") != "" {
		c.Drop(o)
		return
	}
	c.Put(now, o)
}

func finalizers(o Object) []any {
	list, _ := value(o, "metadata", "finalizers").([]any)
	return list
}

// Finalized reports whether an object has a finalizer.
func Finalized(o Object, finalizer string) bool {
	return slices.Contains(finalizers(o), any(finalizer))
}

// Going says since when an object is being deleted; zero: it is not.
func Going(o Object) time.Time {
	at, _ := time.Parse(time.RFC3339, text(o, "metadata", "deletionTimestamp")) // what is no time is none
	return at
}

// Value is the string at a path of an object; "" for none.
func Value(o Object, path ...string) string { return text(o, path...) }

// settleClaims protects claims, and releases the volumes of those that are gone.
func (c *Cluster) settleClaims(now time.Time) {
	for _, o := range c.All("PersistentVolumeClaim") {
		switch {
		case text(o, "status", "phase") == "":
			o["status"] = Object{"phase": "Pending"}
			c.Finalize(now, o, protection)
		case !Going(o).IsZero() && c.UserOf(o) == nil && Finalized(o, protection):
			c.Release(now, o, protection)
		}
	}
	for _, o := range c.All("PersistentVolume") {
		claim := c.Objects["/api/v1/namespaces/"+text(o, "spec", "claimRef", "namespace")+"/persistentvolumeclaims/"+text(o, "spec", "claimRef", "name")]
		if text(o, "status", "phase") == "Bound" && text(claim, "metadata", "uid") != text(o, "spec", "claimRef", "uid") {
			o["status"] = Object{"phase": "Released"}
			c.Put(now, o)
		}
	}
}

// UserOf is a scheduled pod that uses a claim; nil for none.
func (c *Cluster) UserOf(claim Object) Object {
	for _, pod := range c.All("Pod") {
		if text(pod, "spec", "nodeName") != "" && text(pod, "metadata", "namespace") == text(claim, "metadata", "namespace") &&
			slices.Contains(claims(pod), text(claim, "metadata", "name")) {
			return pod
		}
	}
	return nil
}

// claims names the claims that a pod uses.
func claims(pod Object) (out []string) {
	for _, v := range list(pod, "spec", "volumes") {
		if name := text(v, "persistentVolumeClaim", "claimName"); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// claimed reports whether a pod has all its claims. One that is being deleted
// keeps it from being scheduled.
func (c *Cluster) claimed(pod Object) bool {
	for _, name := range claims(pod) {
		claim := c.Objects["/api/v1/namespaces/"+text(pod, "metadata", "namespace")+"/persistentvolumeclaims/"+name]
		if claim == nil || !Going(claim).IsZero() {
			return false
		}
	}
	return true
}

// stateful keeps the pods of a StatefulSet, each with claims of its own, all at
// once. What is being deleted has to be gone before it is made anew.
func (c *Cluster) stateful(set Object, now time.Time) {
	want, given := value(set, "spec", "replicas").(float64)
	if !given {
		want = 1
	}
	name, namespace := text(set, "metadata", "name"), text(set, "metadata", "namespace")
	within := "/api/v1/namespaces/" + namespace
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		pod := c.Objects[within+"/pods/"+id]
		if float64(i) >= want {
			if pod == nil {
				return
			}
			at, _ := c.parse(within + "/pods/" + id)
			c.remove(now, at)
			continue
		}
		if pod == nil {
			c.statefulPod(set, within, id, now)
		}
	}
}

func (c *Cluster) statefulPod(set Object, within, id string, now time.Time) {
	volumes := []any{}
	for _, t := range list(set, "spec", "volumeClaimTemplates") {
		claim := text(t, "metadata", "name") + "-" + id
		have := c.Objects[within+"/persistentvolumeclaims/"+claim]
		if have == nil {
			spec, _ := t["spec"].(Object)
			c.put(within+"/persistentvolumeclaims/"+claim, Object{
				"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": maps.Clone(spec),
				"metadata": Object{"name": claim, "namespace": text(set, "metadata", "namespace")},
			}, now)
		}
		if !Going(have).IsZero() {
			return
		}
		volumes = append(volumes, Object{"name": text(t, "metadata", "name"), "persistentVolumeClaim": Object{"claimName": claim}})
	}
	c.put(within+"/pods/"+id, Object{
		"apiVersion": "v1", "kind": "Pod", "spec": Object{"volumes": volumes}, "status": Object{"phase": "Pending"},
		"metadata": Object{"name": id, "namespace": text(set, "metadata", "namespace"), "ownerReferences": []any{
			Object{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": text(set, "metadata", "name"), "controller": true},
		}},
	}, now)
}

// Drop removes an object for good, whatever keeps it.
func (c *Cluster) Drop(o Object) {
	for path, have := range c.Objects {
		if text(have, "metadata", "uid") == text(o, "metadata", "uid") {
			delete(c.Objects, path)
		}
	}
}
