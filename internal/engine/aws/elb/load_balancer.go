package elb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// LoadBalancer is a network load balancer (CAPA:
// spec.controlPlaneLoadBalancer with loadBalancerType nlb).
type LoadBalancer struct {
	Name      string
	VPC       *graph.Ref[ec2.VPCState]
	Internet  *graph.Ref[ec2.InternetGatewayState] // nil for an internal one, and in a VPC that is somebody else's
	Subnets   []*graph.Ref[ec2.SubnetState]
	Groups    []*graph.Ref[ec2.SecurityGroupState]
	ExtraIDs  []string // security groups that somebody else brings
	Internal  bool
	DualStack bool
	CrossZone bool
	Tags      cloud.Tags
}

// LoadBalancerState is a load balancer that exists.
type LoadBalancerState struct {
	identity.Object // the ID is its ARN
	Name, DNS, VPC  string
	Status          string
	Internal        bool
	Subnets, Groups []string
	CrossZone       bool
	IPType          string
}

var (
	_ graph.Managed[LoadBalancerState] = (*LoadBalancer)(nil)
	_ graph.Timed                      = (*LoadBalancer)(nil)
)

// Needs implements graph.Desired.
func (l *LoadBalancer) Needs() []graph.Edge {
	needs := append(graph.Exists(l.VPC), graph.On(l.Internet)...)
	for _, s := range l.Subnets {
		needs = append(needs, graph.Exists(s)...)
	}
	for _, g := range l.Groups {
		needs = append(needs, graph.Exists(g)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (l *LoadBalancer) Takes() (create, remove time.Duration) { return loadBalancerCreateTime, 0 }

// Find implements graph.Desired.
func (l *LoadBalancer) Find(ctx context.Context, c *cloud.Clients) (*LoadBalancerState, error) {
	s, err := loadBalancerByName(ctx, c, l.Name)
	if s == nil {
		return nil, err
	}
	vpc, ok := l.VPC.Found()
	switch {
	case !ok || s.VPC != vpc.ID:
		return nil, fmt.Errorf("there is a load balancer named %s in VPC %s: give this cluster's another name in spec.controlPlaneLoadBalancer.name", l.Name, s.VPC)
	case s.Status != string(types.LoadBalancerStateEnumActive):
		return s, nil // nothing is changed before it is active, so nothing more is asked
	}
	if err := s.complete(ctx, c); err != nil {
		return nil, err
	}
	if s.Tags[c.OwnerTag()] != cloud.Owned {
		return nil, fmt.Errorf("load balancer %s does not carry the tag %s=%s", l.Name, c.OwnerTag(), cloud.Owned)
	}
	return s, nil
}

// Diff implements graph.Desired.
func (l *LoadBalancer) Diff(have *LoadBalancerState) (d graph.Diff) {
	d.Await("state", have.Status, string(types.LoadBalancerStateEnumActive))
	if have.Status == string(types.LoadBalancerStateEnumProvisioning) {
		return d
	}
	d.Fixed("name", have.Name, l.Name)
	d.Fixed("internal", have.Internal, l.Internal)
	d.Set("ipAddressType", have.IPType, l.ipType())
	d.Set("crossZone", have.CrossZone, l.CrossZone)
	d.Lines("subnet", have.Subnets, identity.CloudIDs(l.Subnets))
	if len(have.Groups) > 0 || have.ID == "" { // one that was made without groups never gets any
		d.Lines("securityGroup", have.Groups, append(identity.CloudIDs(l.Groups), l.ExtraIDs...))
	}
	d.Tags(have.Tags, l.Tags)
	return d
}

func (l *LoadBalancer) ipType() string {
	if l.DualStack {
		return string(types.IpAddressTypeDualstack)
	}
	return string(types.IpAddressTypeIpv4)
}

// Create implements graph.Creator.
func (l *LoadBalancer) Create(ctx context.Context, c *cloud.Clients) (*LoadBalancerState, error) {
	in := &elb.CreateLoadBalancerInput{
		Name: &l.Name, Type: types.LoadBalancerTypeEnumNetwork, Scheme: types.LoadBalancerSchemeEnumInternetFacing,
		IpAddressType:  types.IpAddressType(l.ipType()),
		Subnets:        identity.CloudIDs(l.Subnets),
		SecurityGroups: append(identity.CloudIDs(l.Groups), l.ExtraIDs...),
		Tags:           sdkTags(l.Tags),
	}
	if l.Internal {
		in.Scheme = types.LoadBalancerSchemeEnumInternal
	}
	out, err := c.ELBV2.CreateLoadBalancer(ctx, in)
	if err != nil || len(out.LoadBalancers) == 0 {
		return nil, err
	}
	s := loadBalancerState(out.LoadBalancers[0])
	s.Tags = l.Tags
	return &s, nil
}

// Update implements graph.Updater.
func (l *LoadBalancer) Update(ctx context.Context, c *cloud.Clients, have *LoadBalancerState, d graph.Diff) (*LoadBalancerState, error) {
	var errs []error
	try := func(wanted bool, call func() error) {
		if wanted && len(errs) == 0 {
			if err := call(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	try(d.Has("crossZone"), func() error {
		_, err := c.ELBV2.ModifyLoadBalancerAttributes(ctx, &elb.ModifyLoadBalancerAttributesInput{LoadBalancerArn: &have.ID, Attributes: []types.LoadBalancerAttribute{
			{Key: aws.String(crossZoneAttribute), Value: aws.String(fmt.Sprint(l.CrossZone))},
		}})
		return err
	})
	try(d.Has("securityGroup"), func() error {
		_, err := c.ELBV2.SetSecurityGroups(ctx, &elb.SetSecurityGroupsInput{LoadBalancerArn: &have.ID, SecurityGroups: append(identity.CloudIDs(l.Groups), l.ExtraIDs...)})
		return err
	})
	try(d.Has("subnet", "ipAddressType"), func() error {
		_, err := c.ELBV2.SetSubnets(ctx, &elb.SetSubnetsInput{LoadBalancerArn: &have.ID, Subnets: identity.CloudIDs(l.Subnets), IpAddressType: types.IpAddressType(l.ipType())})
		return err
	})
	try(d.HasTags(), func() error { return addTags(ctx, c, have.ID, l.Tags) })
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return nil, nil // several answers, none of them whole: look again
}

// Delete implements graph.Deleter. Its listeners go with it.
func (l *LoadBalancer) Delete(ctx context.Context, c *cloud.Clients, have *LoadBalancerState) error {
	_, err := c.ELBV2.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerArn: &have.ID})
	return err
}

const crossZoneAttribute = "load_balancing.cross_zone.enabled"

// LoadBalancers lists all load balancers of the region that are not classic:
// their names are unique in it.
func LoadBalancers(ctx context.Context, c *cloud.Clients) ([]LoadBalancerState, error) {
	return cloud.Remember(ctx, c, "load balancers", func(ctx context.Context) ([]LoadBalancerState, error) {
		p := elb.NewDescribeLoadBalancersPaginator(c.ELBV2, &elb.DescribeLoadBalancersInput{})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*elb.DescribeLoadBalancersOutput, error) { return p.NextPage(ctx) },
			func(o *elb.DescribeLoadBalancersOutput) (out []LoadBalancerState) {
				for _, x := range o.LoadBalancers {
					out = append(out, loadBalancerState(x))
				}
				return out
			})
	})
}

func loadBalancerByName(ctx context.Context, c *cloud.Clients, name string) (*LoadBalancerState, error) {
	all, err := LoadBalancers(ctx, c)
	for _, x := range all {
		if x.Name == name {
			return &x, err
		}
	}
	return nil, err
}

func loadBalancerState(x types.LoadBalancer) LoadBalancerState {
	s := LoadBalancerState{
		Object: identity.Object{ID: aws.ToString(x.LoadBalancerArn)}, Name: aws.ToString(x.LoadBalancerName), DNS: aws.ToString(x.DNSName), VPC: aws.ToString(x.VpcId),
		Internal: x.Scheme == types.LoadBalancerSchemeEnumInternal, Groups: x.SecurityGroups, IPType: string(x.IpAddressType),
	}
	if x.State != nil {
		s.Status = string(x.State.Code)
	}
	for _, z := range x.AvailabilityZones {
		s.Subnets = append(s.Subnets, aws.ToString(z.SubnetId))
	}
	return s
}

// complete asks for what listings leave out: attributes and tags.
func (s *LoadBalancerState) complete(ctx context.Context, c *cloud.Clients) (err error) {
	if cloud.IsBrief(ctx) {
		s.Tags, err = describeTags(ctx, c, s.ID)
		return err
	}
	attributes, err := cloud.Remember(ctx, c, "attributes of "+s.ID, func(ctx context.Context) (*elb.DescribeLoadBalancerAttributesOutput, error) {
		return c.ELBV2.DescribeLoadBalancerAttributes(ctx, &elb.DescribeLoadBalancerAttributesInput{LoadBalancerArn: &s.ID})
	})
	if err != nil {
		return err
	}
	for _, a := range attributes.Attributes {
		if aws.ToString(a.Key) == crossZoneAttribute {
			s.CrossZone = aws.ToString(a.Value) == "true"
		}
	}
	s.Tags, err = describeTags(ctx, c, s.ID)
	return err
}

// LoadBalancerByName looks up a load balancer that is somebody else's.
func LoadBalancerByName(name string) graph.Lookup[LoadBalancerState] {
	return func(ctx context.Context, c *cloud.Clients) (*LoadBalancerState, error) {
		s, err := loadBalancerByName(ctx, c, name)
		if s == nil {
			return nil, err
		}
		return s, s.complete(ctx, c)
	}
}

// ExistingLoadBalancer reports whether a load balancer of that name exists that
// is not the cluster's: one that the user brings.
func ExistingLoadBalancer(ctx context.Context, c *cloud.Clients, name string) (bool, error) {
	s, err := loadBalancerByName(ctx, c, name)
	if s == nil {
		return false, err
	}
	s.Tags, err = describeTags(ctx, c, s.ID)
	return s.Tags[c.OwnerTag()] != cloud.Owned, err
}

// describeTags returns the tags of one thing of Elastic Load Balancing. Askers at
// the same time share a call for up to 20 of them.
func describeTags(ctx context.Context, c *cloud.Clients, arn string) (cloud.Tags, error) {
	return cloud.Remember(ctx, c, "tags of "+arn, func(ctx context.Context) (cloud.Tags, error) {
		return cloud.Batch(ctx, c, "elbv2 tags", arn, func(ctx context.Context, arns []string) ([]cloud.Tags, error) {
			found := map[string]cloud.Tags{}
			for part := range slices.Chunk(arns, 20) {
				out, err := c.ELBV2.DescribeTags(ctx, &elb.DescribeTagsInput{ResourceArns: part})
				if err != nil {
					return nil, err
				}
				for _, d := range out.TagDescriptions {
					tags := cloud.Tags{}
					for _, t := range d.Tags {
						tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
					}
					found[aws.ToString(d.ResourceArn)] = tags
				}
			}
			return inOrder(arns, found), nil
		})
	})
}

func sdkTags(t cloud.Tags) (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	return out
}

func addTags(ctx context.Context, c *cloud.Clients, arn string, tags cloud.Tags) error {
	_, err := c.ELBV2.AddTags(ctx, &elb.AddTagsInput{ResourceArns: []string{arn}, Tags: sdkTags(tags)})
	return err
}

// TaggedEndpoint returns host and port of the API server at the load balancer
// that carries the cluster's tag; "" when there is none.
func TaggedEndpoint(ctx context.Context, c *cloud.Clients) (string, error) {
	balancers, err := loadBalancersOf(ctx, c, kind.Owner{Cluster: c.Cluster})
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(balancers, func(a, b LoadBalancerState) int { return identity.TrueFirst(!a.Internal, !b.Internal) })
	for _, lb := range balancers {
		all, err := Listeners(ctx, c, lb.ID)
		for _, l := range all {
			tags, err := describeTags(ctx, c, l.ID)
			if err != nil {
				return "", err
			}
			if strings.HasSuffix(tags[cloud.ResourceTag], "/api") || len(all) == 1 {
				return fmt.Sprintf("%s:%d", lb.DNS, l.Port), nil
			}
		}
		if err != nil {
			return "", err
		}
	}
	classic, err := classicLoadBalancersOf(ctx, c, kind.Owner{Cluster: c.Cluster})
	for _, lb := range classic {
		for _, l := range lb.Listeners {
			var port int
			if _, err := fmt.Sscanf(l, "TCP %d", &port); err == nil {
				return fmt.Sprintf("%s:%d", lb.DNS, port), nil
			}
		}
	}
	return "", err
}

// loadBalancersOf lists the load balancers of a cluster: those that were created for
// it, and those that controllers in it created.
func loadBalancersOf(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]LoadBalancerState, error) {
	all, err := LoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	return filterByOwner(all, of, func(s LoadBalancerState) (cloud.Tags, error) { return describeTags(ctx, c, s.ID) }, func(s *LoadBalancerState, tags cloud.Tags) { s.Tags = tags })
}

// filterByOwner asks for the tags of all of a listing at the same time, so that they share
// calls, and returns those of a cluster.
func filterByOwner[S any](all []S, of kind.Owner, ask func(S) (cloud.Tags, error), set func(*S, cloud.Tags)) (out []S, err error) {
	var wg sync.WaitGroup
	tags, errs := make([]cloud.Tags, len(all)), make([]error, len(all))
	for i, s := range all {
		wg.Go(func() { tags[i], errs[i] = ask(s) })
	}
	wg.Wait()
	for i, s := range all {
		if of.Has(tags[i]) {
			set(&s, tags[i])
			out = append(out, s)
		}
	}
	return out, errors.Join(errs...)
}

// loadBalancerCreateTime is how long AWS usually takes to provision a load balancer.
const loadBalancerCreateTime = 150 * time.Second

// loadBalancerKind declares network load balancers, and those that the AWS Load Balancer Controller creates.
func loadBalancerKind() *kind.Any {
	return kind.Of(kind.Kind[LoadBalancerState]{
		Name: "load-balancer", Area: kind.AreaLoadBalancer, List: loadBalancersOf, Delete: &LoadBalancer{},
		Refers:      func(s LoadBalancerState) []string { return refersTo(s.VPC, s.Subnets, s.Groups, s.Internal) },
		Status:      func(s LoadBalancerState) (state, detail string) { return s.Status, s.DNS },
		ReadActions: []string{"elasticloadbalancing:DescribeLoadBalancerAttributes", "elasticloadbalancing:DescribeLoadBalancers", "elasticloadbalancing:DescribeTags"},
		Statement:   kind.LoadBalancers,
		Actions: []string{
			"elasticloadbalancing:AddTags", "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:DeleteLoadBalancer",
			"elasticloadbalancing:ModifyLoadBalancerAttributes", "elasticloadbalancing:SetSecurityGroups", "elasticloadbalancing:SetSubnets",
		},
	})
}

// refersTo lists what a load balancer refers to.
func refersTo(vpc string, subnets, groups []string, internal bool) []string {
	out := slices.Concat([]string{vpc, ec2.InterfacesAlias(vpc)}, subnets, groups)
	for _, g := range groups {
		out = append(out, ec2.InterfacesAlias(g))
	}
	if !internal {
		out = append(out, ec2.InternetGatewayAlias(vpc))
	}
	return out
}
