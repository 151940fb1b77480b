package elb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// LoadBalancer is a Network Load Balancer (CAPA: spec.controlPlaneLoadBalancer with
// loadBalancerType nlb).
type LoadBalancer struct {
	Name      string
	VPC       *graph.Ref[ec2.VPCState]
	Internet  *graph.Ref[ec2.InternetGatewayState] // nil for an internal load balancer, and in an existing VPC
	Subnets   []*graph.Ref[ec2.SubnetState]
	Groups    []*graph.Ref[ec2.SecurityGroupState]
	ExtraIDs  []string // existing security groups
	Internal  bool
	DualStack bool
	CrossZone bool
	Tags      cloud.Tags
}

// LoadBalancerState is a load balancer, as AWS describes it.
type LoadBalancerState struct {
	identity.Object // the ID is its ARN
	Name, DNS, VPC  string
	Status, Reason  string // the reason of a status that is not active
	Internal        bool
	Subnets, Groups []string
	CrossZone       bool
	IPType          string
	Type            types.LoadBalancerTypeEnum // network, application or gateway

	born time.Time
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

// CheckCreation implements graph.CheckedCreation.
func (l *LoadBalancer) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	return noInternet(ctx, c, place{l.VPC, l.Internet, l.Subnets, l.Internal})
}

// CheckCreation implements graph.CheckedCreation.
func (l *ClassicLoadBalancer) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	return noInternet(ctx, c, place{l.VPC, l.Internet, l.Subnets, l.Internal})
}

// place is where a load balancer is.
type place struct {
	vpc      *graph.Ref[ec2.VPCState]
	own      *graph.Ref[ec2.InternetGatewayState] // that the run creates; nil in an existing VPC
	subnets  []*graph.Ref[ec2.SubnetState]
	internal bool
}

// noInternet says that the existing VPC of an internet-facing load balancer has no internet gateway: InvalidSubnet, "VPC has no internet
// gateway" (CreateLoadBalancer, both versions of the ELB API). AWS creates one in subnets whose default route leads to a NAT gateway or nowhere,
// but no client reaches it there.
func noInternet(ctx context.Context, c *cloud.Clients, at place) (refusal string, err error) {
	if at.internal || at.own != nil {
		return "", nil
	}
	if refusal, err = ec2.NoInternetGateway(ctx, c, at.vpc); refusal != "" || err != nil {
		return refusal, err
	}
	for _, s := range at.subnets {
		if refusal, err = ec2.Unreachable(ctx, c, s); refusal != "" || err != nil {
			return refusal, err
		}
	}
	return "", nil
}

// Doubts implements graph.Doubted.
func (l *LoadBalancer) Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error) {
	return withoutDNS(ctx, c, l.Subnets)
}

// withoutDNS warns of an existing VPC whose DNS server is off: machines find the API server by the name of the load balancer. The options of DHCP may
// name other servers.
func withoutDNS(ctx context.Context, c *cloud.Clients, subnets []*graph.Ref[ec2.SubnetState]) (warnings []string, err error) {
	vpc, off, err := ec2.WithoutDNS(ctx, c, subnets)
	if err != nil || !slices.Contains(off, "enableDnsSupport") {
		return nil, err
	}
	return []string{
		fmt.Sprintf("the VPC %s has enableDnsSupport off: unless its options of DHCP name other DNS servers, machines find neither AWS nor the load balancer: "+
			"turn it on (aws ec2 modify-vpc-attribute --vpc-id %[1]s --enable-dns-support)", vpc),
	}, nil
}

// Check implements graph.Checked: a load balancer has groups of its own VPC, and one subnet of a zone.
func (l *LoadBalancer) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if refusal := sameZone(l.Subnets); refusal != "" {
		return refusal, nil
	}
	return ec2.MissingGroups(ctx, c, ec2.KnownVPC(l.VPC), slices.Clone(l.ExtraIDs))
}

