package topology

import (
	"fmt"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// addPools adds the Auto Scaling groups of AWSMachinePools, and their launch
// templates.
func addPools(g *graph.Graph, p platform, plan machinePlan) (pools []graph.Resource, remarks []string, err error) {
	for _, pool := range p.m.Pools {
		if pool.Scaling == nil {
			continue
		}
		x := p.poolGroup(pool, p.eks)
		added, err := addPool(g, p, pool, x)
		if err != nil {
			return nil, nil, err
		}
		pools = append(pools, added)
		if x.kubeadm != nil && boot.ByToken(x.kubeadm) && !plan.keepsToken {
			remarks = append(remarks, fmt.Sprintf("%s: no machine of the control plane keeps the token valid that machines join with: %s", x.origin, p.withoutKeeper()))
		}
	}
	return pools, remarks, nil
}

// withoutKeeper describes how long machines can join if no machine of the control plane renews
// the bootstrap token. Only a run that uses the API server can create another token.
func (p platform) withoutKeeper() string {
	if p.usesAPIServer() {
		return fmt.Sprintf("it is valid for a year, and after one of the control plane is replaced, for %s at a time", TokenTTL)
	}
	return fmt.Sprintf("those that the pool adds by itself join within %s after a run, and later boot and do not join, until one of the control plane is replaced, or a run with --wait=api makes a token that is valid for a year", TokenTTL)
}

func addPool(g *graph.Graph, p platform, pool manifest.Pool, x group) (graph.Resource, error) {
	spec := pool.Scaling.Spec
	from := graph.From(p.m.Origin("AWSMachinePool/"+pool.Scaling.Name, "spec"))
	content := newLaunchTemplate(g, p, x, pool)
	image, err := addImage(g, p.base, x)
	if err != nil {
		return nil, err
	}
	content.Image, content.Boot = image, p.poolData(x)
	id := graph.ID("auto-scaling-group/" + x.name)
	a := &autoscaling.Group{
		Name: x.name, Spec: spec, Content: content,
		Tags: p.machineTags(RoleNode, spec.AdditionalTags).With(cloud.Tags{"Name": x.name, cloud.ResourceTag: string(id)}),
	}
	if a.Subnets, err = poolSubnets(g, p.base, pool, x); err != nil {
		return nil, err
	}
	if _, managed := pool.Object.Annotations[managedReplicas]; !managed {
		n := int32(pool.Replicas()) //nolint:gosec // a group has a few thousand
		a.Desired = &n
	}
	for _, s := range a.Subnets {
		a.Needed = append(a.Needed, p.net.egress(s)...)
	}
	a.Template = graph.Add(g, graph.ID(content.Tags[cloud.ResourceTag]), content, from)
	return graph.Add(g, id, a, from), nil
}

// poolData returns the boot data of the machines of a pool.
func (p platform) poolData(x group) *bootdata.Data {
	return p.recorded(p.bootData(x, graph.ID("machine/"+x.name), "", boot.JoinWorker))
}

// newLaunchTemplate returns the launch template of a pool, without image and boot data.
func newLaunchTemplate(g *graph.Graph, p platform, x group, pool manifest.Pool) *ec2.LaunchTemplate {
	id, spec := graph.ID("launch-template/"+x.name), *pool.Template()
	t := &ec2.LaunchTemplate{
		Name: x.name, Spec: spec, Key: text(x.spec.SSHKeyName), Adopt: p.o.Adopt,
		Tags:         p.machineTags(RoleNode, x.spec.AdditionalTags).With(cloud.Tags{"Name": x.name, cloud.ResourceTag: string(id)}),
		InstanceTags: p.machineTags(RoleNode, x.spec.AdditionalTags).With(cloud.Tags{"Name": x.name}).With(bootstrapSecretTag(pool)),
	}
	t.Groups, t.EKS = machineSecurityGroups(g, p, x)
	t.Needed = append(addKeyPair(g, p.base, x, t.Key), addProfile(g, p.base, x, spec.IamInstanceProfile)...)
	return t
}

// bootstrapSecretTag returns the tag with the Secret that has the bootstrap data of a pool in
// a management cluster. CAPA creates a new version of a launch template without it
// (launchTemplateNeedsUserDataSecretKeyTag in its ReconcileLaunchTemplate).
func bootstrapSecretTag(pool manifest.Pool) cloud.Tags {
	from := pool.Object.Spec.Template.Spec.Bootstrap
	name := from.ConfigRef.Name // Cluster API gives the Secret the name of the configuration
	if !from.ConfigRef.IsDefined() {
		name = text(from.DataSecretName)
	}
	if name == "" {
		return nil // EKS makes the user data
	}
	return cloud.Tags{infrav1.LaunchTemplateBootstrapDataSecret: pool.Object.Namespace + "/" + name}
}

// poolSubnets picks the subnets of a pool: those that are named, those of its
// zones, or all private ones.
func poolSubnets(g *graph.Graph, b base, pool manifest.Pool, x group) (out []*graph.Ref[ec2.SubnetState], err error) {
	spec := pool.Scaling.Spec
	for _, s := range spec.Subnets {
		if s.ID == nil { // filters may match several
			return nil, &UnsupportedError{b.m.Origin(x.specAt, "spec.subnets"), "subnets of pools by filters"}
		}
		out = append(out, namedSubnet(g, b, x, &s, ""))
	}
	if len(spec.Subnets) > 0 {
		return out, nil
	}
	at := b.m.Origin(x.specAt, "spec.availabilityZones")
	switch {
	case len(spec.AvailabilityZones) > 0 && spec.AvailabilityZoneSubnetType != nil:
		return b.subnets(at, nil, spec.AvailabilityZones, *spec.AvailabilityZoneSubnetType)
	case len(spec.AvailabilityZones) > 0:
		return b.subnets(at, nil, spec.AvailabilityZones, expinfrav1.AZSubnetTypeAll)
	}
	kind := expinfrav1.AZSubnetTypePrivate
	if len(b.net.subnetsOfKind(false)) == 0 {
		kind = expinfrav1.AZSubnetTypePublic
	}
	return b.subnets(b.m.Origin("MachinePool/"+pool.Object.Name, "spec.failureDomains"), nil, pool.Object.Spec.FailureDomains, kind)
}

// retirePools retires pools that are not desired any more, after the machines and the
// other pools are settled. A pool is found by its launch template, so that is deleted
// last.
func retirePools(g *graph.Graph, p platform, machines []Machine, pools []graph.Resource) {
	stay := pools
	for _, m := range machines {
		stay = append(stay, m.Instance)
	}
	var groups []graph.Resource // retired node groups: they do not report their template
	for _, name := range p.inv.EKS.NodeGroups {
		n := g.Resource(graph.ID("node-group/" + name))
		if _, wanted := n.(*graph.Ref[eks.NodeGroupState]); !wanted {
			groups = append(groups, n)
		}
	}
	for _, t := range p.inv.Templates {
		name := t.Tags["Name"]
		if name == "" || g.Resource(graph.ID("launch-template/"+name)) != nil {
			continue
		}
		from, waits := graph.From("no longer in the manifest"), graph.With(graph.Awaits(stay...))
		tags := func(kind string) cloud.Tags {
			return cloud.Tags{"Name": name, cloud.ResourceTag: kind + "/" + name}
		}
		pool := graph.Retire(g, graph.ID("retired/auto-scaling-group/"+name), &autoscaling.Group{Name: name, Tags: tags("auto-scaling-group")}, from, waits)
		graph.Retire(g, graph.ID("retired/launch-template/"+name), &ec2.LaunchTemplate{Name: t.Name, Tags: tags("launch-template")},
			from, graph.With(graph.Awaits(append(groups, pool)...), graph.Outlives(append(groups, pool)...)))
	}
}
