package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// What kubeadm requires of a machine of a control plane: ControlPlaneNumCPU and ControlPlaneMem in
// cmd/kubeadm/app/constants/constants.go of Kubernetes.
const (
	leastCPUs   = 2
	leastMemory = 1700 // MB; kubeadm counts what the kernel does not use itself
)

// unfit returns why a machine of a group would not be launched in a zone, or kubeadm would not run on it,
// as far as its instance type says; nil if nothing does.
func (in inputs) unfit(x group, zone string) error {
	t := in.inv.Types[x.spec.InstanceType]
	if t.VCPUs == 0 {
		return nil // not known
	}
	if !in.offered(x.spec.InstanceType, zone) {
		return in.notOffered(x, zone)
	}
	if zone := in.inv.ZoneInfo[zone]; zone.IsWavelength() {
		if field, what, fix := onlyGP2(x); what != "" {
			return fmt.Errorf("%s: %s: %s", in.m.Origin(x.specAt, x.specPath+"."+field), what, fix)
		}
	}
	for _, rule := range []func(group, ec2.InstanceType) (field, what, fix string){tooSmall, overReserved, lacksHardware} {
		if field, what, fix := rule(x, t); what != "" {
			return fmt.Errorf("%s: %s: %s", in.m.Origin(x.specAt, x.specPath+"."+field), what, fix)
		}
	}
	return nil
}

// tooSmall says why kubeadm refuses a machine of a control plane; "" if it does not.
func tooSmall(x group, t ec2.InstanceType) (field, what, fix string) {
	kind := x.spec.InstanceType
	switch {
	case x.checksPreflight("NumCPU") && t.VCPUs < leastCPUs:
		return "instanceType", fmt.Sprintf("kubeadm refuses a control plane with %d CPUs (%s): it needs %d", t.VCPUs, kind, leastCPUs),
			"use a larger type, such as t3.medium, or add NumCPU to ignorePreflightErrors"
	case x.checksPreflight("Mem") && t.MemoryMiB > 0 && t.MemoryMiB < leastMemory:
		return "instanceType", fmt.Sprintf("kubeadm refuses a control plane with %d MiB of memory (%s): it needs %d", t.MemoryMiB, kind, leastMemory),
			"use a larger type, such as t3.medium, or add Mem to ignorePreflightErrors"
	}
	return "", "", ""
}

// onlyGP2 says which volume a machine in a Wavelength Zone cannot have: there are only gp2 volumes, the default (Amazon EBS in "How AWS Wavelength
// works", AWS Wavelength Developer Guide); "" for none.
func onlyGP2(x group) (field, what, fix string) {
	gp2 := infrav1.VolumeTypeGP2
	refused := func(kind infrav1.VolumeType) string {
		return fmt.Sprintf("Wavelength Zones have no volumes of the type %s", kind)
	}
	if root := x.spec.RootVolume; root != nil && root.Type != "" && root.Type != gp2 {
		return "rootVolume.type", refused(root.Type), "use gp2"
	}
	for i, v := range x.spec.NonRootVolumes {
		if v.Type != "" && v.Type != gp2 {
			return fmt.Sprintf("nonRootVolumes[%d].type", i), refused(v.Type), "use gp2"
		}
	}
	return "", "", ""
}

// registrations returns how the machines of a group register as Nodes with kubeadm.
func (x group) registrations() []bootstrapv1.NodeRegistrationOptions {
	switch {
	case x.kubeadm == nil:
		return nil
	case x.controlPlane:
		return []bootstrapv1.NodeRegistrationOptions{x.kubeadm.InitConfiguration.NodeRegistration, x.kubeadm.JoinConfiguration.NodeRegistration}
	}
	return []bootstrapv1.NodeRegistrationOptions{x.kubeadm.JoinConfiguration.NodeRegistration}
}

// lacksHardware says what a machine asks for and its instance type does not have; "" for nothing.
func lacksHardware(x group, t ec2.InstanceType) (field, what, fix string) {
	s, kind, spot := &x.spec, x.spec.InstanceType, x.spec.SpotMarketOptions != nil || x.spec.MarketType == infrav1.MarketTypeSpot
	switch {
	case t.Architecture == "" && len(t.Others) > 0:
		return "instanceType", fmt.Sprintf(
			"the instance type %s has the architecture %s, for which there are no images of Kubernetes",
			kind,
			t.Others[0],
		), "use one with x86_64 or arm64"
	case s.NetworkInterfaceType == infrav1.NetworkInterfaceTypeEFAWithENAInterface && !t.EFA:
		return "networkInterfaceType", fmt.Sprintf("the instance type %s has no Elastic Fabric Adapter", kind), "remove it, or use another type"
	case s.CPUOptions.ConfidentialCompute == infrav1.AWSConfidentialComputePolicySEVSNP && !slices.Contains(t.Processor, "amd-sev-snp"):
		return "cpuOptions.confidentialCompute", fmt.Sprintf(
			"the instance type %s has no AMD SEV-SNP",
			kind,
		), "remove it, or use a type that has it, such as m6a.large"
	case s.CPUOptions.NestedVirtualization == infrav1.NestedVirtualizationPolicyEnabled && !slices.Contains(t.Processor, "nested-virtualization"):
		return "cpuOptions.nestedVirtualization", fmt.Sprintf("the instance type %s has no nested virtualization", kind), "remove it, or use another type"
	case t.TooManyVolumes(kind, len(s.NonRootVolumes), len(s.NetworkInterfaces)) != "":
		what, fix, _ = strings.Cut(t.TooManyVolumes(kind, len(s.NonRootVolumes), len(s.NetworkInterfaces)), ": ")
		return "nonRootVolumes", what, fix
	case spot && !t.Spot:
		return "instanceType", fmt.Sprintf("AWS offers no spot instances of the type %s", kind), "use another type, or remove spotMarketOptions"
	}
	return "", "", ""
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

// nodeTypes returns the instance types of the Nodes; nil if something else than the manifest chooses some of them.
func (in inputs) nodeTypes() []string {
	m, types := in.m, map[string]bool{}
	if m.EKS.HasAutoMode() || m.EKS.HasKarpenter() || m.EKS != nil && len(m.EKS.Fargate) > 0 {
		return nil
	}
	if m.ControlPlane != nil {
		types[m.ControlPlane.Template.Spec.Template.Spec.InstanceType] = true
	}
	for _, d := range m.Deployments {
		types[d.Template.Spec.Template.Spec.InstanceType] = true
	}
	for _, x := range m.Machines {
		types[x.Infra.Spec.InstanceType] = true
	}
	for _, p := range m.Pools {
		for _, name := range poolTypes(p) {
			types[name] = true
		}
	}
	if types[""] {
		return nil
	}
	return slices.Sorted(maps.Keys(types))
}

// poolTypes returns the instance types of a pool.
func poolTypes(p manifest.Pool) (types []string) {
	if p.Scaling != nil && p.Scaling.Spec.MixedInstancesPolicy != nil {
		for _, o := range p.Scaling.Spec.MixedInstancesPolicy.Overrides {
			types = append(types, o.InstanceType)
		}
	}
	types = append(types, p.InstanceTypes...)
	if p.Managed != nil && len(types) == 0 && p.Managed.Spec.InstanceType != nil {
		types = append(types, *p.Managed.Spec.InstanceType)
	}
	if t := p.Template(); t != nil && len(types) == 0 {
		types = append(types, t.InstanceType)
	}
	if len(types) == 0 {
		types = append(types, eks.DefaultNodeType)
	}
	return types
}