// sameZone says which two subnets are in one zone: a load balancer takes one of each ("Subnets" of CreateLoadBalancer, API references of both
// versions).
func sameZone(subnets []*graph.Ref[ec2.SubnetState]) string {
	in := map[string]string{}
	for _, s := range subnets {
		name, zone := string(s.ID()), ""
		if have, is := s.Found(); is {
			name, zone = have.ID, have.Zone
		} else if d, is := s.Desired().(*ec2.Subnet); is {
			zone = d.Zone
		}
		if other := in[zone]; zone != "" && other != "" && other != name {
			return fmt.Sprintf("subnets: %s and %s are both in %s, and a load balancer takes one subnet of a zone: remove one of them", other, name, zone)
		}
		in[zone] = name
	}
	return ""
}

// leastFree is how many free addresses Elastic Load Balancing demands in each subnet of a new load balancer ("Network
// Load Balancers" and "Configure subnets for your load balancer", Elastic Load Balancing user guides).
const leastFree = 8

// Addresses implements ec2.AddressUser.
func (l *LoadBalancer) Addresses(s plan.Step, _ graph.State) ec2.AddressUse {
	return addresses(s, l.Subnets)
}

// Addresses implements ec2.AddressUser.
func (l *ClassicLoadBalancer) Addresses(s plan.Step, _ graph.State) ec2.AddressUse {
	return addresses(s, l.Subnets)
}

func addresses(s plan.Step, subnets []*graph.Ref[ec2.SubnetState]) ec2.AddressUse {
	if s.Action != plan.Create {
		return ec2.AddressUse{}
	}
	return ec2.AddressUse{Subnets: subnets, Takes: len(subnets), Each: leastFree}
}

// Takes implements graph.Timed.
func (l *LoadBalancer) Takes() (create, remove time.Duration) { return loadBalancerCreateTime, 0 }

// Lingers implements graph.Lingering.
func (l *LoadBalancer) Lingers() time.Duration { return ec2.BalancerInterfacesRemain }

// Failure implements graph.Failing. AWS does not set up a load balancer that has failed any more.
func (s LoadBalancerState) Failure() string {
	if s.Status != string(types.LoadBalancerStateEnumFailed) {
		return ""
	}
	return s.Status + text.Prefixed(": ", s.Reason)
}

// Find implements graph.Desired.
func (l *LoadBalancer) Find(ctx context.Context, c *cloud.Clients) (*LoadBalancerState, error) {
	s, err := l.Identify(ctx, c, nil)
	if s == nil || err != nil || s.Status == string(types.LoadBalancerStateEnumProvisioning) { // it is not changed before it is active
		return s, err
	}
	return s, s.readAttributes(ctx, c)
}

// Identify implements graph.Identified.
func (l *LoadBalancer) Identify(ctx context.Context, c *cloud.Clients, _ *LoadBalancerState) (*LoadBalancerState, error) {
	s, err := loadBalancerByName(ctx, c, l.Name)
	if s == nil {
		return nil, err
	}
	vpc, ok := l.VPC.Found()
	switch {
	case !ok || s.VPC != vpc.ID:
		return nil, fmt.Errorf("a load balancer named %s exists in VPC %s: set another name in spec.controlPlaneLoadBalancer.name", l.Name, s.VPC)
	case s.Status == string(types.LoadBalancerStateEnumProvisioning):
		return s, nil // it may have no tags yet
	}
	if s.Tags, err = describeTags(ctx, c, s.ID); err != nil {
		return nil, err
	}
	if s.Tags[c.OwnerTag()] != cloud.Owned {
		return nil, fmt.Errorf("load balancer %s does not have the tag %s=%s: add the tag if the load balancer belongs to this cluster "+
			"(%s), or set another name in spec.controlPlaneLoadBalancer.name",
			l.Name, c.OwnerTag(), cloud.Owned, cloud.TagCommand(s.ID, c.OwnerTag(), cloud.Owned))
	}
	return s, nil
}

