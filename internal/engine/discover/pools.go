package discover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Pool is an Auto Scaling group with its launch template: an AWSMachinePool.
type Pool struct {
	Group    autoscaling.GroupState
	Spec     expinfrav1.AWSMachinePoolSpec // without launch template, subnets and tags
	Template ec2.TemplateContent           // the latest version
}

// readPools reads the Auto Scaling groups of the cluster.
func readPools(ctx context.Context, c *cloud.Clients) (pools []Pool, err error) {
	groups, err := autoscaling.Groups(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("auto scaling groups: %w", err)
	}
	groups = slices.DeleteFunc(slices.Clone(groups), func(g autoscaling.GroupState) bool { return g.Status != "" || g.Tags["eks:nodegroup-name"] != "" })
	var names []string
	for _, g := range groups {
		names = append(names, g.ID)
	}
	specs, err := autoscaling.Specs(ctx, c, names)
	if err != nil {
		return nil, fmt.Errorf("auto scaling groups: %w", err)
	}
	for _, g := range groups {
		p := Pool{Group: g, Spec: specs[g.ID]}
		id, version, _ := strings.Cut(g.Template, ":")
		if p.Template, err = ec2.TemplateContentOf(ctx, c, id, version); err != nil {
			return nil, fmt.Errorf("launch template %s of auto scaling group %s: %w", id, g.ID, err)
		}
		pools = append(pools, p)
	}
	return pools, nil
}

// Ours reports whether a run has made a pool and the latest version of its launch template, and
// not Cluster API.
func (p Pool) Ours() bool { return p.Group.Tags[cloud.ResourceTag] != "" && !p.Template.OfCAPA }

// outdated reports whether machines of a pool were launched from an earlier version of its launch
// template, and are not up to date.
func (p Pool) outdated() bool {
	return !p.Template.KeepsMachines && slices.ContainsFunc(p.Group.Instances, func(i autoscaling.PoolInstance) bool { return i.Version != p.Template.Version })
}

// configName returns the name of the bootstrap configuration of a pool: that in the tags of its
// machines, or that of the pool.
func (p Pool) configName() string {
	if _, name, ok := strings.Cut(p.Template.InstanceTags[infrav1.LaunchTemplateBootstrapDataSecret], "/"); ok {
		return name
	}
	return p.Group.ID
}

// pool returns the objects of an Auto Scaling group.
func (s *SelfManaged) pool(p Pool) []Object {
	name := p.Group.ID
	if s.plane != nil {
		var ref map[string]any
		config := s.plane.templateConfig(p.Template, name)
		if len(config) > 0 {
			ref = reference(bootstrapv1.GroupVersion.Group, config[0].Kind, config[0].Name)
		}
		pool := machinePool(s.Name, name, s.plane.images[p.Template.Image].version, p.Group.Desired, "AWSMachinePool", ref)
		s.commentPoolMarks(&pool, p, registeredByEKS(s.plane.Booted[p.Template.ID]))
		return append([]Object{pool, s.scalingPool(p, "")}, config...)
	}
	base, version := ec2.CAPAImage(s.images[p.Template.Image])
	if version == "" && s.Config != nil {
		version = s.Config.Version
	}
	spec := s.poolBoot(p)
	config := object(bootstrapVersion(), "KubeadmConfig", p.configName(), tree(spec))
	s.commentPoolBoot(&config, p)
	pool := machinePool(s.Name, name, version, p.Group.Desired, "AWSMachinePool", reference(bootstrapv1.GroupVersion.Group, "KubeadmConfig", p.configName()))
	s.commentPoolMarks(&pool, p, registeredByKubeadm(spec.JoinConfiguration.NodeRegistration, false))
	return []Object{pool, s.scalingPool(p, base), config}
}

// poolMarks returns the labels and taints of the Nodes of a pool. Runs copy no labels from a
// MachinePool to its Nodes.
func (s *SelfManaged) poolMarks(p Pool) marks {
	var ids []string
	for _, i := range p.Group.Instances {
		ids = append(ids, i.ID)
	}
	m := s.marksOf(false, ids...)
	maps.Copy(m.others, m.synced)
	m.synced = nil
	return m
}

// commentPoolMarks adds the comment about labels and taints of the Nodes of a pool.
func (s *SelfManaged) commentPoolMarks(o *Object, p Pool, set registered) {
	if len(p.Group.Instances) > 0 {
		o.comment("spec.template", s.poolMarks(p).comment(s.Nodes != nil, set))
	}
}

