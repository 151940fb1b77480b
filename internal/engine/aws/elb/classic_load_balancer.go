package elb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// ClassicLoadBalancer is a load balancer of the first generation: CAPA's
// default for spec.controlPlaneLoadBalancer.
type ClassicLoadBalancer struct {
	Name      string
	VPC       *graph.Ref[ec2.VPCState]
	Internet  *graph.Ref[ec2.InternetGatewayState] // nil for an internal one
	Subnets   []*graph.Ref[ec2.SubnetState]
	Groups    []*graph.Ref[ec2.SecurityGroupState]
	ExtraIDs  []string
	Internal  bool
	CrossZone bool
	Port      int32 // of the listener; instances listen on 6443
	Check     ClassicHealthCheck
	Tags      cloud.Tags
}

// ClassicHealthCheck is how a classic load balancer tells whether an instance
// works.
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

// ClassicLoadBalancerState is a classic load balancer that exists.
type ClassicLoadBalancerState struct {
	identity.Object            // the ID is its name
	DNS, VPC                   string
	Internal                   bool
	Subnets, Groups, Listeners []string
	Instances                  []string
	Check                      ClassicHealthCheck
	CrossZone                  bool
	IdleTimeout                int32 // seconds
}

var _ graph.Managed[ClassicLoadBalancerState] = (*ClassicLoadBalancer)(nil)

const (
	classicIdleTimeout = 600 // seconds, as CAPA sets it
	// ClassicTarget is the port of the API server on its machine.
	ClassicTarget = 6443
)

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
	all, err := ClassicLoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.ID != l.Name {
			continue
		}
		if vpc, ok := l.VPC.Found(); !ok || x.VPC != vpc.ID {
			return nil, fmt.Errorf("there is a classic load balancer named %s in VPC %s: give this cluster's another name in spec.controlPlaneLoadBalancer.name", l.Name, x.VPC)
		}
		if err := x.complete(ctx, c); err != nil {
			return nil, err
		}
		if x.Tags[c.OwnerTag()] != cloud.Owned {
			return nil, fmt.Errorf("classic load balancer %s does not carry the tag %s=%s", l.Name, c.OwnerTag(), cloud.Owned)
		}
		return &x, nil
	}
	return nil, nil
}

// Diff implements graph.Desired.
func (l *ClassicLoadBalancer) Diff(have *ClassicLoadBalancerState) (d graph.Diff) {
	d.Fixed("internal", have.Internal, l.Internal)
	d.Fixed("listener", slices.Contains(have.Listeners, l.listener()), true)
	d.Set("crossZone", have.CrossZone, l.CrossZone)
	d.Set("idleTimeout", have.IdleTimeout, classicIdleTimeout)
	d.Set("healthCheck", have.Check, l.Check)
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
func (l *ClassicLoadBalancer) Update(ctx context.Context, c *cloud.Clients, have *ClassicLoadBalancerState, d graph.Diff) (*ClassicLoadBalancerState, error) {
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
				Target: &l.Check.Target, Interval: &l.Check.Interval, Timeout: &l.Check.Timeout,
				HealthyThreshold: &l.Check.Healthy, UnhealthyThreshold: &l.Check.Unhealthy,
			}})
			return err
		}},
		{[]string{"securityGroup"}, func() error {
			_, err := c.ELB.ApplySecurityGroupsToLoadBalancer(ctx, &elb.ApplySecurityGroupsToLoadBalancerInput{LoadBalancerName: &have.ID, SecurityGroups: append(identity.CloudIDs(l.Groups), l.ExtraIDs...)})
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
	if d.HasTags() {
		_, err := c.ELB.AddTags(ctx, &elb.AddTagsInput{LoadBalancerNames: []string{have.ID}, Tags: classicSDKTags(l.Tags)})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil // several answers, none of them whole: look again
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

// Delete implements graph.Deleter.
func (l *ClassicLoadBalancer) Delete(ctx context.Context, c *cloud.Clients, have *ClassicLoadBalancerState) error {
	_, err := c.ELB.DeleteLoadBalancer(ctx, &elb.DeleteLoadBalancerInput{LoadBalancerName: &have.ID})
	return err
}

// ClassicLoadBalancers lists all classic load balancers of the region: their
// names are unique in it.
func ClassicLoadBalancers(ctx context.Context, c *cloud.Clients) ([]ClassicLoadBalancerState, error) {
	return cloud.Remember(ctx, c, "classic load balancers", func(ctx context.Context) ([]ClassicLoadBalancerState, error) {
		p := elb.NewDescribeLoadBalancersPaginator(c.ELB, &elb.DescribeLoadBalancersInput{})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*elb.DescribeLoadBalancersOutput, error) { return p.NextPage(ctx) },
			func(o *elb.DescribeLoadBalancersOutput) (out []ClassicLoadBalancerState) {
				for _, x := range o.LoadBalancerDescriptions {
					out = append(out, classicLoadBalancerState(x))
				}
				return out
			})
	})
}

func classicLoadBalancerState(x types.LoadBalancerDescription) ClassicLoadBalancerState {
	s := ClassicLoadBalancerState{
		Object: identity.Object{ID: aws.ToString(x.LoadBalancerName)}, DNS: aws.ToString(x.DNSName), VPC: aws.ToString(x.VPCId), Internal: aws.ToString(x.Scheme) == "internal",
		Subnets: x.Subnets, Groups: x.SecurityGroups,
	}
	for _, i := range x.Instances {
		s.Instances = append(s.Instances, aws.ToString(i.InstanceId))
	}
	for _, l := range x.ListenerDescriptions {
		if l.Listener != nil {
			s.Listeners = append(s.Listeners, fmt.Sprintf("%s %d to %s %d", aws.ToString(l.Listener.Protocol), l.Listener.LoadBalancerPort, aws.ToString(l.Listener.InstanceProtocol), aws.ToInt32(l.Listener.InstancePort)))
		}
	}
	if h := x.HealthCheck; h != nil {
		s.Check = ClassicHealthCheck{aws.ToString(h.Target), aws.ToInt32(h.Interval), aws.ToInt32(h.Timeout), aws.ToInt32(h.HealthyThreshold), aws.ToInt32(h.UnhealthyThreshold)}
	}
	return s
}

// complete asks for what listings leave out: attributes and tags.
func (s *ClassicLoadBalancerState) complete(ctx context.Context, c *cloud.Clients) (err error) {
	if cloud.IsBrief(ctx) {
		s.Tags, err = describeClassicTags(ctx, c, s.ID)
		return err
	}
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
	s.Tags, err = describeClassicTags(ctx, c, s.ID)
	return err
}

// describeClassicTags returns the tags of a classic load balancer. Askers at the
// same time share a call for up to 20 of them.
func describeClassicTags(ctx context.Context, c *cloud.Clients, name string) (cloud.Tags, error) {
	return cloud.Remember(ctx, c, "tags of classic "+name, func(ctx context.Context) (cloud.Tags, error) {
		return cloud.Batch(ctx, c, "classic tags", name, func(ctx context.Context, names []string) ([]cloud.Tags, error) {
			found := map[string]cloud.Tags{}
			for part := range slices.Chunk(names, 20) {
				out, err := c.ELB.DescribeTags(ctx, &elb.DescribeTagsInput{LoadBalancerNames: part})
				if err != nil {
					return nil, err
				}
				for _, d := range out.TagDescriptions {
					tags := cloud.Tags{}
					for _, t := range d.Tags {
						tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
					}
					found[aws.ToString(d.LoadBalancerName)] = tags
				}
			}
			return inOrder(names, found), nil
		})
	})
}

// inOrder lists what was found of each name.
func inOrder(names []string, found map[string]cloud.Tags) (out []cloud.Tags) {
	for _, n := range names {
		out = append(out, found[n])
	}
	return out
}

func classicSDKTags(t cloud.Tags) (out []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(t)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(t[k])})
	}
	return out
}