// Diff implements graph.Desired.
func (l *LoadBalancer) Diff(have *LoadBalancerState) (d plan.Diff) {
	switch types.LoadBalancerStateEnum(have.Status) {
	case types.LoadBalancerStateEnumFailed:
		d.Fixed("state", have.Failure(), string(types.LoadBalancerStateEnumActive))
		d.Advise("AWS does not repair it, and machines and certificates contain its name: delete the cluster, and create it again")
		return d
	case types.LoadBalancerStateEnumActiveImpaired: // it serves requests, but cannot have more
	case types.LoadBalancerStateEnumActive, types.LoadBalancerStateEnumProvisioning:
		d.Await("state", have.Status, string(types.LoadBalancerStateEnumActive))
	default:
		d.Await("state", have.Status, string(types.LoadBalancerStateEnumActive))
	}
	d.Fixed("name", have.Name, l.Name)
	d.Fixed("internal", have.Internal, l.Internal)
	if have.Status == string(types.LoadBalancerStateEnumProvisioning) {
		return d
	}
	d.Set("ipAddressType", have.IPType, l.ipType())
	d.Set("crossZone", have.CrossZone, l.CrossZone)
	d.Lines("subnet", have.Subnets, identity.CloudIDs(l.Subnets))
	if len(have.Groups) > 0 || have.ID == "" { // AWS adds no security groups to a load balancer that was created without any
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
func (l *LoadBalancer) Update(ctx context.Context, c *cloud.Clients, have *LoadBalancerState, d plan.Diff) (*LoadBalancerState, error) {
	var errs []error
	try := func(wanted bool, call func() error) {
		if wanted && len(errs) == 0 {
			if err := call(); err != nil {
				errs = append(errs, err)
			}
		}
	}
	try(d.Has("crossZone"), func() error {
		_, err := c.ELBV2.ModifyLoadBalancerAttributes(
			ctx,
			&elb.ModifyLoadBalancerAttributesInput{LoadBalancerArn: &have.ID, Attributes: []types.LoadBalancerAttribute{
				{Key: aws.String(crossZoneAttribute), Value: aws.String(fmt.Sprint(l.CrossZone))},
			}},
		)
		return err
	})
	try(d.Has("securityGroup"), func() error {
		_, err := c.ELBV2.SetSecurityGroups(
			ctx,
			&elb.SetSecurityGroupsInput{LoadBalancerArn: &have.ID, SecurityGroups: append(identity.CloudIDs(l.Groups), l.ExtraIDs...)},
		)
		return err
	})
	try(d.Has("subnet", "ipAddressType"), func() error {
		_, err := c.ELBV2.SetSubnets(
			ctx,
			&elb.SetSubnetsInput{LoadBalancerArn: &have.ID, Subnets: identity.CloudIDs(l.Subnets), IpAddressType: types.IpAddressType(l.ipType())},
		)
		return err
	})
	try(d.HasTags(), func() error {
		_, err := changeTags(ctx, c, have.ID, have.Tags, l.Tags, d)
		return err
	})
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return nil, nil // no call returns the complete state: find it again
}

// Delete implements graph.Deleter. AWS deletes the listeners with the load balancer.
func (l *LoadBalancer) Delete(ctx context.Context, c *cloud.Clients, have *LoadBalancerState) error {
	_, err := c.ELBV2.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerArn: &have.ID})
	return err
}

// RetireLoadBalancer adds the deletion of a load balancer that is not desired any more, if the cluster owns it.
func RetireLoadBalancer(g *graph.Graph, id plan.ID, arn string, opts ...graph.Option) graph.Resource {
	find := func(ctx context.Context, c *cloud.Clients) (*LoadBalancerState, error) {
		all, err := LoadBalancers(ctx, c)
		for _, x := range all {
			if x.ID != arn {
				continue
			}
			if x.Tags, err = describeTags(ctx, c, arn); err != nil || !x.IsOwned(c) {
				return nil, cloud.IgnoreNotFound(err)
			}
			return &x, nil
		}
		return nil, err
	}
	return kind.Retire(g, id, find, &LoadBalancer{}, nil, opts...)
}