// machinePool returns a MachinePool. Its infrastructure has the same name.
func machinePool(cluster, name, version string, replicas int32, kind string, config map[string]any) Object {
	template := map[string]any{
		"clusterName": cluster, "bootstrap": map[string]any{"dataSecretName": ""}, "infrastructureRef": reference(expinfrav1.GroupVersion.Group, kind, name),
	}
	if config != nil {
		template["bootstrap"] = map[string]any{"configRef": config}
	}
	set(template, "version", version, "")
	pool := object(coreVersion(), "MachinePool", name, map[string]any{
		"clusterName": cluster, "replicas": int64(replicas), "template": map[string]any{"spec": template},
	})
	pool.comment("spec.replicas", "If an autoscaler sets the number of nodes, add the annotation "+clusterv1.ReplicasManagedByAnnotation+".")
	return pool
}

// scalingPool returns the AWSMachinePool of an Auto Scaling group.
func (s *SelfManaged) scalingPool(p Pool, base string) Object {
	spec := p.Spec
	spec.AWSLaunchTemplate = s.poolTemplate(p, base)
	spec.AdditionalTags = infrav1.Tags{}
	common := s.additionalTags()
	for k, v := range p.Group.Tags {
		if byUser(k) && common[k] != v {
			spec.AdditionalTags[k] = v
		}
	}
	if !same(p.Group.Subnets, s.poolSubnets()) {
		for _, id := range p.Group.Subnets {
			name := s.subnetName(id)
			spec.Subnets = append(spec.Subnets, infrav1.AWSResourceReference{ID: &name})
		}
	}
	if source := boot.IgnitionSource(p.Template.UserData); source != "" {
		spec.Ignition = boot.PointerSpec(p.Template.UserData)
	}
	outdated := p.outdated()
	if outdated {
		spec.RefreshPreferences = &expinfrav1.RefreshPreferences{Disable: true}
	}
	fields := tree(spec)
	for _, field := range []string{"defaultCoolDown", "defaultInstanceWarmup"} {
		if fields[field] == "0s" {
			delete(fields, field)
		}
	}
	out := object(infraVersion(), "AWSMachinePool", p.Group.ID, fields)
	if outdated {
		out.comment("spec.refreshPreferences", "Some machines are of an earlier version of the launch template. Without this setting, a\nrun would replace them.")
	} else {
		out.comment("spec", "Not known: refreshPreferences, how many machines are replaced at a time.")
	}
	out.comment("spec.awsLaunchTemplate.additionalSecurityGroups", foreignGroups)
	if s.Pinned[p.Group.ID] {
		out.comment("spec.awsLaunchTemplate.ami", newerImage)
	}
	return out
}

// poolTemplate returns the launch template of an Auto Scaling group. base is the operating system
// of an image of CAPA.
func (s *SelfManaged) poolTemplate(p Pool, base string) expinfrav1.AWSLaunchTemplate {
	t, pinned := p.Template.Spec, s.Pinned[p.Group.ID]
	switch {
	case s.plane != nil && !pinned && s.plane.images[p.Template.Image].lookup != "":
		t.AMI.EKSOptimizedLookupType = new(s.plane.images[p.Template.Image].lookup)
	case base == "" || pinned:
		t.AMI.ID = &p.Template.Image
	case base != topology.DefaultBaseOS:
		t.ImageLookupBaseOS = base
	}
	for _, id := range s.additionalGroups(p.Template.Groups) {
		t.AdditionalSecurityGroups = append(t.AdditionalSecurityGroups, infrav1.AWSResourceReference{ID: &id})
	}
	return t
}

// poolSubnets lists the IDs of the subnets of pools that do not name any.
func (s *SelfManaged) poolSubnets() (ids []string) {
	if s.plane != nil {
		return s.plane.privateSubnets()
	}
	private := slices.ContainsFunc(s.Subnets, func(x ec2.SubnetState) bool { return !s.Public[x.ID] })
	for _, x := range s.Subnets {
		if s.Public[x.ID] != private && (s.Owned || slices.Contains(s.usedSubnets(), x.ID)) &&
			!slices.ContainsFunc(s.podSubnets(), func(p ec2.SubnetState) bool { return p.ID == x.ID }) {
			ids = append(ids, x.ID)
		}
	}
	return ids
}

// poolBoot returns the bootstrap configuration of a pool: what its machines boot with, or, if
// that was not read, what is usual.
func (s *SelfManaged) poolBoot(p Pool) bootstrapv1.KubeadmConfigSpec {
	if b := s.Booted[p.Template.ID]; b != nil {
		return b.Spec
	}
	return s.usualBoot(&machineGroup{marks: s.poolMarks(p)})
}

// commentPoolBoot says what is not known of the bootstrap configuration of a pool.
func (s *SelfManaged) commentPoolBoot(o *Object, p Pool) {
	switch b := s.Booted[p.Template.ID]; {
	case b == nil:
		o.comment("spec", "Not known: what the machines boot with. This is what is usual.")
	case len(b.LeftOut) > 0:
		o.comment("spec", "Left out: "+strings.Join(b.LeftOut, ", ")+".")
	}
}
