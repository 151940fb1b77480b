package elb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ClassicLoadBalancer is a Classic Load Balancer, CAPA's default for
// spec.controlPlaneLoadBalancer.
type ClassicLoadBalancer struct {
	Name      string
	VPC       *graph.Ref[ec2.VPCState]
	Internet  *graph.Ref[ec2.InternetGatewayState] // nil for an internal load balancer
	Subnets   []*graph.Ref[ec2.SubnetState]
	Groups    []*graph.Ref[ec2.SecurityGroupState]
	ExtraIDs  []string
	Internal  bool
	CrossZone bool
	Port      int32 // of the listener; the port of instances is ClassicTarget
	Health    ClassicHealthCheck
	Tags      cloud.Tags
}

// ClassicHealthCheck is the health check of a Classic Load Balancer.
type ClassicHealthCheck struct {
	Target                                string // "TCP:6443"
	Interval, Timeout, Healthy, Unhealthy int32
}

// String prints a health check: "TCP:6443 every 5s, timeout 4s, 2 up, 6 down".
func (h ClassicHealthCheck) String() string {
	if h == (ClassicHealthCheck{}) {
		return ""
	}
	return fmt.Sprintf("%s every %ds, timeout %ds, %d up, %d down", h.Target, h.Interval, h.Timeout, h.Healthy, h.Unhealthy)
}

// ClassicLoadBalancerState is a Classic Load Balancer, as AWS describes it.
type ClassicLoadBalancerState struct {
	identity.Object            // the ID is its name
	DNS, VPC                   string
	Internal                   bool
	Subnets, Groups, Listeners []string
	Instances                  []string
	Health                     ClassicHealthCheck
	CrossZone                  bool
	IdleTimeout                int32 // seconds
}

var _ graph.Managed[ClassicLoadBalancerState] = (*ClassicLoadBalancer)(nil)

const (
	classicIdleTimeout = 600 // seconds, as CAPA sets it
	// ClassicTarget is the port of the API server on a machine.
	ClassicTarget = 6443
)

// Doubts implements graph.Doubted.
func (l *ClassicLoadBalancer) Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error) {
	return withoutDNS(ctx, c, l.Subnets)
}

// Check implements graph.Checked.
func (l *ClassicLoadBalancer) Check(context.Context, *cloud.Clients) (refusal string, err error) {
	return sameZone(l.Subnets), nil
}

// Needs implements graph.Desired.
func (l *ClassicLoadBalancer) Needs() []graph.Edge {
	needs := append(graph.Exists(l.VPC), graph.On(l.Internet)...)
	for _, s := range l.Subnets {
		needs = append(needs, graph.Exists(s)...)
	}
	for _, g := range l.Groups {
		needs = append(needs, graph.Exists(g)...)
	}
	return needs
}

// Find implements graph.Desired.
func (l *ClassicLoadBalancer) Find(ctx context.Context, c *cloud.Clients) (*ClassicLoadBalancerState, error) {
	s, err := l.Identify(ctx, c, nil)
	if s == nil || err != nil {
		return nil, err
	}
	return s, s.readAttributes(ctx, c)
}

// Identify implements graph.Identified.
func (l *ClassicLoadBalancer) Identify(ctx context.Context, c *cloud.Clients, _ *ClassicLoadBalancerState) (*ClassicLoadBalancerState, error) {
	all, err := ClassicLoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.ID != l.Name {
			continue
		}
		if vpc, ok := l.VPC.Found(); !ok || x.VPC != vpc.ID {
			return nil, fmt.Errorf("a classic load balancer named %s exists in VPC %s: set another name in spec.controlPlaneLoadBalancer.name", l.Name, x.VPC)
		}
		if x.Tags, err = describeClassicTags(ctx, c, x.ID); err != nil {
			return nil, err
		}
		if x.Tags[c.OwnerTag()] != cloud.Owned {
			return nil, fmt.Errorf("classic load balancer %s does not have the tag %s=%s: add the tag if the load balancer belongs to this cluster "+
				"(%s), or set another name in spec.controlPlaneLoadBalancer.name",
				l.Name, c.OwnerTag(), cloud.Owned, ClassicTagCommand(l.Name, c.OwnerTag(), cloud.Owned))
		}
		return &x, nil
	}
	return nil, nil
}

