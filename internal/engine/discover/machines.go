package discover

import (
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Kinds of groups of machines.
const (
	planeKind      = "KubeadmControlPlane"
	deploymentKind = "MachineDeployment"
	machineKind    = "Machine"
)

// machineGroup are machines that one object made.
type machineGroup struct {
	kind, name   string
	controlPlane bool
	machines     []ec2.InstanceState // the newest first
	version      string              // "v1.34.2"; "" if it is not known
	zone         string              // failureDomain
	spec         infrav1.AWSMachineSpec
	boot         bootstrapv1.KubeadmConfigSpec
	unknown      []string // fields of spec and boot that are set, and whose values are not known
	rewritten    []string // fields of boot that mean the same as those of the template, and have another text
	recorded     bool     // the machines say which fields their template sets
	read         bool     // it was read what a machine booted with
	leftOut      []string // of what it booted with
	asked        bool     // the API server was asked for the Nodes
	marks        marks

	eks *boot.BootedEKS // bootstrap configuration of a machine of EKS, instead of boot
}

// readGroups finds the groups of the machines, those of the control plane first.
func (s *SelfManaged) readGroups() (out []machineGroup) {
	at := map[string]int{}
	for _, m := range s.Machines {
		if role := m.Tags[cloud.RoleTag]; role == topology.RoleBastion || m.Tags["Name"] == s.Name+"-bastion" || role == "" {
			continue
		}
		kind, name := s.groupOf(m)
		i, known := at[kind+"/"+name]
		if !known {
			i, at[kind+"/"+name] = len(out), len(out)
			out = append(out, machineGroup{kind: kind, name: name, controlPlane: m.Tags[cloud.RoleTag] == topology.RoleControlPlane})
		}
		out[i].machines = append(out[i].machines, m)
	}
	for i := range out {
		g := &out[i]
		slices.SortStableFunc(g.machines, func(x, y ec2.InstanceState) int { return y.LaunchedAt.Compare(x.LaunchedAt) })
		s.describe(g)
	}
	slices.SortStableFunc(out, func(x, y machineGroup) int {
		if x.controlPlane != y.controlPlane {
			return rank(y.controlPlane) - rank(x.controlPlane)
		}
		return strings.Compare(x.name, y.name)
	})
	return out
}

// Names that Cluster API gives to the Machines of a KubeadmControlPlane and of a
// MachineDeployment.
const (
	planeName      = `^(.+)-[a-z0-9]{5}$`
	deploymentName = `^(.+)-[a-z0-9]{5,10}-[a-z0-9]{5}$`
)

// groupOf returns the kind and the name of the object that made a machine: from the identity
// tag, or else from the name of its Machine.
func (s *SelfManaged) groupOf(m ec2.InstanceState) (kind, name string) {
	machine := strings.TrimPrefix(m.Tags[infrav1.MachineNameTagKey], s.Namespace+"/")
	plane := m.Tags[cloud.RoleTag] == topology.RoleControlPlane
	if name = topology.GroupOf(m.Tags); name != "" {
		switch {
		case name == machine:
			return machineKind, name
		case plane:
			return planeKind, name
		}
		return deploymentKind, name
	}
	if match := regex.Of(planeName).FindStringSubmatch(machine); match != nil && plane {
		return planeKind, match[1]
	}
	if match := regex.Of(deploymentName).FindStringSubmatch(machine); match != nil && !plane {
		return deploymentKind, match[1]
	}
	return machineKind, machine
}

// describe finds out from what a group was made.
func (s *SelfManaged) describe(g *machineGroup) {
	newest := g.machines[0]
	var ids []string
	for _, m := range g.machines {
		ids = append(ids, m.ID)
	}
	g.asked, g.marks = s.Nodes != nil, s.marksOf(g.controlPlane, ids...)
	r := topology.RecordedTemplate(newest.Tags)
	g.recorded = newest.Tags[cloud.TemplateFieldsTag] != ""
	base, version := ec2.CAPAImage(s.images[newest.Image])
	g.version = version
	if s.plane != nil {
		g.version = s.plane.images[newest.Image].version
	}
	if s.Config != nil && g.version == "" {
		g.version = s.Config.Version
	}
	if v, known := r.Value("version"); known {
		g.version = v
	}
	have := s.candidates(newest, base)
	if g.recorded {
		s.fromRecord(g, r, have)
	} else {
		s.withoutRecord(g, have)
	}
	s.setMutable(g)
	if s.plane != nil {
		s.describeEKS(g, r)
	} else if b := s.booted(g); b != nil {
		g.read, g.leftOut = true, b.LeftOut
	}
}

// candidates returns a spec that has all that AWS tells of a machine.
func (s *SelfManaged) candidates(m ec2.InstanceState, base string) infrav1.AWSMachineSpec {
	spec := s.specs[m.ID]
	if base == "" {
		image := m.Image
		spec.AMI.ID = &image
		if s.plane != nil && s.plane.images[image].lookup != "" {
			spec.AMI.EKSOptimizedLookupType = new(s.plane.images[image].lookup)
		}
	} else {
		spec.ImageLookupBaseOS = base
	}
	if s.Public[m.Subnet] {
		yes := true
		spec.PublicIP = &yes
	}
	name := s.subnetName(m.Subnet)
	spec.Subnet = &infrav1.AWSResourceReference{ID: &name}
	return spec
}

// withoutRecord describes machines that do not say from which template they were made, as those
// of Cluster API: new machines get what these have.
func (s *SelfManaged) withoutRecord(g *machineGroup, have infrav1.AWSMachineSpec) {
	m := g.machines[0]
	if have.AMI.EKSOptimizedLookupType != nil {
		have.AMI.ID = nil
	}
	if have.ImageLookupBaseOS == topology.DefaultBaseOS {
		have.ImageLookupBaseOS = ""
	}
	if have.SSHKeyName != nil && *have.SSHKeyName == s.key() {
		have.SSHKeyName = nil
	}
	if v := have.RootVolume; v != nil {
		have.RootVolume = usualVolume(*v)
	}
	for i, v := range have.NonRootVolumes {
		have.NonRootVolumes[i] = *usualVolume(v)
	}
	private := slices.ContainsFunc(s.Subnets, func(x ec2.SubnetState) bool { return !s.Public[x.ID] })
	if !private {
		have.PublicIP = nil
	}
	have.Subnet = nil
	if first := s.firstSubnet(s.Public[m.Subnet]); !g.controlPlane && m.Zone != first.Zone {
		g.zone = m.Zone
	}
	if len(g.machines) == 1 && g.controlPlane && g.kind == machineKind {
		g.zone = m.Zone
	}
	g.spec = have
	g.boot = s.usualBoot(g)
	s.asBooted(g)
}

// usualVolume removes what AWS sets by itself.
func usualVolume(v infrav1.Volume) *infrav1.Volume {
	if v.Type == infrav1.VolumeTypeGP3 && v.IOPS == 3000 || v.Type == "gp2" {
		v.IOPS = 0
	}
	if v.Throughput != nil && *v.Throughput == 125 {
		v.Throughput = nil
	}
	if v.Encrypted != nil && !*v.Encrypted {
		v.Encrypted = nil
	}
	return &v
}

// firstSubnet returns the subnet in which machines of workers are by default.
func (s *SelfManaged) firstSubnet(public bool) ec2.SubnetState {
	for _, x := range s.inOrder() {
		if s.Public[x.ID] == public && !topology.IsUnusualZone(s.Region, x.Zone) {
			return x
		}
	}
	return ec2.SubnetState{}
}

// setMutable sets what a template does not record, because a run can change it.
func (s *SelfManaged) setMutable(g *machineGroup) {
	m := g.machines[0]
	g.spec.InstanceMetadataOptions = metadataOptions(m.Metadata)
	common := s.additionalTags()
	for k, v := range m.Tags {
		if k != infrav1.MachineNameTagKey && byUser(k) && common[k] != v {
			if g.spec.AdditionalTags == nil {
				g.spec.AdditionalTags = infrav1.Tags{}
			}
			g.spec.AdditionalTags[k] = v
		}
	}
	for _, id := range s.additionalGroups(m.Groups) {
		g.spec.AdditionalSecurityGroups = append(g.spec.AdditionalSecurityGroups, infrav1.AWSResourceReference{ID: &id})
	}
}

// additionalGroups lists those of some security groups that neither the role of a machine nor an
// override gives to it.
func (s *SelfManaged) additionalGroups(ids []string) []string {
	if s.plane != nil {
		return s.plane.additionalGroups(ids)
	}
	taken := s.commonGroups("")
	if s.External() {
		taken = nil
	} else if _, own := s.Groups[infrav1.SecurityGroupNode]; own || len(taken) > 1 {
		taken = taken[:min(len(taken), rank(!own))]
	}
	return slices.DeleteFunc(slices.Sorted(slices.Values(ids)), func(id string) bool { return s.roleOf(id) != "" || slices.Contains(taken, id) })
}

// metadataOptions returns the settings of the metadata service; nil for those that AWS sets
// without any.
func metadataOptions(m ec2.Metadata) *infrav1.InstanceMetadataOptions {
	if m == (ec2.Metadata{}) || m == (ec2.Metadata{Endpoint: "enabled", IPv6: "disabled", Tokens: "optional", Tags: "disabled", HopLimit: 1}) {
		return nil
	}
	out := &infrav1.InstanceMetadataOptions{
		HTTPEndpoint: infrav1.InstanceMetadataState(m.Endpoint), HTTPTokens: infrav1.HTTPTokensState(m.Tokens), HTTPPutResponseHopLimit: int64(m.HopLimit),
		InstanceMetadataTags: infrav1.InstanceMetadataState(m.Tags),
	}
	if m.IPv6 == "enabled" {
		out.HTTPProtocolIPv6 = infrav1.InstanceMetadataState(m.IPv6)
	}
	return out
}

// replicas returns the number of machines as a field.
func (g machineGroup) replicas() int64 { return int64(len(g.machines)) }
