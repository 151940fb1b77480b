package topology

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules"
)

// overReserved says why the kubelet of a machine does not start: it reserves more CPUs or memory than the instance type has. The kubelet checks
// this in validateNodeAllocatable (pkg/kubelet/cm/node_container_manager_linux.go) and in getReservedCPUs (cmd/kubelet/app/server.go).
func overReserved(x group, t ec2.InstanceType) (field, what, fix string) {
	const fewer = "reserve less, or use a larger type"
	for _, args := range x.kubelets() {
		if last := lastCPU(args["reserved-cpus"]); last >= int(t.VCPUs) {
			return "instanceType", fmt.Sprintf(
				"the kubelet would not start: reserved-cpus has the CPU %d, and %s has 0 to %d", last, x.spec.InstanceType, t.VCPUs-1,
			), fewer
		}
		for _, has := range []struct {
			name string
			most int64
		}{{"cpu", int64(t.VCPUs)}, {"memory", t.MemoryMiB << 20}} {
			if q := reserved(args, has.name, has.most); has.most > 0 && q.CmpInt64(has.most) > 0 {
				return "instanceType", fmt.Sprintf(
					"the kubelet would not start: it reserves %s of %s, and %s has %s",
					&q, has.name, x.spec.InstanceType, resource.NewQuantity(has.most, resource.BinarySI),
				), fewer
			}
		}
	}
	return "", "", ""
}

// Reserves reports whether a node group has a launch template in which its kubelets reserve a part of their machines.
func Reserves(p manifest.Pool) bool {
	if p.Managed == nil || p.Managed.Spec.AWSLaunchTemplate == nil || p.Bootstrap.Nodeadm == nil || p.Bootstrap.Nodeadm.Spec.Kubelet == nil {
		return false
	}
	args := nodeadmArguments(p.Bootstrap.Nodeadm.Spec.Kubelet)
	return args["system-reserved"]+args["kube-reserved"]+args["reserved-cpus"]+args["eviction-hard"] != ""
}

// overReservedGroup returns why the kubelets of a node group do not start on one of its instance types, which are in its launch template if the
// node group names none.
func (in inputs) overReservedGroup(x group, kinds []string) error {
	path := "spec.instanceType"
	if len(kinds) == 0 {
		kinds, path = []string{x.spec.InstanceType}, x.specPath+".instanceType"
	}
	for _, kind := range kinds {
		x.spec.InstanceType = kind
		t := in.inv.Types[kind]
		if t.VCPUs == 0 {
			continue // not known
		}
		if _, what, fix := overReserved(x, t); what != "" {
			return fmt.Errorf("%s: %s: %s", in.m.Origin(x.specAt, path), what, fix)
		}
	}
	return nil
}

// reserved returns how much of a resource, "cpu" or "memory", a kubelet reserves. most is how much of it the machine has.
func reserved(args map[string]string, name string, most int64) (sum resource.Quantity) {
	for item := range strings.SplitSeq(args["system-reserved"]+","+args["kube-reserved"], ",") {
		of, amount, _ := strings.Cut(item, "=")
		if q, err := resource.ParseQuantity(amount); err == nil && of == name {
			sum.Add(q)
		}
	}
	if name == "memory" {
		sum.Add(memoryKept(args["eviction-hard"], most))
	}
	return sum
}

// memoryKept returns how much memory a kubelet keeps free by its eviction thresholds, such as memory.available<500Mi,nodefs.available<10%
// (hardEvictionReservation in pkg/kubelet/cm/helpers.go).
func memoryKept(thresholds string, memory int64) resource.Quantity {
	for threshold := range strings.SplitSeq(thresholds, ",") {
		amount, is := strings.CutPrefix(threshold, "memory.available<")
		if !is {
			continue
		}
		if percent, err := strconv.ParseFloat(strings.TrimSuffix(amount, "%"), 64); err == nil && strings.HasSuffix(amount, "%") {
			return *resource.NewQuantity(int64(float64(memory)*percent/100), resource.BinarySI)
		}
		if q, err := resource.ParseQuantity(amount); err == nil {
			return q
		}
	}
	return resource.Quantity{}
}

// lastCPU returns the highest number in a list of CPUs such as 0-1,4; -1 for none.
func lastCPU(list string) (last int) {
	last = -1
	for cpu := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == '-' }) {
		if n, err := strconv.Atoi(cpu); err == nil {
			last = max(last, n)
		}
	}
	return last
}

// kubelets returns the arguments with which the kubelets of a group may start: those of kubeadm init and kubeadm join, or those of a node of
// EKS.
func (x group) kubelets() (all []map[string]string) {
	switch {
	case x.eks != nil && x.eks.Config != nil:
		return []map[string]string{x.eks.Config.KubeletExtraArgs}
	case x.eks != nil && x.eks.Nodeadm != nil && x.eks.Nodeadm.Kubelet != nil:
		return []map[string]string{nodeadmArguments(x.eks.Nodeadm.Kubelet)}
	}
	for _, r := range x.registrations() {
		args := map[string]string{}
		for _, a := range manifest.KubeletArguments(r.KubeletExtraArgs) {
			args[a.Name] = text(a.Value)
		}
		all = append(all, args)
	}
	return all
}

// nodeadmArguments returns the arguments of a kubelet that nodeadm starts: its settings, and its flags, which take precedence.
func nodeadmArguments(k *eksbootstrapv1.KubeletOptions) map[string]string {
	var settings map[string]any
	if k.Config != nil && json.Unmarshal(k.Config.Raw, &settings) != nil {
		settings = nil // the rules of the manifest have refused it
	}
	args := rules.KubeletArguments(settings)
	for _, flag := range k.Flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		args[name] = value
	}
	return args
}