// Diff implements graph.Desired.
func (l *ClassicLoadBalancer) Diff(have *ClassicLoadBalancerState) (d plan.Diff) {
	d.Fixed("internal", have.Internal, l.Internal)
	d.Fixed("listener", slices.Contains(have.Listeners, l.listener()), true)
	d.Set("crossZone", have.CrossZone, l.CrossZone)
	d.Set("idleTimeout", have.IdleTimeout, classicIdleTimeout)
	d.Set("healthCheck", have.Health, l.Health)
	d.Lines("subnet", have.Subnets, identity.CloudIDs(l.Subnets))
	d.Lines("securityGroup", have.Groups, append(identity.CloudIDs(l.Groups), l.ExtraIDs...))
	d.Tags(have.Tags, l.Tags)
	return d
}

func (l *ClassicLoadBalancer) listener() string {
	return fmt.Sprintf("TCP %d to TCP %d", l.Port, ClassicTarget)
}

// Create implements graph.Creator.
func (l *ClassicLoadBalancer) Create(ctx context.Context, c *cloud.Clients) (*ClassicLoadBalancerState, error) {
	in := &elb.CreateLoadBalancerInput{
		LoadBalancerName: &l.Name, Subnets: identity.CloudIDs(l.Subnets), SecurityGroups: append(identity.CloudIDs(l.Groups), l.ExtraIDs...),
		Listeners: []types.Listener{{
			LoadBalancerPort: l.Port, Protocol: aws.String("TCP"), InstancePort: aws.Int32(ClassicTarget), InstanceProtocol: aws.String("TCP"),
		}},
		Tags: classicSDKTags(l.Tags),
	}
	if l.Internal {
		in.Scheme = aws.String("internal")
	}
	out, err := c.ELB.CreateLoadBalancer(ctx, in)
	if err != nil {
		return nil, err
	}
	return &ClassicLoadBalancerState{
		Object: identity.Object{ID: l.Name, Tags: l.Tags}, DNS: aws.ToString(out.DNSName), VPC: l.VPC.CloudID(), Internal: l.Internal,
		Subnets: in.Subnets, Groups: in.SecurityGroups, Listeners: []string{l.listener()}, IdleTimeout: 60,
	}, nil
}

// Update implements graph.Updater.
func (l *ClassicLoadBalancer) Update(ctx context.Context, c *cloud.Clients, have *ClassicLoadBalancerState, d plan.Diff) (*ClassicLoadBalancerState, error) {
	calls := []struct {
		fields []string
		do     func() error
	}{
		{[]string{"crossZone", "idleTimeout"}, func() error {
			_, err := c.ELB.ModifyLoadBalancerAttributes(ctx, &elb.ModifyLoadBalancerAttributesInput{
				LoadBalancerName: &have.ID, LoadBalancerAttributes: &types.LoadBalancerAttributes{
					CrossZoneLoadBalancing: &types.CrossZoneLoadBalancing{Enabled: l.CrossZone},
					ConnectionSettings:     &types.ConnectionSettings{IdleTimeout: aws.Int32(classicIdleTimeout)},
				},
			})
			return err
		}},
		{[]string{"healthCheck"}, func() error {
			_, err := c.ELB.ConfigureHealthCheck(ctx, &elb.ConfigureHealthCheckInput{LoadBalancerName: &have.ID, HealthCheck: &types.HealthCheck{
				Target: &l.Health.Target, Interval: &l.Health.Interval, Timeout: &l.Health.Timeout,
				HealthyThreshold: &l.Health.Healthy, UnhealthyThreshold: &l.Health.Unhealthy,
			}})
			return err
		}},
		{[]string{"securityGroup"}, func() error {
			_, err := c.ELB.ApplySecurityGroupsToLoadBalancer(
				ctx,
				&elb.ApplySecurityGroupsToLoadBalancerInput{LoadBalancerName: &have.ID, SecurityGroups: append(identity.CloudIDs(l.Groups), l.ExtraIDs...)},
			)
			return err
		}},
		{[]string{"subnet"}, func() error { return l.setSubnets(ctx, c, have.ID, d.Added("subnet"), d.Removed("subnet")) }},
	}
	for _, call := range calls {
		if d.Has(call.fields...) {
			if err := call.do(); err != nil {
				return nil, err
			}
		}
	}
	if err := changeClassicTags(ctx, c, have.ID, l.Tags, d); err != nil {
		return nil, err
	}
	return nil, nil // no call returns the complete state: find it again
}

