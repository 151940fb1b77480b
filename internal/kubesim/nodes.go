package kubesim

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Machine is a machine that joins as a Node.
type Machine struct {
	Name, IP, ProviderID string // visible only if the kubelet knows it, or with a cloud controller manager
	Version              string
	ControlPlane         bool
	Advertised           string            // address of the API server and etcd on a control plane
	Local                bool              // the kubelet knows its provider ID
	Labels               map[string]string // that the kubelet sets
	Taints               []any             // nil means those of kubeadm
	MaxPods              int               // 0 means 110
	CPUs, MemoryMiB      int               // 0: not known
	Sysctls              []string          // that the kubelet permits beside the safe ones, with * at the end as a pattern
}

// Taints that other components wait for.
const (
	uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
	controlPlane  = "node-role.kubernetes.io/control-plane"
)

// mostPods is the default maxPods of the kubelet.
const mostPods = 110

// Join registers a Node, and on a control plane its etcd member and static pods.
func (c *Cluster) Join(now time.Time, m Machine) {
	c.fill()
	taints := slices.Clone(m.Taints)
	if m.Taints == nil && m.ControlPlane {
		taints = append(taints, Object{"key": controlPlane, "effect": "NoSchedule"})
	}
	if !m.Local {
		taints = append(taints, Object{"key": uninitialized, "value": "true", "effect": "NoSchedule"})
	}
	marks := Object{"kubernetes.io/hostname": m.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	for k, v := range m.Labels {
		marks[k] = v
	}
	spec, fields := Object{"taints": taints}, []any{managedLabels("kubelet", slices.Collect(maps.Keys(marks)), now)}
	if m.Local {
		spec["providerID"] = m.ProviderID
	}
	if m.ControlPlane {
		marks[controlPlane] = ""
		fields = append(fields, managedLabels("kubeadm", []string{controlPlane}, now))
		if !c.ExternalEtcd {
			c.addMember(m)
		}
		for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			if part == "etcd" && c.ExternalEtcd {
				continue
			}
			annotations := Object{"kubernetes.io/config.mirror": "x"}
			if part == "etcd" {
				annotations["kubeadm.kubernetes.io/etcd.advertise-client-urls"] = c.member(m.Name).url("2379")
			}
			c.put("/api/v1/namespaces/kube-system/pods/"+part+"-"+m.Name, Object{
				"apiVersion": "v1", "kind": "Pod",
				"metadata": Object{
					"name": part + "-" + m.Name, "namespace": "kube-system", "labels": Object{"component": part, "tier": "control-plane"},
					"annotations": annotations,
				},
				"spec":   Object{"nodeName": m.Name, "hostNetwork": true, "containers": []any{Object{"name": part, "image": "registry.k8s.io/" + part + ":" + m.Version}}},
				"status": Object{"phase": "Running", "conditions": []any{Object{"type": "Ready", "status": "True"}}},
			}, now)
		}
	}
	c.keepNode(m, spec, marks)
	c.Joined[m.Name] = now
	sysctls := []any{}
	for _, name := range m.Sysctls {
		sysctls = append(sysctls, name)
	}
	c.put("/api/v1/nodes/"+m.Name, Object{
		"apiVersion": "v1", "kind": "Node", "kubesim": Object{"sysctls": sysctls},
		"metadata": Object{"name": m.Name, "labels": marks, "annotations": Object{"kubesim/provider-id": m.ProviderID}, "managedFields": fields},
		"spec":     spec,
		"status": Object{
			"addresses":   []any{Object{"type": "InternalIP", "address": m.IP}, Object{"type": "Hostname", "address": m.Name}},
			"nodeInfo":    Object{"kubeletVersion": m.Version},
			"capacity":    Object{"pods": fmt.Sprint(m.maxPods())},
			"allocatable": m.room(),
			"conditions":  []any{ready(now, "False", "KubeletNotReady", "container runtime network not ready: cni plugin not initialized")},
		},
	}, now)
}

