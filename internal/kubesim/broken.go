package kubesim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Failures of images, for Cluster.Broken.
const (
	Unpullable = "unpullable" // the registry does not have the image
	Crashing   = "crashing"   // its container ends with exit code 1
)

// backOffIn is when the kubelet begins to wait before it pulls an image or starts a container again
// (MaxContainerBackOff and backOffPeriod in pkg/kubelet/kubelet.go of Kubernetes v1.34.2).
const backOffIn = 10 * time.Second

// brokenImage returns an image in Broken that a pod or a template of pods has, its container, and how it fails.
func (c *Cluster) brokenImage(pod Object) (container, image, how string) {
	for _, kind := range []string{"initContainers", "containers"} {
		for _, x := range list(pod, kind) {
			if how := c.Broken[text(x, "image")]; how != "" {
				return text(x, "name"), text(x, "image"), how
			}
		}
	}
	return "", "", ""
}

// broken reports whether the pods of a workload do not run: because of an image, because the API server or the kubelets refuse them, or because a
// ConfigMap, Secret or claim is missing.
func (c *Cluster) broken(workload Object) bool {
	pod := template(workload)
	return c.badImage(workload) || c.refusedPods(workload) != "" || c.withoutFiles(text(workload, "metadata", "namespace"), pod) != "" ||
		c.notStarted(pod) != ""
}

// notStarted returns why no kubelet starts a pod; "" if one does.
func (c *Cluster) notStarted(pod Object) string {
	for _, kind := range []string{"initContainers", "containers"} {
		for _, x := range list(pod, "spec", kind) {
			if image := text(x, "image"); image != "" && !readable(image) { // applyDefaultImageTag in pkg/kubelet/images of Kubernetes v1.34.2
				return fmt.Sprintf("InvalidImageName: Failed to apply default image tag %q: couldn't parse image name: invalid reference format", image)
			}
		}
	}
	why := ""
	for _, path := range c.paths("Node") {
		if why = forbiddenSysctl(pod, c.Objects[path]); why == "" {
			break
		}
	}
	return why
}

// readable reports whether a kubelet can read the name of an image (ParseNormalizedNamed of github.com/distribution/reference v0.6.0).
func readable(image string) bool {
	name, digest, pinned := strings.Cut(image, "@")
	if pinned && !regex.Of(`^[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,}$`).MatchString(digest) {
		return false
	}
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	if base, tag, tagged := strings.Cut(parts[last], ":"); tagged {
		if parts[last] = base; !regex.Of(`^\w[\w.-]{0,127}$`).MatchString(tag) {
			return false
		}
	}
	if host := parts[0]; last > 0 && (strings.ContainsAny(host, ".:") || host == "localhost" || regex.Of(`[A-Z]`).MatchString(host)) {
		if !regex.Of(`^(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)(:[0-9]+)?$`).MatchString(host) {
			return false
		}
		parts = parts[1:]
	}
	return !slices.ContainsFunc(parts, func(part string) bool { return !regex.Of(`^[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*$`).MatchString(part) })
}

// forbiddenSysctl returns a parameter of the kernel that a pod sets and the kubelet of a Node does not permit (safeSysctls and Validate in
// pkg/kubelet/sysctl of Kubernetes v1.34.2).
func forbiddenSysctl(pod, node Object) string {
	const safe = `^(kernel\.shm_rmid_forced|net\.ipv4\.(ip_local_port_range|tcp_syncookies|ping_group_range|ip_unprivileged_port_start|ip_local_reserved_ports|` +
		`tcp_keepalive_(time|intvl|probes)|tcp_fin_timeout|tcp_rmem|tcp_wmem))$`
	more, _ := value(node, "kubesim", "sysctls").([]any)
	for _, s := range list(pod, "spec", "securityContext", "sysctls") {
		name := strings.ReplaceAll(text(s, "name"), "/", ".")
		permitted := slices.ContainsFunc(more, func(x any) bool {
			pattern, _ := x.(string)
			start, open := strings.CutSuffix(strings.ReplaceAll(pattern, "/", "."), "*")
			return name == start || open && strings.HasPrefix(name, start)
		})
		if !permitted && !regex.Of(safe).MatchString(name) {
			return fmt.Sprintf("SysctlForbidden: forbidden sysctl: %q not allowlisted", text(s, "name"))
		}
	}
	return ""
}

// badImage reports whether the pods of a workload do not run because of an image.
func (c *Cluster) badImage(workload Object) bool {
	template, _ := value(workload, "spec", "template", "spec").(Object)
	_, _, how := c.brokenImage(template)
	return how != ""
}

// brokenPod reports whether a pod does not run because of an image.
func (c *Cluster) brokenPod(pod Object) bool {
	spec, _ := pod["spec"].(Object)
	_, _, how := c.brokenImage(spec)
	return how != ""
}

