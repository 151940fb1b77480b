package resource

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"clusterawsadm/internal/cloud"
	"clusterawsadm/internal/ordered"
	"clusterawsadm/pkg/reconcile/boot"
	"clusterawsadm/pkg/reconcile/graph"
)

// Remains is what carries the tag of a cluster, in the order in which it can
// be made: what comes later hangs on what comes before.
type Remains []Remain

// Remain is one thing that carries the tag of a cluster.
type Remain struct {
	Kind, ID, Name string
	Node           string // its node tag; "" for what Cluster API made
	Rank           int    // things of a rank hang on those of lower ranks
	// Retire adds the thing to a graph, to be removed.
	Retire func(g *graph.Graph, id graph.ID, hangs []graph.Edge) graph.Node
}

// String prints a thing as it is told to users: "subnet subnet-0123 (demo-subnet-public-us-east-1a)".
func (r Remain) String() string {
	if r.Name == "" || r.Name == r.ID {
		return r.Kind + " " + r.ID
	}
	return r.Kind + " " + r.ID + " (" + r.Name + ")"
}

// Ranks of kinds: what ranks higher hangs on what ranks lower.
const (
	RankVPC = iota
	RankInVPC
	RankInterfaces
	RankUnderneath
	RankOnTop
	RankOnCluster
	RankSecret
)

// remain makes a Remain out of a state.
func remain[S graph.State](kind string, rank int, s S, o Object, goes time.Duration, again graph.Lookup[S], remove func(context.Context, *cloud.Clients, *S) error) Remain {
	f := found(again, remove, goes, nil)
	return Remain{Kind: kind, ID: s.CloudID(), Name: o.Tags["Name"], Node: o.Tags[cloud.NodeTag], Rank: rank, Retire: f.retire}
}

// autoScalingGroup stands in for a kind of EC2's: groups are none.
const autoScalingGroup types.ResourceType = "auto-scaling-group"