// keepNode keeps what a kubelet leaves as it is on a Node of its name: the provider ID, the taints, and the
// labels that are not its own (tryRegisterWithAPIServer and updateDefaultLabels in
// pkg/kubelet/kubelet_node_status.go of Kubernetes v1.34.2). It deletes mirror pods that have no static pod
// on the machine (deleteOrphanedMirrorPods in pkg/kubelet/kubelet_pods.go).
func (c *Cluster) keepNode(m Machine, spec, marks Object) {
	old := c.Objects["/api/v1/nodes/"+m.Name]
	if old == nil {
		return
	}
	if id := text(old, "spec", "providerID"); id != "" {
		spec["providerID"] = id
	}
	if taints, ok := value(old, "spec", "taints").([]any); ok {
		spec["taints"] = slices.Clone(taints)
	}
	had, _ := value(old, "metadata", "labels").(Object)
	for k, v := range had {
		if _, own := marks[k]; !own {
			marks[k] = v
		}
	}
	if m.ControlPlane {
		return
	}
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		delete(c.Objects, podsOfSystem+part+"-"+m.Name)
	}
}

// NodeReady reports whether a Node is ready.
func (c *Cluster) NodeReady(name string) bool {
	return nodeReady(c.Objects["/api/v1/nodes/"+name])
}

func nodeReady(node Object) bool {
	return slices.ContainsFunc(list(node, "status", "conditions"), func(x Object) bool { return text(x, "type") == "Ready" && text(x, "status") == "True" })
}

// Lose simulates the loss of a Node's machine: its kubelet reports no status any more,
// and a cloud controller manager deletes the Node. The control plane of EKS has one ("Managing Kubernetes
// control plane events in Amazon EKS", AWS Containers Blog).
func (c *Cluster) Lose(now time.Time, name string) {
	c.Hang(now, name)
	if path := "/api/v1/nodes/" + name; c.Objects[path] != nil && (c.EKS != "" || c.runs("cloud-controller-manager", "aws-cloud-controller")) {
		delete(c.Objects, path)
		for p, pod := range c.Objects {
			if text(pod, "kind") == "Pod" && text(pod, "spec", "nodeName") == name {
				delete(c.Objects, p)
			}
		}
	}
}

// Hang simulates a Node whose machine runs, but whose kubelet and etcd do not respond.
func (c *Cluster) Hang(now time.Time, name string) {
	if m := c.member(name); m != nil {
		m.Gone, m.Nameless = true, m.Nameless || !m.started(now)
	}
	c.unwell(name)
	path := "/api/v1/nodes/" + name
	o := c.Objects[path]
	if o == nil {
		return
	}
	if len(conditions(o)) > 0 && text(conditions(o)[0].(Object), "status") != "Unknown" { //nolint:forcetypeassert // set by this package
		status, _ := o["status"].(Object)
		status["conditions"] = []any{ready(now, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")}
		c.put(path, o, now)
	}
}

// Break simulates that the etcd of a Node does not start any more, as without its data. The API server
// beside it talks to no other etcd, and does not become ready (--etcd-servers of kubeadm's manifest).
func (c *Cluster) Break(now time.Time, name string) {
	m := c.member(name)
	if m == nil {
		return
	}
	m.Gone = true
	c.unwell(name)
	if path := podsOfSystem + "kube-apiserver-" + name; c.Objects[path] != nil {
		c.Objects[path]["status"] = Object{"phase": "Running", "conditions": []any{Object{"type": "Ready", "status": "False"}}}
		c.put(path, c.Objects[path], now)
	}
}

const podsOfSystem = "/api/v1/namespaces/kube-system/pods/"

// Refuse simulates a Node whose kubelet the API server answers with 401.
func (c *Cluster) Refuse(now time.Time, name string) {
	if !c.Refused[name] {
		if c.Refused == nil {
			c.Refused = map[string]bool{}
		}
		c.Refused[name] = true
		c.Hang(now, name)
	}
}

// Admit ends Refuse: the kubelet reports its status again.
func (c *Cluster) Admit(now time.Time, name string) {
	o := c.Objects["/api/v1/nodes/"+name]
	if !c.Refused[name] || o == nil {
		return
	}
	delete(c.Refused, name)
	status, _ := o["status"].(Object)
	status["conditions"] = []any{ready(now, "False", "KubeletNotReady", "the kubelet starts")}
	c.put("/api/v1/nodes/"+name, o, now)
}

// Network reports whether the cluster has a pod network.
func (c *Cluster) Network() bool { return c.network() }

// Resume simulates that a Node responds again after Hang.
func (c *Cluster) Resume(now time.Time, name string) {
	if m := c.member(name); m != nil {
		m.Gone, m.Back = false, now
		if etcd := c.Objects["/api/v1/namespaces/kube-system/pods/etcd-"+name]; etcd != nil {
			etcd["status"] = Object{"phase": "Running", "conditions": []any{Object{"type": "Ready", "status": "True"}}}
		}
	}
	path := "/api/v1/nodes/" + name
	if o := c.Objects[path]; o != nil {
		status, _ := o["status"].(Object)
		status["conditions"] = []any{ready(now, "True", "KubeletReady", "kubelet is posting ready status")}
		c.put(path, o, now)
	}
}

func conditions(o Object) []any {
	list, _ := value(o, "status", "conditions").([]any)
	return list
}

func ready(now time.Time, status, reason, message string) Object {
	return Object{
		"type": "Ready", "status": status, "reason": reason, "message": message,
		"lastHeartbeatTime": now.UTC().Format(time.RFC3339), "lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
}

// runs reports whether there is a DaemonSet or Deployment with one of the words in its
// name.
func (c *Cluster) runs(words ...string) bool { return len(c.named(words...)) > 0 }

// named returns the workloads with one of the words in their names.
func (c *Cluster) named(words ...string) (all []Object) {
	for path, o := range c.Objects {
		if !strings.HasPrefix(path, "/apis/apps/v1/") || c.broken(o) {
			continue
		}
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text(o, "metadata", "name"), w) }) {
			all = append(all, o)
		}
	}
	return all
}

