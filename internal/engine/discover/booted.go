package discover

import (
	"strings"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Newest lists the IDs of the newest machine of every group: what they booted with is what new
// machines get.
func (s *SelfManaged) Newest() (ids []string) {
	for _, g := range s.readGroups() {
		ids = append(ids, g.machines[0].ID)
	}
	return ids
}

// booted returns what the newest machine of a group has booted with; nil if it was not read.
func (s *SelfManaged) booted(g *machineGroup) *boot.Booted { return s.Booted[g.machines[0].ID] }

// bootedFields returns the fields of what the newest machine of a group has booted with.
func (s *SelfManaged) bootedFields(g *machineGroup) map[string]string {
	if b := s.booted(g); b != nil {
		return topology.BootFields(&b.Spec)
	}
	return nil
}

// asBooted completes the bootstrap configuration of a group that has no record with what its
// newest machine has booted with.
func (s *SelfManaged) asBooted(g *machineGroup) {
	b := s.booted(g)
	if b == nil {
		return
	}
	given := b.Spec.DeepCopy()
	given.ClusterConfiguration = g.boot.ClusterConfiguration
	given.Format = g.boot.Format
	if !given.JoinConfiguration.IsDefined() { // the machine has run kubeadm init
		given.JoinConfiguration.NodeRegistration = given.InitConfiguration.NodeRegistration
	}
	for i := range given.Files {
		given.Files[i].Content = strings.TrimSuffix(given.Files[i].Content, "\n") + "\n"
	}
	g.boot = *given
}

// describeEKS sets the bootstrap configuration of machines of an EKS cluster: what the newest one
// has booted with.
func (s *SelfManaged) describeEKS(g *machineGroup, r topology.Recorded) {
	b := s.plane.Booted[g.machines[0].ID]
	g.boot = bootstrapv1.KubeadmConfigSpec{}
	if b == nil {
		g.eks = &boot.BootedEKS{Nodeadm: &eksbootstrapv1.NodeadmConfigSpec{}}
	} else {
		g.eks, g.read, g.leftOut = b, true, b.LeftOut
	}
	fields := topology.BootFields(g.eks.Nodeadm)
	if g.eks.Config != nil {
		fields = topology.BootFields(g.eks.Config)
	}
	for _, name := range r.Names() {
		if strings.HasPrefix(name, topology.BootPrefix) && !r.Agrees(name, fields[name]) {
			g.unknown = append(g.unknown, name)
		}
	}
}

// mostFiles is the number of files of which all versions are tried. Those after the last one are
// like it.
const mostFiles = 6

// versionsOfBooted returns what a template may have had: files end with a newline on a machine,
// whether they do in the template or not.
func versionsOfBooted(b *boot.Booted) (out []bootstrapv1.KubeadmConfigSpec) {
	for set := range 1 << min(len(b.Spec.Files), mostFiles) {
		x := *b.Spec.DeepCopy()
		for i := range x.Files {
			if set&(1<<min(i, mostFiles-1)) != 0 {
				x.Files[i].Content = strings.TrimSuffix(x.Files[i].Content, "\n")
			}
		}
		out = append(out, x)
	}
	return out
}