func (l *ClassicLoadBalancer) setSubnets(ctx context.Context, c *cloud.Clients, name string, to, from []string) error {
	if len(to) > 0 {
		if _, err := c.ELB.AttachLoadBalancerToSubnets(ctx, &elb.AttachLoadBalancerToSubnetsInput{LoadBalancerName: &name, Subnets: to}); err != nil {
			return err
		}
	}
	if len(from) > 0 {
		_, err := c.ELB.DetachLoadBalancerFromSubnets(ctx, &elb.DetachLoadBalancerFromSubnetsInput{LoadBalancerName: &name, Subnets: from})
		return err
	}
	return nil
}

// Lingers implements graph.Lingering.
func (l *ClassicLoadBalancer) Lingers() time.Duration { return ec2.BalancerInterfacesRemain }

// Delete implements graph.Deleter.
func (l *ClassicLoadBalancer) Delete(ctx context.Context, c *cloud.Clients, have *ClassicLoadBalancerState) error {
	_, err := c.ELB.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerName: &have.ID})
	return err
}

// ClassicLoadBalancers lists all Classic Load Balancers of the region, where their names
// are unique.
func ClassicLoadBalancers(ctx context.Context, c *cloud.Clients) ([]ClassicLoadBalancerState, error) {
	return cloud.Remember(ctx, c, "classic load balancers", func(ctx context.Context) ([]ClassicLoadBalancerState, error) {
		p := elb.NewDescribeLoadBalancersPaginator(c.ELB, &elb.DescribeLoadBalancersInput{})
		return cloud.Pages(ctx, p, func(o *elb.DescribeLoadBalancersOutput) (out []ClassicLoadBalancerState) {
			for _, x := range o.LoadBalancerDescriptions {
				out = append(out, classicLoadBalancerState(x))
			}
			return out
		})
	})
}

func classicLoadBalancerState(x types.LoadBalancerDescription) ClassicLoadBalancerState {
	s := ClassicLoadBalancerState{
		Object: identity.Object{
			ID: aws.ToString(x.LoadBalancerName),
		},
		DNS:      aws.ToString(x.DNSName),
		VPC:      aws.ToString(x.VPCId),
		Internal: aws.ToString(x.Scheme) == "internal",
		Subnets:  x.Subnets,
		Groups:   x.SecurityGroups,
	}
	for _, i := range x.Instances {
		s.Instances = append(s.Instances, aws.ToString(i.InstanceId))
	}
	for _, l := range x.ListenerDescriptions {
		if l.Listener != nil {
			s.Listeners = append(
				s.Listeners,
				fmt.Sprintf(
					"%s %d to %s %d",
					aws.ToString(l.Listener.Protocol),
					l.Listener.LoadBalancerPort,
					aws.ToString(l.Listener.InstanceProtocol),
					aws.ToInt32(l.Listener.InstancePort),
				),
			)
		}
	}
	if h := x.HealthCheck; h != nil {
		s.Health = ClassicHealthCheck{
			aws.ToString(h.Target),
			aws.ToInt32(h.Interval),
			aws.ToInt32(h.Timeout),
			aws.ToInt32(h.HealthyThreshold),
			aws.ToInt32(h.UnhealthyThreshold),
		}
	}
	return s
}

// complete sets the attributes and tags, which DescribeLoadBalancers does not return.
func (s *ClassicLoadBalancerState) complete(ctx context.Context, c *cloud.Clients) (err error) {
	if err := s.readAttributes(ctx, c); err != nil {
		return err
	}
	s.Tags, err = describeClassicTags(ctx, c, s.ID)
	return err
}

// readAttributes sets the attributes.
func (s *ClassicLoadBalancerState) readAttributes(ctx context.Context, c *cloud.Clients) error {
	attributes, err := cloud.Remember(ctx, c, "attributes of classic "+s.ID, func(ctx context.Context) (*elb.DescribeLoadBalancerAttributesOutput, error) {
		return c.ELB.DescribeLoadBalancerAttributes(ctx, &elb.DescribeLoadBalancerAttributesInput{LoadBalancerName: &s.ID})
	})
	if err != nil {
		return err
	}
	if a := attributes.LoadBalancerAttributes; a != nil {
		s.CrossZone = a.CrossZoneLoadBalancing != nil && a.CrossZoneLoadBalancing.Enabled
		if a.ConnectionSettings != nil {
			s.IdleTimeout = aws.ToInt32(a.ConnectionSettings.IdleTimeout)
		}
	}
	return nil
}

// ClassicLoadBalancerByName looks up an existing Classic Load Balancer.
func ClassicLoadBalancerByName(name string) graph.Lookup[ClassicLoadBalancerState] {
	return func(ctx context.Context, c *cloud.Clients) (*ClassicLoadBalancerState, error) {
		all, err := ClassicLoadBalancers(ctx, c)
		for _, x := range all {
			if x.ID == name {
				return &x, err
			}
		}
		return nil, err
	}
}

