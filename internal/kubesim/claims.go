package kubesim

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// protection is the finalizer of claims that a pod uses.
const protection = "kubernetes.io/pvc-protection"

// All returns the objects of a kind, sorted by path.
func (c *Cluster) All(kind string) (out []Object) {
	for _, path := range c.paths(kind) {
		out = append(out, c.Objects[path])
	}
	return out
}

// Runs reports whether a controller runs whose DaemonSet or Deployment has one of the
// words in its name. It needs a Node that takes its pods, and one with a running kubelet.
func (c *Cluster) Runs(words ...string) bool {
	return c.Quorate() && c.placed(words...) && slices.ContainsFunc(c.All("Node"), func(o Object) bool { return !unreachable(o) })
}

// Finalize adds a finalizer to an object.
func (c *Cluster) Finalize(now time.Time, o Object, finalizer string) {
	meta, _ := o["metadata"].(Object)
	meta["finalizers"] = append(finalizers(o), finalizer)
	c.Put(now, o)
}

// Release removes a finalizer. If an object is being deleted, it is deleted with its last
// finalizer.
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

// Going returns the deletionTimestamp of an object, or the zero time.
func Going(o Object) time.Time {
	return instant(o, "metadata", "deletionTimestamp")
}

// Value returns the string at a path of an object, or "".
func Value(o Object, path ...string) string { return text(o, path...) }

// settleClaims adds the protection finalizer to claims, and releases the volumes of
// deleted claims.
func (c *Cluster) settleClaims(now time.Time) {
	for _, o := range c.All("PersistentVolumeClaim") {
		c.classify(o, now)
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

// classify gives an unbound claim without a class the default StorageClass, also one that is made later
// (https://kubernetes.io/docs/concepts/storage/persistent-volumes/#retroactive-default-storageclass-assignment).
func (c *Cluster) classify(claim Object, now time.Time) {
	spec, _ := claim["spec"].(Object)
	if spec["storageClassName"] != nil || text(claim, "status", "phase") == "Bound" {
		return
	}
	for _, class := range c.All("StorageClass") {
		if text(class, "metadata", "annotations", "storageclass.kubernetes.io/is-default-class") == "true" {
			if spec == nil {
				spec = Object{}
				claim["spec"] = spec
			}
			spec["storageClassName"] = text(class, "metadata", "name")
			c.Put(now, claim)
			return
		}
	}
}

// UserOf returns a scheduled pod that uses a claim, or nil.
func (c *Cluster) UserOf(claim Object) Object {
	for _, pod := range c.All("Pod") {
		if text(pod, "spec", "nodeName") != "" && text(pod, "metadata", "namespace") == text(claim, "metadata", "namespace") &&
			slices.Contains(claims(pod), text(claim, "metadata", "name")) {
			return pod
		}
	}
	return nil
}

// claims returns the names of the claims that a pod uses.
func claims(pod Object) (out []string) {
	for _, v := range list(pod, "spec", "volumes") {
		if name := text(v, "persistentVolumeClaim", "claimName"); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// claimed reports whether all claims of a pod exist. A claim that is being deleted
// prevents the pod from being scheduled.
func (c *Cluster) claimed(pod Object) bool {
	for _, name := range claims(pod) {
		claim := c.Objects["/api/v1/namespaces/"+text(pod, "metadata", "namespace")+"/persistentvolumeclaims/"+name]
		if claim == nil || !Going(claim).IsZero() {
			return false
		}
	}
	return true
}

// stateful creates the missing pods of a StatefulSet with their claims, all at once. A
// pod that is being deleted must be gone before it is created again.
func (c *Cluster) stateful(set Object, now time.Time) {
	want := replicasOf(set)
	name, namespace := text(set, "metadata", "name"), text(set, "metadata", "namespace")
	within := "/api/v1/namespaces/" + namespace
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		pod := c.Objects[within+"/pods/"+id]
		if i >= want {
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

// Drop removes an object without regard to finalizers.
func (c *Cluster) Drop(o Object) {
	for path, have := range c.Objects {
		if text(have, "metadata", "uid") == text(o, "metadata", "uid") {
			delete(c.Objects, path)
		}
	}
}