// placed reports whether a Node takes the pods of a workload with one of the words in its name.
func (c *Cluster) placed(words ...string) bool {
	nodes := c.All("Node")
	return slices.ContainsFunc(c.named(words...), func(o Object) bool {
		return slices.ContainsFunc(nodes, func(node Object) bool { return takes(node, template(o)) && tolerated(node, template(o)) })
	})
}

// network reports whether there is a pod network: a DaemonSet that installs the
// configuration of a CNI plugin on every Node.
func (c *Cluster) network() bool { return c.networkOn(nil) }

// networkOn reports whether a pod network runs on a Node. nil is a Node on which all pods can run.
func (c *Cluster) networkOn(node Object) bool {
	if c.OwnNetwork {
		return true
	}
	for path, o := range c.Objects {
		if !strings.HasPrefix(path, "/apis/apps/v1/") || text(o, "kind") != "DaemonSet" || c.broken(o) {
			continue
		}
		volumes, _ := value(o, "spec", "template", "spec", "volumes").([]any)
		for _, v := range volumes {
			volume, _ := v.(Object)
			if strings.HasPrefix(text(volume, "hostPath", "path"), "/etc/cni") && c.flannelExits(o) == "" &&
				(node == nil || takes(node, template(o)) && tolerated(node, template(o))) {
				return true
			}
		}
	}
	return c.EKS != "" && c.runs("aws-node") && c.vpcCNIExits() == "" && !c.Unauthorized
}

// Services reports whether pods reach Services, the API server among them. kube-proxy sets up their addresses on each node, or a pod network that
// takes its place. The nodes are ready without: EKS gives the VPC CNI the address of the API server
// (https://github.com/aws/amazon-vpc-cni-k8s/issues/2327), but pods find no name (https://github.com/aws-samples/eks-workshop-v2/issues/1782).
func (c *Cluster) Services() bool {
	return c.OwnNetwork || c.runs("kube-proxy", "cilium", "kube-router", "antrea", "calico", "tigera")
}

// becomesReady is the time from the join of a Node with a network until it is ready.
const becomesReady = 10 * time.Second