// protection implements kind.Functions.Protection.
func (s LoadBalancerState) protection(ctx context.Context, c *cloud.Clients) (string, error) {
	all, err := s.attributes(ctx, c)
	if err != nil {
		return "", err
	}
	for _, a := range all.Attributes {
		if aws.ToString(a.Key) == protectionAttribute && aws.ToString(a.Value) == "true" {
			return fmt.Sprintf(
				"the load balancer %s has deletion protection: aws elbv2 modify-load-balancer-attributes --region %s --load-balancer-arn %s --attributes Key=%s,Value=false turns it off",
				s.Name,
				c.Region,
				s.ID,
				protectionAttribute,
			), nil
		}
	}
	return "", nil
}

// Attributes of load balancers.
const (
	crossZoneAttribute  = "load_balancing.cross_zone.enabled"
	protectionAttribute = "deletion_protection.enabled"
)

// LoadBalancers lists all load balancers of the region except Classic Load Balancers.
// Their names are unique in the region.
func LoadBalancers(ctx context.Context, c *cloud.Clients) ([]LoadBalancerState, error) {
	return cloud.Remember(ctx, c, "load balancers", func(ctx context.Context) ([]LoadBalancerState, error) {
		p := elb.NewDescribeLoadBalancersPaginator(c.ELBV2, &elb.DescribeLoadBalancersInput{})
		return cloud.Pages(ctx, p, func(o *elb.DescribeLoadBalancersOutput) (out []LoadBalancerState) {
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
		Object: identity.Object{
			ID: aws.ToString(x.LoadBalancerArn),
		},
		born:     aws.ToTime(x.CreatedTime),
		Name:     aws.ToString(x.LoadBalancerName),
		DNS:      aws.ToString(x.DNSName),
		VPC:      aws.ToString(x.VpcId),
		Internal: x.Scheme == types.LoadBalancerSchemeEnumInternal,
		Groups:   x.SecurityGroups,
		IPType:   string(x.IpAddressType),
		Type:     x.Type,
	}
	if x.State != nil {
		s.Status, s.Reason = string(x.State.Code), aws.ToString(x.State.Reason)
	}
	for _, z := range x.AvailabilityZones {
		s.Subnets = append(s.Subnets, aws.ToString(z.SubnetId))
	}
	return s
}

// complete sets the attributes and tags, which DescribeLoadBalancers does not return.
func (s *LoadBalancerState) complete(ctx context.Context, c *cloud.Clients) (err error) {
	if err := s.readAttributes(ctx, c); err != nil {
		return err
	}
	s.Tags, err = describeTags(ctx, c, s.ID)
	return err
}

// readAttributes sets the attributes.
func (s *LoadBalancerState) readAttributes(ctx context.Context, c *cloud.Clients) error {
	attributes, err := s.attributes(ctx, c)
	if err != nil {
		return err
	}
	for _, a := range attributes.Attributes {
		if aws.ToString(a.Key) == crossZoneAttribute {
			s.CrossZone = aws.ToString(a.Value) == "true"
		}
	}
	return nil
}

func (s *LoadBalancerState) attributes(ctx context.Context, c *cloud.Clients) (*elb.DescribeLoadBalancerAttributesOutput, error) {
	return cloud.Remember(ctx, c, "attributes of "+s.ID, func(ctx context.Context) (*elb.DescribeLoadBalancerAttributesOutput, error) {
		return c.ELBV2.DescribeLoadBalancerAttributes(ctx, &elb.DescribeLoadBalancerAttributesInput{LoadBalancerArn: &s.ID})
	})
}

// LoadBalancerByName looks up an existing load balancer.
func LoadBalancerByName(name string) graph.Lookup[LoadBalancerState] {
	return func(ctx context.Context, c *cloud.Clients) (*LoadBalancerState, error) {
		s, err := loadBalancerByName(ctx, c, name)
		if s == nil {
			return nil, err
		}
		return s, s.complete(ctx, c)
	}
}

// OwnLoadBalancers lists the load balancers that were made with the cluster, with their
// attributes, without those that controllers in the cluster created.
func OwnLoadBalancers(ctx context.Context, c *cloud.Clients) ([]LoadBalancerState, error) {
	all, err := loadBalancersOf(ctx, c, kind.Owner{Cluster: c.Cluster})
	for i := range all {
		if err == nil {
			err = all[i].complete(ctx, c)
		}
	}
	return all, err
}

// ExistingLoadBalancer reports whether there is a load balancer with the name that does not
// belong to this cluster. owner is the cluster that it belongs to; "" if there is none.
func ExistingLoadBalancer(ctx context.Context, c *cloud.Clients, name string) (is bool, owner string, err error) {
	s, err := loadBalancerByName(ctx, c, name)
	if s == nil {
		return false, "", err
	}
	s.Tags, err = describeTags(ctx, c, s.ID)
	return s.Tags[c.OwnerTag()] != cloud.Owned, otherOwner(s.Tags, c), err
}

// otherOwner returns the name of another cluster that owns a resource with the tags; "" if there is none.
func otherOwner(tags cloud.Tags, c *cloud.Clients) string {
	for _, name := range tags.Owners() {
		if name != c.Cluster {
			return name
		}
	}
	return ""
}

// IsBalancerName reports whether a host is a name in DNS that AWS gives to load balancers of a region: NAME-HASH.elb.REGION.amazonaws.com for
// network load balancers, NAME-NUMBER.REGION.elb.amazonaws.com for classic ones.
func IsBalancerName(host, region string) bool {
	for _, infix := range []string{".elb." + region + ".amazonaws.com", "." + region + ".elb.amazonaws.com"} {
		if _, after, is := strings.Cut(strings.ToLower(host), infix); is && (after == "" || after == ".cn") {
			return true
		}
	}
	return false
}

// HasBalancerNamed reports whether a load balancer in this account and region has a name in DNS.
func HasBalancerNamed(ctx context.Context, c *cloud.Clients, host string) (bool, error) {
	all, err := LoadBalancers(ctx, c)
	if err != nil || slices.ContainsFunc(all, func(lb LoadBalancerState) bool { return strings.EqualFold(lb.DNS, host) }) {
		return err == nil, err
	}
	classic, err := ClassicLoadBalancers(ctx, c)
	return slices.ContainsFunc(classic, func(lb ClassicLoadBalancerState) bool { return strings.EqualFold(lb.DNS, host) }), err
}

// TaggedEndpoint returns the host and port of the API server from the load balancer with
// the owned tag; "" if there is none.
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

// loadBalancersOf lists the load balancers that are deleted with a cluster: its own, and
// those that controllers in the cluster created. Internal ones are the last: of two for the API server, the one
// that faces the internet is usually the first of the manifest.
func loadBalancersOf(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]LoadBalancerState, error) {
	all, err := LoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y LoadBalancerState) int {
		switch {
		case x.Internal == y.Internal:
			return 0
		case x.Internal:
			return 1
		}
		return -1
	})
	return filterByOwner(
		all,
		of,
		func(s LoadBalancerState) (cloud.Tags, error) { return describeTagsOf(ctx, c, s.ID, s.born) },
		func(s *LoadBalancerState, tags cloud.Tags) { s.Tags = tags },
	)
}