// AllRemains lists everything that carries the tag of the cluster, but for
// what is claimed by ID. One question finds out what there is; only kinds of
// which something is not claimed are looked at.
func AllRemains(ctx context.Context, c *cloud.Clients, claimed map[string]bool) (out Remains, err error) {
	kinds, err := unclaimedKinds(ctx, c, claimed)
	if err != nil {
		return nil, err
	}
	kinds[autoScalingGroup] = kinds[types.ResourceTypeLaunchTemplate] // a group goes before its template
	ctx = cloud.Briefly(ctx)
	if len(claimed) == 0 { // only the name is known: it may be a cluster of EKS
		for _, list := range []func(context.Context, *cloud.Clients) (Remains, error){remainingEKS, remainingIAM} {
			found, err := list(ctx, c)
			if err != nil && !cloud.Denied(err) { // who may not ask did not make one
				return nil, err
			}
			out = append(out, found...)
		}
	}
	for _, k := range []struct {
		kind types.ResourceType
		list func(context.Context, *cloud.Clients) (Remains, error)
	}{
		{types.ResourceTypeVpc, remainingVPCs},
		{types.ResourceTypeSubnet, remainingSubnets},
		{types.ResourceTypeInternetGateway, remainingGateways},
		{types.ResourceTypeEgressOnlyInternetGateway, remainingEgressOnly},
		{types.ResourceTypeSecurityGroup, remainingGroups},
		{types.ResourceTypeRouteTable, remainingTables},
		{types.ResourceTypeElasticIp, remainingAddresses},
		{types.ResourceTypeNatgateway, remainingNATs},
		{types.ResourceTypeVpcEndpoint, remainingEndpoints},
		{types.ResourceTypeInstance, remainingInstances},
		{types.ResourceTypeLaunchTemplate, remainingTemplates},
		{autoScalingGroup, remainingPools},
		{types.ResourceTypeSubnet, remainingSubnetTags},
		{"", remainingBalancers},
		{"", remainingBucket},
		{"", remainingSecrets},
	} {
		if k.kind != "" && !kinds[k.kind] {
			continue
		}
		found, err := k.list(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	ordered.By(out, func(a, b Remain) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// unclaimedKinds lists the kinds of EC2's things that carry the tag of the
// cluster and are not claimed. They may be gone: AWS keeps tags for an hour.
func unclaimedKinds(ctx context.Context, c *cloud.Clients, claimed map[string]bool) (map[types.ResourceType]bool, error) {
	kinds := map[types.ResourceType]bool{}
	in := &ec2.DescribeTagsInput{Filters: []types.Filter{cloud.Filter("key", c.OwnerTag(), addedTagPrefix+c.Cluster)}}
	for p := ec2.NewDescribeTagsPaginator(c.EC2, in); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range typed(page.Tags) {
			if !claimed[str(t.ResourceId)] && (str(t.Key) != c.OwnerTag() || str(t.Value) == cloud.Owned) {
				kinds[t.ResourceType] = true
			}
		}
	}
	return kinds, nil
}

func remainingVPCs(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := vpcs(ctx, c)
	for _, x := range all {
		if s := vpcSeen(x); s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, remain("vpc", RankVPC, s, s.Object, 0, VPCByID(s.ID), (&VPC{}).Delete))
		}
	}
	return out, err
}

func remainingSubnets(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := subnets(ctx, c)
	for _, s := range all {
		out = append(out, remain("subnet", RankInVPC, s, s.Object, 0, listed(s.ID, subnets), (&Subnet{}).Delete))
	}
	return out, err
}

func remainingGateways(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := internetGateways(ctx, c)
	for _, s := range all {
		out = append(out, remain("internet-gateway", RankInVPC, s, s.Object, 0, listed(s.ID, internetGateways), (&InternetGateway{}).Delete))
	}
	return out, err
}

func remainingEgressOnly(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := egressOnlyGateways(ctx, c)
	for _, s := range all {
		out = append(out, remain("egress-only-gateway", RankInVPC, s, s.Object, 0, listed(s.ID, egressOnlyGateways), (&EgressOnlyGateway{}).Delete))
	}
	return out, err
}

// ownGroups lists the security groups that carry the tag of the cluster.
func ownGroups(ctx context.Context, c *cloud.Clients) ([]SecurityGroupState, error) {
	return cloud.Remember(ctx, c, "security groups by tag", func(ctx context.Context) ([]SecurityGroupState, error) {
		p := ec2.NewDescribeSecurityGroupsPaginator(c.EC2, &ec2.DescribeSecurityGroupsInput{Filters: c.Ours()})
		return pages(ctx, p.HasMorePages, func(ctx context.Context) (*ec2.DescribeSecurityGroupsOutput, error) { return p.NextPage(ctx) }, securityGroupsSeen)
	})
}

// remainingGroups lists security groups; before one is removed its rules are,
// since they may name another that is to go too.
func remainingGroups(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ownGroups(ctx, c)
	vpcs := map[string][]string{}
	for _, s := range all {
		vpcs[s.VPC] = append(vpcs[s.VPC], s.ID)
		out = append(out, remain("security-group", RankInVPC, s, s.Object, 0, listed(s.ID, ownGroups), func(ctx context.Context, c *cloud.Clients, have *SecurityGroupState) error {
			lines := &SecurityGroupRulesState{have.ID, permissionLines(have.Ingress)}
			if err := (&SecurityGroupRules{}).Delete(ctx, c, lines); err != nil {
				return err
			}
			return (&SecurityGroup{}).Delete(ctx, c, have)
		}))
	}
	for vpc, groups := range vpcs {
		out = append(out, remainingInterfaces(vpc, groups))
	}
	return out, err
}

// remainingInterfaces stands for the network interfaces that hang around in
// the groups. There may be none: it is there for those that turn up.
func remainingInterfaces(vpc string, groups []string) Remain {
	return Remain{Kind: "network-interfaces", ID: vpc, Rank: RankInterfaces, Retire: func(g *graph.Graph, id graph.ID, hangs []graph.Edge) graph.Node {
		again := func(ctx context.Context, c *cloud.Clients) (*NetworkInterfacesState, error) {
			return lingering(ctx, c, vpc, groups)
		}
		return graph.Sweep(g, id, found(again, (&NetworkInterfaces{}).Delete, interfacesGo, hangs))
	}}
}

func remainingTables(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := routeTables(ctx, c)
	for _, s := range all {
		out = append(out, remain("route-table", RankUnderneath, s, s.Object, 0, listed(s.ID, routeTables), (&RouteTable{}).Delete))
	}
	return out, err
}

// ownAddresses lists the addresses that carry the tag of the cluster.
func ownAddresses(ctx context.Context, c *cloud.Clients) ([]ElasticIPState, error) {
	all, err := addresses(ctx, c)
	return slices.DeleteFunc(slices.Clone(all), func(s ElasticIPState) bool { return s.Tags[c.OwnerTag()] != cloud.Owned }), err
}

func remainingAddresses(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ownAddresses(ctx, c)
	for _, s := range all {
		out = append(out, remain("elastic-ip", RankUnderneath, s, s.Object, 0, listed(s.ID, ownAddresses), (&ElasticIP{}).Delete))
	}
	return out, err
}

func remainingNATs(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := natGateways(ctx, c)
	for _, s := range all {
		out = append(out, remain("nat-gateway", RankOnTop, s, s.Object, natGatewayGoes, listed(s.ID, natGateways), (&NATGateway{}).Delete))
	}
	return out, err
}

func remainingEndpoints(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := endpoints(ctx, c)
	for _, s := range all {
		out = append(out, remain("vpc-endpoint", RankOnTop, s, s.Object, endpointGoes, listed(s.ID, endpoints), (&GatewayEndpoint{}).Delete))
	}
	return out, err
}

func remainingInstances(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := Instances(ctx, c)
	for _, s := range all {
		out = append(out, remain("machine", RankOnTop, s, s.Object, instanceGoes, listed(s.ID, Instances), (&Instance{}).Delete))
	}
	return out, err
}

func remainingTemplates(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := launchTemplates(ctx, c)
	for _, s := range all {
		out = append(out, remain("launch-template", RankUnderneath, s, s.Object, 0, listed(s.ID, launchTemplates), (&LaunchTemplate{}).Delete))
	}
	return out, err
}

func remainingPools(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := autoScalingGroups(ctx, c)
	_, goes := (&AutoScalingGroup{}).Takes()
	for _, s := range all {
		out = append(out, remain("auto-scaling-group", RankOnTop, s, s.Object, goes, listed(s.ID, autoScalingGroups), (&AutoScalingGroup{}).Delete))
	}
	return out, err
}

// ownBalancers lists the load balancers that carry the tag of the cluster.
func ownBalancers(ctx context.Context, c *cloud.Clients) (out []LoadBalancerState, err error) {
	all, err := loadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Tags, err = tagsELB(ctx, c, s.ID); err != nil {
			return nil, err
		}
		if s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, s)
		}
	}
	return out, nil
}

