package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addPools adds the Auto Scaling groups of AWSMachinePools, and their launch
// templates.
//
// Pools wait for the rollout of the control plane, in after: a kubelet may not be newer than the API
// server.
func addPools(
	g *graph.Graph,
	in inputs,
	p platform,
	api *incluster.API,
	plan machinePlan,
	after []graph.Resource,
) (pools []scalingPool, remarks []string, err error) {
	for _, pool := range in.m.Pools {
		if pool.Scaling == nil {
			continue
		}
		x := in.poolGroup(pool, p.eks)
		added, err := addPool(g, in, p, api, pool, x, after)
		if err != nil {
			return nil, nil, err
		}
		pools = append(pools, scalingPool{added, x})
		if x.kubeadm != nil && boot.ByToken(x.kubeadm) && !plan.keepsToken {
			remarks = append(remarks, fmt.Sprintf("%s: no machine of the control plane keeps the token valid that machines join with: %s", x.origin, in.withoutKeeper()))
		}
	}
	return pools, remarks, nil
}

// withoutKeeper describes how long machines can join if no machine of the control plane renews
// the bootstrap token. Only a run that uses the API server can create another token.
func (in inputs) withoutKeeper() string {
	if in.usesAPIServer() {
		return fmt.Sprintf("it is valid for a year, and after one of the control plane is replaced, for %s at a time", TokenTTL)
	}
	return fmt.Sprintf(
		"those that the pool adds by itself join within %s after a run, and later boot and do not join, until one of the control plane is replaced, or a run with --wait=api makes a token that is valid for a year",
		TokenTTL,
	)
}

// scalingPool is the Auto Scaling group of a pool.
type scalingPool struct {
	*graph.Ref[autoscaling.GroupState]
	group group
}

func addPool(
	g *graph.Graph,
	in inputs,
	p platform,
	api *incluster.API,
	pool manifest.Pool,
	x group,
	after []graph.Resource,
) (*graph.Ref[autoscaling.GroupState], error) {
	spec := pool.Scaling.Spec
	from := graph.From(in.m.Origin("AWSMachinePool/"+pool.Scaling.Name, "spec"))
	content := newLaunchTemplate(g, in, p, x, pool)
	image, err := addImage(g, in, x, content)
	if err != nil {
		return nil, err
	}
	content.Image, content.Boot = image, in.poolData(p.boot, x)
	id := plan.ID("auto-scaling-group/" + x.name)
	a := &autoscaling.Group{
		Name: x.name, Spec: spec, Content: content,
		Tags: in.machineTags(RoleNode, spec.AdditionalTags).With(cloud.Tags{"Name": x.name, cloud.ResourceTag: string(id)}),
	}
	if a.Subnets, err = poolSubnets(g, in, p.net, pool, x); err != nil {
		return nil, err
	}
	n := int32(pool.Replicas()) //nolint:gosec // a group has a few thousand
	if _, managed := pool.Object.Annotations[managedReplicas]; !managed {
		a.Desired = &n
	} else if n >= spec.MinSize && n <= spec.MaxSize { // as CAPA's CreateASG
		a.Initial = &n
	}
	for _, s := range a.Subnets {
		a.Needed = append(a.Needed, p.net.egress(s)...)
	}
	a.Template = graph.Add(g, plan.ID(content.Tags[cloud.ResourceTag]), content, from, graph.With(graph.Awaits(after...)))
	if !in.usesAPIServer() {
		return graph.Add(g, id, a, from, graph.With(p.podNetwork)), nil
	}
	a.Nodes = api.MachinesOf
	var added *graph.Ref[autoscaling.GroupState]
	added = graph.Add(
		g,
		id,
		a,
		from,
		graph.With(p.podNetwork),
		graph.Diagnosed(diagnose.Group(api, func() (autoscaling.GroupState, bool) { return added.Found() })),
	)
	return added, nil
}

// addPoolNodes adds the Nodes of the machines of all pools, if the run waits for them.
func addPoolNodes(g *graph.Graph, in inputs, k kubernetes, pools []scalingPool) {
	if !in.waitsForNodes() {
		return
	}
	add := func(name, origin string, n *incluster.PoolNodes) {
		n.API, n.Server, n.Ready = k.api, k.server, in.o.Wait == plan.NodesReady
		var after []graph.Edge // a Node joins without a pod network
		if n.Ready {
			after = k.podNetwork
		}
		graph.Expect(g, plan.ID(incluster.PoolNodesKind+"/"+name), n, graph.From(origin), graph.With(after), graph.Diagnosed(diagnose.PoolNodes(n)))
	}
	for _, pool := range pools {
		add(pool.group.name, pool.Origin(), &incluster.PoolNodes{Group: pool.Ref, External: pool.group.externalCloudProvider()})
	}
	for _, pool := range in.m.Pools {
		if pool.Managed == nil {
			continue
		}
		id := plan.ID("node-group/" + pool.Managed.Spec.EKSNodegroupName)
		if group, ok := g.Resource(id).(*graph.Ref[eks.NodeGroupState]); ok && group.Role() == graph.RoleManaged {
			add(pool.Managed.Spec.EKSNodegroupName, group.Origin(), &incluster.PoolNodes{NodeGroup: group})
		}
	}
}