// loadBalancersIn lists all load balancers of a VPC, with their tags.
func loadBalancersIn(ctx context.Context, c *cloud.Clients, vpc string) ([]LoadBalancerState, error) {
	all, err := LoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s LoadBalancerState) bool { return s.VPC != vpc })
	return withTags(
		all,
		func(s LoadBalancerState) (cloud.Tags, error) { return describeTagsOf(ctx, c, s.ID, s.born) },
		func(s *LoadBalancerState, tags cloud.Tags) { s.Tags = tags },
	)
}

// UnlistedLoadBalancers lists the load balancers in the VPC of the one with the first name that the cluster owns, without those with one of the names. A
// cluster whose first load balancer has another name has none.
func UnlistedLoadBalancers(ctx context.Context, c *cloud.Clients, names []string) ([]LoadBalancerState, error) {
	if len(names) == 0 {
		return nil, nil
	}
	first, err := loadBalancerByName(ctx, c, names[0])
	if first == nil || err != nil {
		return nil, err
	}
	all, err := LoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	all, err = withTags(
		slices.DeleteFunc(slices.Clone(all), func(s LoadBalancerState) bool { return s.VPC != first.VPC || slices.Contains(names, s.Name) }),
		func(s LoadBalancerState) (cloud.Tags, error) { return describeTagsOf(ctx, c, s.ID, s.born) },
		func(s *LoadBalancerState, tags cloud.Tags) { s.Tags = tags },
	)
	return slices.DeleteFunc(all, func(s LoadBalancerState) bool { return !s.IsOwned(c) }), err
}