func ownTargetGroups(ctx context.Context, c *cloud.Clients) (out []TargetGroupState, err error) {
	all, err := targetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if !strings.HasPrefix(s.Name, "apiserver-target-") && !strings.HasPrefix(s.Name, "additional-listener-") {
			continue // tags cost a call
		}
		if s.Tags, err = tagsELB(ctx, c, s.ID); err != nil {
			return nil, err
		}
		if s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, s)
		}
	}
	return out, nil
}

func ownClassic(ctx context.Context, c *cloud.Clients) (out []ClassicLoadBalancerState, err error) {
	all, err := classicLoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Tags, err = classicTagsOf(ctx, c, s.ID); err != nil {
			return nil, err
		}
		if s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, s)
		}
	}
	return out, nil
}

func remainingBalancers(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	groups, err := ownTargetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range groups {
		out = append(out, remain("target-group", RankUnderneath, s, s.Object, 0, listed(s.ID, ownTargetGroups), (&TargetGroup{}).Delete))
	}
	balancers, err := ownBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range balancers {
		out = append(out, remain("load-balancer", RankOnTop, s, s.Object, 0, listed(s.ID, ownBalancers), (&LoadBalancer{}).Delete))
	}
	classic, err := ownClassic(ctx, c)
	for _, s := range classic {
		out = append(out, remain("load-balancer", RankOnTop, s, s.Object, 0, listed(s.ID, ownClassic), (&ClassicLoadBalancer{}).Delete))
	}
	return out, err
}

// remainingSecrets lists the cluster's keys and what machines boot with.
func remainingSecrets(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	kept, err := keptPKI(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(kept.parts) > 0 {
		keys := &PKI{}
		out = append(out, remain("certificates", RankSecret, PKIState{Path: c.ParameterPath("pki")}, Object{}, 0, keys.kept, keys.Delete))
	}
	marked, err := Initialized(ctx, c)
	if err != nil {
		return nil, err
	}
	if marked != "" {
		m := &InitMarker{}
		out = append(out, remain("init-marker", RankSecret, Named(c.ParameterPath("init")), Object{}, 0, m.Find, m.Delete))
	}
	for _, backend := range []boot.Backend{boot.SecretsManager, boot.ParameterStore} {
		b := &BootstrapSecrets{backend}
		s, err := b.Find(ctx, c)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, remain(map[boot.Backend]string{boot.SecretsManager: "bootstrap-secrets", boot.ParameterStore: "bootstrap-parameters"}[backend], RankSecret, *s, Object{}, 0, b.Find, b.Delete))
		}
	}
	return out, nil
}