// settleBroken makes the pods of DaemonSets and Deployments with a broken image. Pods of other ones are not
// simulated: they run.
func (c *Cluster) settleBroken(now time.Time) {
	if len(c.Broken) == 0 {
		return
	}
	for _, kind := range []string{"DaemonSet", "Deployment"} {
		for _, path := range c.paths(kind) {
			if o := c.Objects[path]; c.badImage(o) && c.refusedPods(o) == "" {
				c.makePods(o, kind, now)
			}
		}
	}
	for _, path := range c.paths("Pod") {
		c.fail(path, now)
	}
}

// makePods makes the missing pods of a workload: one on each Node, or as many as its replicas.
func (c *Cluster) makePods(workload Object, kind string, now time.Time) {
	name, namespace := text(workload, "metadata", "name"), text(workload, "metadata", "namespace")
	owner, on := Object{"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": true}, map[string]string{}
	if kind == "DaemonSet" {
		for _, path := range c.paths("Node") {
			node := text(c.Objects[path], "metadata", "name")
			on[name+"-"+node] = node
		}
	} else {
		owner["kind"], owner["name"] = "ReplicaSet", name+"-5d4f8c7b9d"
		for i := range replicasOf(workload) {
			on[fmt.Sprintf("%s-5d4f8c7b9d-%05d", name, i)] = ""
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(on)) {
		path := "/api/v1/namespaces/" + namespace + "/pods/" + pod
		if c.Objects[path] != nil {
			continue
		}
		spec, _ := value(workload, "spec", "template", "spec").(Object)
		spec = maps.Clone(spec)
		o := Object{
			"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": Object{"phase": "Pending"},
			"metadata": Object{"name": pod, "namespace": namespace, "ownerReferences": []any{owner}},
		}
		if on[pod] != "" {
			spec["nodeName"] = on[pod]
			o["kubesim"] = Object{"scheduled": now.UTC().Format(time.RFC3339)}
		}
		c.put(path, o, now)
	}
}

// fail sets the status of a pod that is scheduled and has a broken image, as the kubelet does.
func (c *Cluster) fail(path string, now time.Time) {
	o := c.Objects[path]
	spec, _ := o["spec"].(Object)
	container, image, how := c.brokenImage(spec)
	at := instant(o, "kubesim", "scheduled")
	if how == "" || at.IsZero() || now.Sub(at) < startsIn {
		return
	}
	late := now.Sub(at) >= backOffIn
	phase, restarts, last := "Pending", 0.0, Object{}
	reason, message := "ErrImagePull", fmt.Sprintf("failed to pull and unpack image %q: not found", image)
	switch {
	case how == Crashing:
		phase, restarts, last = "Running", 5, Object{"terminated": Object{"exitCode": 1.0, "reason": "Error"}}
		reason = "CrashLoopBackOff"
		message = fmt.Sprintf(
			"back-off 2m40s restarting failed container=%s pod=%s_%s(%s)",
			container, text(o, "metadata", "name"), text(o, "metadata", "namespace"), text(o, "metadata", "uid"),
		)
	case late:
		reason, message = "ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", image, message)
	}
	status := Object{
		"phase": phase,
		"conditions": []any{
			Object{"type": "PodScheduled", "status": "True"},
			Object{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "containers with unready status: [" + container + "]"},
		},
	}
	field := "containerStatuses"
	if slices.ContainsFunc(list(spec, "initContainers"), func(x Object) bool { return text(x, "name") == container }) {
		field, status["phase"] = "initContainerStatuses", "Pending"
	}
	status[field] = []any{Object{
		"name": container, "image": image, "ready": false, "restartCount": restarts, "lastState": last,
		"state": Object{"waiting": Object{"reason": reason, "message": message}},
	}}
	if text(o, "status", "phase") != text(status, "phase") || !strings.Contains(fmt.Sprint(o["status"]), reason) {
		o["status"] = status
		c.put(path, o, now)
	}
}

// unscheduled returns the condition of a pod that no Node accepts, as the scheduler writes it
// (FitError in pkg/scheduler/framework/types.go of Kubernetes v1.34.2).
func (c *Cluster) unscheduled(pod Object) Object {
	nodes, why := c.paths("Node"), map[string]int{}
	for _, p := range nodes {
		node := c.Objects[p]
		cordoned, _ := value(node, "spec", "unschedulable").(bool)
		taint := slices.IndexFunc(list(node, "spec", "taints"), func(t Object) bool { return text(t, "effect") == "NoSchedule" })
		switch {
		case cordoned:
			why["node(s) were unschedulable"]++
		case taint >= 0:
			t := list(node, "spec", "taints")[taint]
			why[fmt.Sprintf("node(s) had untolerated taint {%s: %s}", text(t, "key"), text(t, "value"))]++
		case lacks(node, pod) != "":
			why["Insufficient "+lacks(node, pod)]++
		default:
			why["node(s) had untolerated taint {node.kubernetes.io/unreachable: }"]++
		}
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		parts = append(parts, fmt.Sprintf("%d %s", why[reason], reason))
	}
	message := "no nodes available to schedule pods"
	if len(nodes) > 0 {
		message = fmt.Sprintf("0/%d nodes are available: %s.", len(nodes), strings.Join(parts, ", "))
	}
	return Object{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
}
