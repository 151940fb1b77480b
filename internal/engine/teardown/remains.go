package teardown

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
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
	Retire func(g *graph.Graph, id graph.ID, hangs []graph.Edge) graph.Resource

	found *Found
}

// String prints a thing as it is told to users: "subnet subnet-0123 (demo-subnet-public-us-east-1a)".
func (r Remain) String() string {
	if r.Name == "" || r.Name == r.ID {
		return r.Kind + " " + r.ID
	}
	return r.Kind + " " + r.ID + " (" + r.Name + ")"
}

// Origin says how it was found, or who made it.
func (r Remain) Origin() string { return r.found.Origin }

// Ranks of kinds: what ranks higher hangs on what ranks lower.
const (
	RankVPC = iota
	RankInVPC
	RankInterfaces
	RankUnderneath
	RankEKS
	RankBeneathServed // what load balancers that were made in the cluster use
	RankServedInterfaces
	RankServed // load balancers and volumes that were made in the cluster: they go after the machines
	RankOnTop
	RankOnCluster
	RankSecret
)

// remain makes a Remain out of a state.
func remain[S graph.State](kind string, rank int, s S, o identity.Object, goes time.Duration, again graph.Lookup[S], remove func(context.Context, *cloud.Clients, *S) error) Remain {
	return found(again, remove, goes, nil).remain(kind, rank, s.CloudID(), o)
}

func (f *Found) remain(kind string, rank int, id string, o identity.Object) Remain {
	return Remain{Kind: kind, ID: id, Name: o.Tags["Name"], Node: o.Tags[cloud.ResourceTag], Rank: rank, Retire: f.retire, found: f}
}

// addOwned looks for a thing and adds it if it carries the tag of the cluster.
func (r *Remains) addOwned(ctx context.Context, c *cloud.Clients, kind string, rank int, f *Found) error {
	s, err := f.Again(ctx, c)
	s, err = identity.IfOwned(c, s, err)
	if o, ok := s.(interface{ Identity() identity.Object }); ok { // nil is not
		*r = append(*r, f.remain(kind, rank, s.CloudID(), o.Identity()))
	}
	return err
}

// autoScalingGroup stands in for a kind of EC2's: groups are none.
const autoScalingGroup types.ResourceType = "auto-scaling-group"