// loadBalancerCreateTime is how long AWS usually takes to provision a load balancer.
const loadBalancerCreateTime = 150 * time.Second

// countLoadBalancers returns the number of Network Load Balancers in the region.
func countLoadBalancers(ctx context.Context, c *cloud.Clients) (map[string]int, error) {
	all, err := LoadBalancers(ctx, c)
	all = slices.DeleteFunc(slices.Clone(all), func(s LoadBalancerState) bool { return s.Type != types.LoadBalancerTypeEnumNetwork })
	return map[string]int{"": len(all)}, err
}

// LoadBalancerKind is the kind of Network Load Balancers and Application Load Balancers.
const LoadBalancerKind = "load-balancer"

// loadBalancerKind declares Network Load Balancers, and the load balancers that the AWS
// Load Balancer Controller creates.
func loadBalancerKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:      LoadBalancerKind,
		Rehearsed: true,
		Area:      plan.AreaLoadBalancer,
		Behind:    ec2.MachineKind,
		InCluster: true,
		ReadActions: []string{
			"ec2:DescribeAccountAttributes",
			"ec2:GetSecurityGroupsForVpc",
			"elasticloadbalancing:DescribeLoadBalancerAttributes",
			"elasticloadbalancing:DescribeLoadBalancers",
			"elasticloadbalancing:DescribeTags",
		},
		Statement: kind.LoadBalancers,
		Actions: []string{
			"elasticloadbalancing:AddTags",
			"elasticloadbalancing:CreateLoadBalancer",
			"elasticloadbalancing:DeleteLoadBalancer",
			"elasticloadbalancing:ModifyLoadBalancerAttributes",
			"elasticloadbalancing:RemoveTags",
			"elasticloadbalancing:SetSecurityGroups",
			"elasticloadbalancing:SetSubnets",
		},
		Quota: &kind.Quota{Service: "elasticloadbalancing", Code: "L-69A177A2", Name: "Network Load Balancers", Default: 50, Used: countLoadBalancers},
	}, kind.Functions[LoadBalancerState]{
		ID:   func(s LoadBalancerState) plan.ID { return ofAPIServer(s.Tags, LoadBalancerKind+"/network") },
		List: loadBalancersOf, InVPC: loadBalancersIn, Delete: &LoadBalancer{},
		Refers: func(s LoadBalancerState) []string { return refersTo(s.VPC, s.Subnets, s.Groups, s.Internal) },
		Protection: func(ctx context.Context, c *cloud.Clients, s LoadBalancerState) (string, error) {
			return s.protection(ctx, c)
		},
		Status: func(s LoadBalancerState) (state, detail string) { return s.Status, s.DNS },
	})
}

// ofAPIServer returns the ID of a load balancer if it is that of the API server, by its role, and "" otherwise.
func ofAPIServer(tags cloud.Tags, id plan.ID) plan.ID {
	if tags[cloud.RoleTag] == "apiserver" {
		return id
	}
	return ""
}

// refersTo lists the resources that a load balancer refers to (kind.Functions.Refers).
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