// ClassicLoadBalancerByName looks up a classic load balancer that is somebody
// else's.
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

// ExistingClassicLoadBalancer reports whether a classic load balancer of that
// name exists that is not the cluster's: one that the user brings.
func ExistingClassicLoadBalancer(ctx context.Context, c *cloud.Clients, name string) (bool, error) {
	s, err := ClassicLoadBalancerByName(name)(ctx, c)
	if s == nil {
		return false, err
	}
	tags, err := describeClassicTags(ctx, c, name)
	return tags[c.OwnerTag()] != cloud.Owned, err
}

// classicLoadBalancersOf lists the classic load balancers of a cluster, as BalancersOf does.
func classicLoadBalancersOf(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]ClassicLoadBalancerState, error) {
	all, err := ClassicLoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	return filterByOwner(all, of, func(s ClassicLoadBalancerState) (cloud.Tags, error) { return describeClassicTags(ctx, c, s.ID) }, func(s *ClassicLoadBalancerState, tags cloud.Tags) { s.Tags = tags })
}

// classicLoadBalancerKind declares classic load balancers.
func classicLoadBalancerKind() *kind.Any {
	return kind.Of(kind.Kind[ClassicLoadBalancerState]{
		Name: "load-balancer", Area: kind.AreaLoadBalancer, List: classicLoadBalancersOf, Delete: &ClassicLoadBalancer{},
		Refers:      func(s ClassicLoadBalancerState) []string { return refersTo(s.VPC, s.Subnets, s.Groups, s.Internal) },
		Status:      func(s ClassicLoadBalancerState) (state, detail string) { return "", s.DNS },
		ReadActions: []string{"elasticloadbalancing:DescribeLoadBalancerAttributes", "elasticloadbalancing:DescribeLoadBalancers", "elasticloadbalancing:DescribeTags"},
		Statement:   kind.LoadBalancers,
		Actions: []string{
			"elasticloadbalancing:AddTags", "elasticloadbalancing:ApplySecurityGroupsToLoadBalancer", "elasticloadbalancing:AttachLoadBalancerToSubnets",
			"elasticloadbalancing:ConfigureHealthCheck", "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:DeleteLoadBalancer",
			"elasticloadbalancing:DetachLoadBalancerFromSubnets", "elasticloadbalancing:ModifyLoadBalancerAttributes",
		},
	})
}