// List lists everything that carries the tag of the cluster, or was made
// in it, but for what is claimed by ID. One question finds out what there is;
// only kinds of which something is not claimed are looked at.
func List(ctx context.Context, c *cloud.Clients, claimed map[string]bool) (out Remains, err error) {
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
	signs, err := lookForSigns(ctx, c, claimed)
	if err != nil {
		return nil, err
	}
	kinds := signs.kinds
	kinds[autoScalingGroup] = kinds[types.ResourceTypeLaunchTemplate] // a group goes before its template
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
		{types.ResourceTypeVolume, remainingVolumes},
		{"", signs.remainingInterfaces},
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
	slices.SortStableFunc(out, func(a, b Remain) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Node, b.Node), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

func remainingVPCs(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.VPCs(ctx, c)
	for _, x := range all {
		if s := ec2.VPCSeen(x); s.Tags[c.OwnerTag()] == cloud.Owned {
			out = append(out, remain("vpc", RankVPC, s, s.Object, 0, ec2.VPCByID(s.ID), (&ec2.VPC{}).Delete))
		}
	}
	return out, err
}

func remainingSubnets(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.Subnets(ctx, c)
	for _, s := range all {
		out = append(out, remain("subnet", RankInVPC, s, s.Object, 0, listed(s.ID, ec2.Subnets), (&ec2.Subnet{}).Delete))
	}
	return out, err
}

func remainingGateways(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.InternetGateways(ctx, c)
	for _, s := range all {
		out = append(out, remain("internet-gateway", RankInVPC, s, s.Object, 0, listed(s.ID, ec2.InternetGateways), (&ec2.InternetGateway{}).Delete))
	}
	return out, err
}

func remainingEgressOnly(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.EgressOnlyGateways(ctx, c)
	for _, s := range all {
		out = append(out, remain("egress-only-gateway", RankInVPC, s, s.Object, 0, listed(s.ID, ec2.EgressOnlyGateways), (&ec2.EgressOnlyGateway{}).Delete))
	}
	return out, err
}

func remainingTables(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.RouteTables(ctx, c)
	for _, s := range all {
		out = append(out, remain("route-table", RankUnderneath, s, s.Object, 0, listed(s.ID, ec2.RouteTables), (&ec2.RouteTable{}).Delete))
	}
	return out, err
}

// ownAddresses lists the addresses that carry the tag of the cluster.
func ownAddresses(ctx context.Context, c *cloud.Clients) ([]ec2.ElasticIPState, error) {
	all, err := ec2.Addresses(ctx, c)
	return slices.DeleteFunc(slices.Clone(all), func(s ec2.ElasticIPState) bool { return s.Tags[c.OwnerTag()] != cloud.Owned }), err
}

func remainingAddresses(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ownAddresses(ctx, c)
	for _, s := range all {
		out = append(out, remain("elastic-ip", RankUnderneath, s, s.Object, 0, listed(s.ID, ownAddresses), (&ec2.ElasticIP{}).Delete))
	}
	return out, err
}

func remainingNATs(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.NATGateways(ctx, c)
	for _, s := range all {
		out = append(out, remain("nat-gateway", RankOnTop, s, s.Object, ec2.NATGatewayGoes, listed(s.ID, ec2.NATGateways), (&ec2.NATGateway{}).Delete))
	}
	return out, err
}

func remainingEndpoints(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.Endpoints(ctx, c)
	for _, s := range all {
		out = append(out, remain("vpc-endpoint", RankOnTop, s, s.Object, ec2.EndpointGoes, listed(s.ID, ec2.Endpoints), (&ec2.GatewayEndpoint{}).Delete))
	}
	return out, err
}

func remainingInstances(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.Instances(ctx, c)
	for _, s := range all {
		out = append(out, remain("machine", RankOnTop, s, s.Object, ec2.InstanceGoes, listed(s.ID, ec2.Instances), (&ec2.Instance{}).Delete))
	}
	return out, err
}

func remainingTemplates(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.LaunchTemplates(ctx, c)
	for _, s := range all {
		out = append(out, remain("launch-template", RankUnderneath, s, s.Object, 0, listed(s.ID, ec2.LaunchTemplates), (&ec2.LaunchTemplate{}).Delete))
	}
	return out, err
}

func remainingPools(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := autoscaling.Groups(ctx, c)
	_, goes := (&autoscaling.Group{}).Takes()
	for _, s := range all {
		out = append(out, remain("auto-scaling-group", RankOnTop, s, s.Object, goes, listed(s.ID, autoscaling.Groups), (&autoscaling.Group{}).Delete))
	}
	return out, err
}

// remainingSecrets lists the cluster's keys and what machines boot with.
func remainingSecrets(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	kept, err := secrets.PKIParameters(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(kept.Parts) > 0 {
		keys := &secrets.PKI{}
		out = append(out, remain("certificates", RankSecret, secrets.PKIState{Path: c.ParameterPath("pki")}, identity.Object{}, 0, keys.Kept, keys.Delete))
	}
	marked, err := secrets.Initialized(ctx, c)
	if err != nil {
		return nil, err
	}
	if marked != "" {
		m := &secrets.InitMarker{}
		out = append(out, remain("init-marker", RankSecret, ec2.Named(c.ParameterPath("init")), identity.Object{}, 0, m.Find, m.Delete))
	}
	for _, backend := range []boot.Backend{boot.SecretsManager, boot.ParameterStore} {
		b := &secrets.BootstrapSecrets{Backend: backend}
		s, err := b.Find(ctx, c)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, remain(map[boot.Backend]string{boot.SecretsManager: "bootstrap-secrets", boot.ParameterStore: "bootstrap-parameters"}[backend], RankSecret, *s, identity.Object{}, 0, b.Find, b.Delete))
		}
	}
	return out, nil
}