// poolData returns the boot data of the machines of a pool.
func (in inputs) poolData(sources bootSources, x group) *bootdata.Data {
	return sources.recorded(in.bootData(sources, x, plan.ID("machine/"+x.name), "", boot.JoinWorker))
}

// newLaunchTemplate returns the launch template of a pool, without image and boot data.
func newLaunchTemplate(g *graph.Graph, in inputs, p platform, x group, pool manifest.Pool) *ec2.LaunchTemplate {
	id, spec := plan.ID("launch-template/"+x.name), *pool.Template()
	t := &ec2.LaunchTemplate{
		Name: x.name, Spec: spec, Key: text(x.spec.SSHKeyName), Adopt: in.o.Adopt,
		Tags:         in.machineTags(RoleNode, x.spec.AdditionalTags).With(cloud.Tags{"Name": x.name, cloud.ResourceTag: string(id)}),
		InstanceTags: in.machineTags(RoleNode, x.spec.AdditionalTags).With(cloud.Tags{"Name": x.name}).With(bootstrapSecretTag(pool)),
	}
	t.FormerTags = in.formerTags(id, slices.Collect(maps.Keys(t.InstanceTags)))
	t.Groups, t.EKS = machineSecurityGroups(g, in, p, x)
	t.Needed = append(addKeyPair(g, in, x, t.Key, t), addProfile(g, in, x, spec.IamInstanceProfile, t)...)
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
func poolSubnets(g *graph.Graph, in inputs, net network, pool manifest.Pool, x group) (out []*graph.Ref[ec2.SubnetState], err error) {
	spec := pool.Scaling.Spec
	var filters []infrav1.Filter
	for _, s := range spec.Subnets {
		if s.ID != nil {
			out = append(out, namedSubnet(g, in, net, x, &s, ""))
		}
		filters = append(filters, s.Filters...)
	}
	if len(filters) > 0 {
		found := filteredSubnets(g, in, net, pool.Scaling.Name, filters, x)
		if len(found) == 0 && in.inv.PoolSubnets != nil {
			return nil, fmt.Errorf("%s: no subnet of the cluster's VPC matches %s", in.m.Origin(x.specAt, "spec.subnets"), describeFilters(filters))
		}
		out = append(out, found...)
	}
	if len(spec.Subnets) > 0 {
		return out, nil
	}
	at := in.m.Origin(x.specAt, "spec.availabilityZones")
	switch {
	case len(spec.AvailabilityZones) > 0 && spec.AvailabilityZoneSubnetType != nil:
		return in.subnets(net, at, nil, spec.AvailabilityZones, *spec.AvailabilityZoneSubnetType, "subnets")
	case len(spec.AvailabilityZones) > 0:
		return in.subnets(net, at, nil, spec.AvailabilityZones, expinfrav1.AZSubnetTypeAll, "subnets")
	}
	kind := expinfrav1.AZSubnetTypePrivate
	if len(net.subnetsOfKind(false)) == 0 {
		kind = expinfrav1.AZSubnetTypePublic
	}
	return in.subnets(net, in.m.Origin("MachinePool/"+pool.Object.Name, "spec.failureDomains"), nil, pool.Object.Spec.FailureDomains, kind, "subnets")
}

// filteredSubnets lists the subnets that match all filters of a pool: those of the cluster, which
// may not exist yet, and others of an existing VPC. As in CAPA, the filters of all entries of the
// list count, and subnets for pods are left out (SubnetIDs in pkg/cloud/services/autoscaling).
func filteredSubnets(g *graph.Graph, in inputs, net network, pool string, filters []infrav1.Filter, x group) (out []*graph.Ref[ec2.SubnetState]) {
	found := in.inv.PoolSubnets[pool]
	own := func(s subnet, f ec2.SubnetState) bool { return s.is(f.ID) || in.observedAs(s, f.ID) }
	for _, s := range net.subnets {
		observed := slices.ContainsFunc(found, func(f ec2.SubnetState) bool { return own(s, f) })
		if !s.secondary && (observed || s.matches(filters) || in.matchesTagged(s, filters)) {
			out = append(out, s.ref)
		}
	}
	if in.spec.NetworkSpec.VPC.ID == "" {
		return out
	}
	for _, f := range found {
		if isSecondary(f.Tags) || slices.ContainsFunc(net.subnets, func(s subnet) bool { return own(s, f) }) {
			continue
		}
		out = append(out, lookupInVPC(g, in, net.vpc, plan.ID("subnet/"+f.ID), ec2.SubnetByID(net.vpc, f.ID), x.specAt, "spec"))
	}
	return out
}

// matchesTagged reports whether a listed subnet of an existing VPC matches filters as soon as this
// run has set its tags.
func (in inputs) matchesTagged(s subnet, filters []infrav1.Filter) bool {
	seen, ok := in.observedSubnet(s.name)
	return ok && matchFilters(filters, seen.Tags.With(in.existingTags(s)), map[string]string{
		"availability-zone": seen.Zone, "availabilityZone": seen.Zone, "cidr-block": seen.CIDR, "cidrBlock": seen.CIDR, "cidr": seen.CIDR,
		"vpc-id": seen.VPC, "subnet-id": seen.ID,
	})
}

func describeFilters(filters []infrav1.Filter) string {
	var words []string
	for _, f := range filters {
		words = append(words, f.Name+"="+strings.Join(f.Values, ","))
	}
	return strings.Join(words, " ")
}
