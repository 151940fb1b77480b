package topology

import (
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// pools adds the Auto Scaling groups, and what they launch (facts C.6).
func (b *builder) pools() (made []graph.Resource) {
	for _, p := range b.m.Pools {
		if p.Scaling != nil {
			made = append(made, b.pool(p))
		}
	}
	return made
}

func (b *builder) pool(p manifest.Pool) graph.Resource {
	spec, g := p.Scaling.Spec, b.poolGroup(p)
	from := graph.From(b.m.Origin("AWSMachinePool/"+p.Scaling.Name, "spec"))
	content := b.launchTemplate(g, spec.AWSLaunchTemplate)
	content.Image, content.Boot = b.image(g), b.boot(g, 0, graph.ID("machine/"+g.name))
	id := graph.ID("auto-scaling-group/" + g.name)
	a := &autoscaling.Group{
		Name: g.name, Spec: spec, Content: content, Subnets: b.poolSubnets(p, g),
		Tags: b.machineTags(roleNode, spec.AdditionalTags).With(cloud.Tags{"Name": g.name, cloud.ResourceTag: string(id)}),
	}
	if _, managed := p.Object.Annotations[managedReplicas]; !managed {
		n := int32(p.Replicas()) //nolint:gosec // a group has a few thousand
		a.Desired = &n
	}
	for _, s := range a.Subnets {
		a.Needed = append(a.Needed, b.net.egress[b.subnetName(s)]...)
	}
	a.Template = graph.Add(b.Graph, graph.ID(content.Tags[cloud.ResourceTag]), content, from)
	if g.kubeadm != nil && boot.ByToken(g.kubeadm) && !b.kept {
		b.remark("%s: no machine of the control plane keeps the token valid that machines join with: those that the pool adds by itself join within %s after a run, and later boot and do not join, until one of the control plane is replaced", g.origin, TokenTTL)
	}
	return graph.Add(b.Graph, id, a, from)
}

// launchTemplate is what the machines of a pool are launched from, but for
// their image and what they boot with.
func (b *builder) launchTemplate(g group, spec expinfrav1.AWSLaunchTemplate) *ec2.LaunchTemplate {
	id := graph.ID("launch-template/" + g.name)
	t := &ec2.LaunchTemplate{
		Name: g.name, Spec: spec, Key: *g.spec.SSHKeyName,
		Tags:     b.machineTags(roleNode, g.spec.AdditionalTags).With(cloud.Tags{"Name": g.name, cloud.ResourceTag: string(id)}),
		Launched: b.machineTags(roleNode, g.spec.AdditionalTags).With(cloud.Tags{"Name": g.name}),
	}
	t.Groups, t.EKS = b.groupsOf(g)
	t.Needed = append(t.Needed, b.keyPair(t.Key)...)
	t.Needed = append(t.Needed, b.profile(spec.IamInstanceProfile)...)
	return t
}

// poolGroup is a pool as a group of machines. A launch template without a key
// has none: Cluster API falls back to the cluster's for machines alone.
func (b *builder) poolGroup(p manifest.Pool) group {
	var (
		t        expinfrav1.AWSLaunchTemplate
		name, at string
		more     infrav1.Tags
		ignition *infrav1.Ignition
	)
	if m := p.Managed; m != nil {
		t, name, at, more = *m.Spec.AWSLaunchTemplate, b.m.EKS.ControlPlane.Name+"-"+m.Name, "AWSManagedMachinePool/"+m.Name, m.Spec.AdditionalTags
	} else {
		s := &p.Scaling.Spec
		t, name, at, more, ignition = s.AWSLaunchTemplate, p.Scaling.Name, "AWSMachinePool/"+p.Scaling.Name, s.AdditionalTags, s.Ignition
	}
	machine, key := p.Object.Spec.Template.Spec, text(t.SSHKeyName)
	g := group{
		name: name, pool: true, origin: b.m.Origin("MachinePool/"+p.Object.Name, "spec"), version: machine.Version,
		specAt: at, specPath: "spec.awsLaunchTemplate",
		spec: infrav1.AWSMachineSpec{
			InstanceType: t.InstanceType, AMI: t.AMI, ImageLookupFormat: t.ImageLookupFormat, ImageLookupOrg: t.ImageLookupOrg,
			ImageLookupBaseOS: t.ImageLookupBaseOS, AdditionalTags: more, IAMInstanceProfile: t.IamInstanceProfile,
			AdditionalSecurityGroups: t.AdditionalSecurityGroups, SSHKeyName: &key, Ignition: ignition,
			CloudInit: infrav1.CloudInit{InsecureSkipSecretsManager: true}, // there is no secret in it
		},
	}
	switch c := p.Bootstrap; {
	case c.Kubeadm != nil:
		if g.kubeadm = &c.Kubeadm.Spec; boot.ByToken(g.kubeadm) {
			g.spec.CloudInit = b.poolSecrets()
		}
	case c.EKS != nil:
		g.eks = b.join(&c.EKS.Spec, nil)
	case c.Nodeadm != nil:
		g.eks = b.join(nil, &c.Nodeadm.Spec)
	case machine.Bootstrap.DataSecretName != nil:
		g.data = b.givenData(*machine.Bootstrap.DataSecretName)
	}
	return g
}

// poolSecrets says where the machines of pools fetch what they boot with, which
// an AWSMachinePool does not: where those of the control plane do. The token
// they join with is renewed there, and a launch template would keep it.
func (b *builder) poolSecrets() (c infrav1.CloudInit) {
	if cp := b.m.ControlPlane; cp != nil {
		c.SecureSecretsBackend = cp.Template.Spec.Template.Spec.CloudInit.SecureSecretsBackend
	}
	return c
}

// groupsAndPools lists all that machines are made of.
func (b *builder) groupsAndPools() []group {
	all := b.allGroups()
	for _, p := range b.m.Pools {
		if p.Scaling != nil {
			all = append(all, b.poolGroup(p))
		}
	}
	return all
}

// poolSubnets picks the subnets of a pool: those that are named, those of its
// zones, or all private ones.
func (b *builder) poolSubnets(p manifest.Pool, g group) (out []*graph.Ref[ec2.SubnetState]) {
	spec := p.Scaling.Spec
	for _, s := range spec.Subnets {
		if s.ID == nil { // which may match any number of them
			b.fail("%w", &UnsupportedError{b.m.Origin(g.specAt, "spec.subnets"), "subnets of pools by filters"})
			continue
		}
		out = append(out, b.namedSubnet(g, &s, ""))
	}
	if len(spec.Subnets) > 0 {
		return out
	}
	at := b.m.Origin(g.specAt, "spec.availabilityZones")
	switch {
	case len(spec.AvailabilityZones) > 0 && spec.AvailabilityZoneSubnetType != nil:
		return b.pick(at, nil, spec.AvailabilityZones, *spec.AvailabilityZoneSubnetType)
	case len(spec.AvailabilityZones) > 0:
		return b.pick(at, nil, spec.AvailabilityZones, expinfrav1.AZSubnetTypeAll)
	}
	kind := expinfrav1.AZSubnetTypePrivate
	if len(b.net.of(false)) == 0 {
		kind = expinfrav1.AZSubnetTypePublic
	}
	return b.pick(b.m.Origin("MachinePool/"+p.Object.Name, "spec.failureDomains"), nil, p.Object.Spec.FailureDomains, kind)
}

// retirePools removes pools that are ours and wanted no more. By its launch
// template a pool is known, also when its group is gone already. They go when
// those that stay are settled.
func (b *builder) retirePools(stay []graph.Resource) {
	for _, m := range b.made {
		stay = append(stay, m.Instance)
	}
	var groups []graph.Resource // of EKS that go: whose template is whose, they do not say
	for _, name := range b.inv.EKS.NodeGroups {
		n := b.Resource(graph.ID("node-group/" + name))
		if _, wanted := n.(*graph.Ref[eks.NodeGroupState]); !wanted {
			groups = append(groups, n)
		}
	}
	for _, t := range b.inv.Templates {
		name := t.Tags["Name"]
		if name == "" || b.Resource(graph.ID("launch-template/"+name)) != nil {
			continue
		}
		from, waits := graph.From("no longer in the manifest"), graph.With(graph.Awaits(stay...))
		tags := func(kind string) cloud.Tags {
			return cloud.Tags{"Name": name, cloud.ResourceTag: kind + "/" + name}
		}
		pool := graph.Retire(b.Graph, graph.ID("retired/auto-scaling-group/"+name), &autoscaling.Group{Name: name, Tags: tags("auto-scaling-group")}, from, waits)
		graph.Retire(b.Graph, graph.ID("retired/launch-template/"+name), &ec2.LaunchTemplate{Name: t.Name, Tags: tags("launch-template")},
			from, graph.With(graph.Awaits(append(groups, pool)...), graph.Outlives(append(groups, pool)...)))
	}
}
