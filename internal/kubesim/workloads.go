package kubesim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// settleWorkloads sets the status of DaemonSets, Deployments and StatefulSets as
// kube-controller-manager does when the kubelets have started their pods (pkg/controller/daemon,
// pkg/controller/deployment, pkg/controller/statefulset of Kubernetes v1.34.2).
func (c *Cluster) settleWorkloads(now time.Time) {
	nodes := c.All("Node")
	for _, kind := range []string{"DaemonSet", "Deployment", "StatefulSet"} {
		for _, path := range c.paths(kind) {
			c.progress(path, now, nodes)
		}
	}
	c.settleJobs(now, nodes)
}

// progress sets the status of a workload. It keeps the status if neither the workload nor the number
// of its pods has changed.
func (c *Cluster) progress(path string, now time.Time, nodes []Object) {
	o := c.Objects[path]
	generation, _ := value(o, "metadata", "generation").(float64)
	want, ready := c.pods(o, nodes)
	refused := c.refusedPods(o)
	if seen, _ := value(o, "status", "observedGeneration").(float64); seen == generation && value(o, "kubesim", "want") == want &&
		value(o, "kubesim", "ready") == ready && text(o, "kubesim", "refused") == refused {
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
		if refused != "" && text(o, "kind") == "Deployment" {
			status["replicas"], status["updatedReplicas"], status["unavailableReplicas"] = 0.0, 0.0, w
			status["conditions"] = append([]any{createFailed(now, text(o, "metadata", "name"), refused)}, available(now, false))
		}
	}
	o["status"], o["kubesim"] = status, Object{"want": want, "ready": ready, "refused": refused}
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

// createFailed is the condition of a Deployment whose pods the API server refuses (FailedCreate in pkg/controller/replicaset).
func createFailed(now time.Time, name, why string) Object {
	return Object{
		"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "lastTransitionTime": now.UTC().Format(time.RFC3339),
		"message": fmt.Sprintf("pods %q is forbidden: %s", name+"-5d4f8c7b9d-00000", why),
	}
}

// pods returns how many pods a workload should have, and how many are ready. A DaemonSet has a pod on
// each Node that takes its pods, and the pod is ready when the Node is. In a real cluster, pods in the
// network of the host are ready before that; no test needs it. Of other workloads all pods are ready if
// one Node takes them, because Nodes have room for any number of pods here.
func (c *Cluster) pods(o Object, nodes []Object) (want, ready int) {
	takers, readyTakers := takersOf(o, nodes)
	want, ready = takers, readyTakers
	if text(o, "kind") != "DaemonSet" {
		want, ready = replicasOf(o), 0
		if readyTakers > 0 {
			ready = want
		}
		if alone(template(o)) {
			ready = min(want, readyTakers)
		}
	}
	if c.broken(o) {
		ready = 0
	}
	return want, ready
}

// takersOf returns how many Nodes take the pods of a workload, and how many of these are ready.
func takersOf(workload Object, nodes []Object) (all, ready int) {
	pod := template(workload)
	for _, node := range nodes {
		if !takes(node, pod) || !tolerated(node, pod) {
			continue
		}
		if all++; nodeReady(node) {
			ready++
		}
	}
	return all, ready
}

// alone reports whether two pods of a workload cannot run on one Node, because of their anti-affinity or because they use the same port of the
// Node (InterPodAffinity and NodePorts of the kube-scheduler).
func alone(pod Object) bool {
	labels, _ := value(pod, "metadata", "labels").(Object)
	for _, term := range list(pod, "spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution") {
		selector, given := term["labelSelector"].(Object)
		if given && text(term, "topologyKey") == "kubernetes.io/hostname" && selects(selector, labels) {
			return true
		}
	}
	return slices.ContainsFunc(list(pod, "spec", "containers"), func(c Object) bool {
		return slices.ContainsFunc(list(c, "ports"), func(p Object) bool {
			_, is := number(p["hostPort"])
			return is || value(pod, "spec", "hostNetwork") == true
		})
	})
}

// replicasOf returns the number of replicas of a workload, which is 1 if it names none.
func replicasOf(o Object) int {
	if n, given := value(o, "spec", "replicas").(float64); given {
		return int(n)
	}
	return 1
}

// template returns the pod of a workload.
func template(o Object) Object {
	pod, _ := value(o, "spec", "template").(Object)
	return pod
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
