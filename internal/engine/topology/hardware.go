package topology

import (
	"fmt"
	"slices"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// What kubeadm requires of a machine of a control plane: ControlPlaneNumCPU and ControlPlaneMem in
// cmd/kubeadm/app/constants/constants.go of Kubernetes.
const (
	leastCPUs   = 2
	leastMemory = 1700 // MB; kubeadm counts what the kernel does not use itself
)

// unfit returns why a machine of a group would not be launched, or kubeadm would not run on it, as far
// as its instance type says; nil if nothing does.
func (b base) unfit(x group) error {
	t := b.inv.Types[x.spec.InstanceType]
	if t.VCPUs == 0 {
		return nil // not known
	}
	refuse := func(field, what, fix string, args ...any) error {
		return fmt.Errorf("%s: %s: %s", b.m.Origin(x.specAt, x.specPath+"."+field), fmt.Sprintf(what, args...), fix)
	}
	s := &x.spec
	kind := s.InstanceType
	switch {
	case t.Architecture == "" && len(t.Others) > 0:
		return refuse("instanceType", "the instance type %s has the architecture %s, for which there are no images of Kubernetes", "use one with x86_64 or arm64", kind, t.Others[0])
	case x.checksPreflight("NumCPU") && t.VCPUs < leastCPUs:
		return refuse("instanceType", "kubeadm refuses a control plane with %d CPUs (%s): it needs %d", "use a larger type, such as t3.medium, or add NumCPU to ignorePreflightErrors", t.VCPUs, kind, leastCPUs)
	case x.checksPreflight("Mem") && t.MemoryMiB > 0 && t.MemoryMiB < leastMemory:
		return refuse("instanceType", "kubeadm refuses a control plane with %d MiB of memory (%s): it needs %d", "use a larger type, such as t3.medium, or add Mem to ignorePreflightErrors", t.MemoryMiB, kind, leastMemory)
	case s.NetworkInterfaceType == infrav1.NetworkInterfaceTypeEFAWithENAInterface && !t.EFA:
		return refuse("networkInterfaceType", "the instance type %s has no Elastic Fabric Adapter", "remove it, or use another type", kind)
	case s.CPUOptions.ConfidentialCompute == infrav1.AWSConfidentialComputePolicySEVSNP && !slices.Contains(t.Processor, ec2types.SupportedAdditionalProcessorFeatureAmdSevSnp):
		return refuse("cpuOptions.confidentialCompute", "the instance type %s has no AMD SEV-SNP", "remove it, or use a type that has it, such as m6a.large", kind)
	case s.CPUOptions.NestedVirtualization == infrav1.NestedVirtualizationPolicyEnabled && !slices.Contains(t.Processor, ec2types.SupportedAdditionalProcessorFeatureNestedVirtualization):
		return refuse("cpuOptions.nestedVirtualization", "the instance type %s has no nested virtualization", "remove it, or use another type", kind)
	case (s.SpotMarketOptions != nil || s.MarketType == infrav1.MarketTypeSpot) && !t.Spot:
		return refuse("instanceType", "AWS offers no spot instances of the type %s", "use another type, or remove spotMarketOptions", kind)
	}
	return nil
}

// checksPreflight reports whether kubeadm makes a check on a machine of the group before it does
// anything: only on a control plane, unless the manifest has it ignored.
func (x group) checksPreflight(check string) bool {
	if !x.controlPlane || x.kubeadm == nil {
		return false
	}
	ignored := func(r bootstrapv1.NodeRegistrationOptions) bool {
		return slices.ContainsFunc(r.IgnorePreflightErrors, func(name string) bool { return name == check || name == "all" })
	}
	return !ignored(x.kubeadm.InitConfiguration.NodeRegistration) || x.count > 1 && !ignored(x.kubeadm.JoinConfiguration.NodeRegistration)
}