// OwnClassicLoadBalancers lists the Classic Load Balancers that were made with the cluster,
// with their attributes.
func OwnClassicLoadBalancers(ctx context.Context, c *cloud.Clients) ([]ClassicLoadBalancerState, error) {
	all, err := classicLoadBalancersOf(ctx, c, kind.Owner{Cluster: c.Cluster})
	for i := range all {
		if err == nil {
			err = all[i].complete(ctx, c)
		}
	}
	return all, err
}

// ExistingClassicLoadBalancer reports whether there is a Classic Load Balancer with the name
// that does not belong to this cluster. owner is the cluster that it belongs to; "" if there is none.
func ExistingClassicLoadBalancer(ctx context.Context, c *cloud.Clients, name string) (is bool, owner string, err error) {
	s, err := ClassicLoadBalancerByName(name)(ctx, c)
	if s == nil {
		return false, "", err
	}
	tags, err := describeClassicTags(ctx, c, name)
	return tags[c.OwnerTag()] != cloud.Owned, otherOwner(tags, c), err
}

// classicLoadBalancersOf lists the Classic Load Balancers that are deleted with a
// cluster.
func classicLoadBalancersOf(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]ClassicLoadBalancerState, error) {
	all, err := ClassicLoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	return filterByOwner(
		all,
		of,
		func(s ClassicLoadBalancerState) (cloud.Tags, error) { return describeClassicTags(ctx, c, s.ID) },
		func(s *ClassicLoadBalancerState, tags cloud.Tags) { s.Tags = tags },
	)
}

// classicLoadBalancersIn lists all Classic Load Balancers of a VPC, with their tags.
func classicLoadBalancersIn(ctx context.Context, c *cloud.Clients, vpc string) ([]ClassicLoadBalancerState, error) {
	all, err := ClassicLoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s ClassicLoadBalancerState) bool { return s.VPC != vpc })
	return withTags(
		all,
		func(s ClassicLoadBalancerState) (cloud.Tags, error) { return describeClassicTags(ctx, c, s.ID) },
		func(s *ClassicLoadBalancerState, tags cloud.Tags) { s.Tags = tags },
	)
}

// countClassicLoadBalancers returns the number of Classic Load Balancers in the region.
func countClassicLoadBalancers(ctx context.Context, c *cloud.Clients) (map[string]int, error) {
	all, err := ClassicLoadBalancers(ctx, c)
	return map[string]int{"": len(all)}, err
}

// ClassicLoadBalancerKind is the kind of Classic Load Balancers.
const ClassicLoadBalancerKind = "classic-load-balancer"

// classicLoadBalancerKind declares Classic Load Balancers.
func classicLoadBalancerKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name:      ClassicLoadBalancerKind,
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
			"elasticloadbalancing:ApplySecurityGroupsToLoadBalancer",
			"elasticloadbalancing:AttachLoadBalancerToSubnets",
			"elasticloadbalancing:ConfigureHealthCheck",
			"elasticloadbalancing:CreateLoadBalancer",
			"elasticloadbalancing:DeleteLoadBalancer",
			"elasticloadbalancing:DetachLoadBalancerFromSubnets",
			"elasticloadbalancing:ModifyLoadBalancerAttributes",
			"elasticloadbalancing:RemoveTags",
		},
		Quota: &kind.Quota{Service: "elasticloadbalancing", Code: "L-E9E9831D", Name: "Classic Load Balancers", Default: 20, Used: countClassicLoadBalancers},
	}, kind.Functions[ClassicLoadBalancerState]{
		ID:   func(s ClassicLoadBalancerState) plan.ID { return ofAPIServer(s.Tags, ClassicLoadBalancerKind) },
		List: classicLoadBalancersOf, InVPC: classicLoadBalancersIn, Delete: &ClassicLoadBalancer{},
		Refers: func(s ClassicLoadBalancerState) []string { return refersTo(s.VPC, s.Subnets, s.Groups, s.Internal) },
		Status: func(s ClassicLoadBalancerState) (state, detail string) { return "", s.DNS },
	})
}

// ClassicTagCommand returns the command of the AWS CLI that adds a tag to a classic load balancer, as cloud.TagCommand does for others.
func ClassicTagCommand(name, key, value string) string {
	return fmt.Sprintf("aws elb add-tags --load-balancer-names %s --tags Key=%s,Value=%s", name, key, value)
}