func (c *Cluster) settleNodes(now time.Time) {
	cloud := c.placed("cloud-controller-manager", "aws-cloud-controller") && !c.TwoTags
	for _, name := range slices.Sorted(maps.Keys(c.Joined)) {
		path := "/api/v1/nodes/" + name
		o := c.Objects[path]
		if o == nil {
			delete(c.Joined, name)
			continue
		}
		if now.Sub(c.Joined[name]) < becomesReady {
			continue
		}
		if cloud && text(o, "spec", "providerID") == "" {
			spec, _ := o["spec"].(Object)
			spec["providerID"] = text(o, "metadata", "annotations", "kubesim/provider-id")
			taints, _ := spec["taints"].([]any)
			spec["taints"] = slices.DeleteFunc(taints, func(t any) bool { taint, _ := t.(Object); return text(taint, "key") == uninitialized })
			if zone := strings.Split(text(spec, "providerID"), "/"); len(zone) > 1 {
				Label(now, o, "aws-cloud-controller-manager", "topology.kubernetes.io/zone", zone[len(zone)-2])
			}
			c.put(path, o, now)
		}
		list := conditions(o)
		if condition, ok := list[0].(Object); ok && text(condition, "status") == "False" && c.networkOn(o) {
			list[0] = ready(now, "True", "KubeletReady", "kubelet is posting ready status")
			if c.Running.IsZero() {
				c.Running = now
			}
			c.put(path, o, now)
		}
	}
}

// evict removes a pod, unless a PodDisruptionBudget forbids it.
func (c *Cluster) evict(now time.Time, at place, eviction Object) (int, any) {
	pod := c.Objects[at.full()]
	if pod == nil {
		return missing(at)
	}
	if uid := text(eviction, "deleteOptions", "preconditions", "uid"); uid != "" && uid != text(pod, "metadata", "uid") {
		return failure(http.StatusConflict, "Conflict", "the UID in the precondition does not match the UID in record")
	}
	if code, answer := c.terminating(at); code != 0 { // an eviction creates an object
		return code, answer
	}
	for _, path := range c.paths("PodDisruptionBudget") {
		budget := c.Objects[path]
		if text(budget, "metadata", "namespace") != at.namespace || !c.covered(budget, pod) {
			continue
		}
		if least, healthy := c.spare(budget, at.namespace); healthy <= least {
			code, answer := failure(http.StatusTooManyRequests, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
			status, _ := answer.(Object)
			status["details"] = Object{"causes": []any{
				Object{
					"reason":  "DisruptionBudget",
					"message": fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", text(budget, "metadata", "name"), least, healthy),
				},
			}}
			return code, answer
		}
	}
	c.remove(now, at)
	return http.StatusCreated, Object{"kind": "Status", "apiVersion": "v1", "metadata": Object{}, "status": "Success"}
}

// settleBudgets sets the status of PodDisruptionBudgets, as their controller does.
func (c *Cluster) settleBudgets(now time.Time) {
	for _, path := range c.paths("PodDisruptionBudget") {
		budget := c.Objects[path]
		least, healthy := c.spare(budget, text(budget, "metadata", "namespace"))
		status := Object{"disruptionsAllowed": float64(max(healthy-least, 0)), "currentHealthy": float64(healthy), "desiredHealthy": float64(least)}
		before, _ := budget["status"].(Object)
		if before == nil || before["disruptionsAllowed"] != status["disruptionsAllowed"] || before["currentHealthy"] != status["currentHealthy"] {
			budget["status"] = status
			c.put(path, budget, now)
		}
	}
}

func (c *Cluster) covered(budget, pod Object) bool {
	want := labels.Set{}
	given, _ := value(budget, "spec", "selector", "matchLabels").(Object)
	for k, v := range given {
		want[k], _ = v.(string)
	}
	has := labels.Set{}
	marks, _ := value(pod, "metadata", "labels").(Object)
	for k, v := range marks {
		has[k], _ = v.(string)
	}
	return labels.SelectorFromSet(want).Matches(has)
}

// spare returns the number of pods that a budget requires to be healthy, and the number
// of those that are. Only minAvailable as a number is simulated.
func (c *Cluster) spare(budget Object, namespace string) (least, healthy int) {
	n, _ := value(budget, "spec", "minAvailable").(float64)
	for path, o := range c.Objects {
		if _, dying := c.Dying[path]; !dying && text(o, "kind") == "Pod" && text(o, "metadata", "namespace") == namespace &&
			text(o, "status", "phase") == "Running" && text(o, "metadata", "deletionTimestamp") == "" && c.covered(budget, o) &&
			!unreachable(c.Objects["/api/v1/nodes/"+text(o, "spec", "nodeName")]) {
			healthy++
		}
	}
	return int(n), healthy
}
