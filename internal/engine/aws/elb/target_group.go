package elb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// TargetGroup is a target group of a Network Load Balancer.
type TargetGroup struct {
	Name         string
	Stem         string // prefix of the name that CAPA generates, before five random characters
	VPC          *graph.Ref[ec2.VPCState]
	LoadBalancer *graph.Ref[LoadBalancerState] // that forwards to it; deleted first
	Port         int32
	IPType       string // ipv4 or ipv6: how targets are reached
	Check        HealthCheck
	Attributes   map[string]string
	Tags         cloud.Tags
}

// HealthCheck is the health check of a target group.
type HealthCheck struct {
	Protocol                              string // TCP, HTTP, HTTPS
	Port                                  string // a number, or traffic-port
	Path                                  string // "" unless HTTP or HTTPS
	Interval, Timeout, Healthy, Unhealthy int32  // seconds; Healthy and Unhealthy are counts
}

// TargetGroupState is a target group, as AWS describes it.
type TargetGroupState struct {
	identity.Object // the ID is its ARN
	Name, VPC       string
	Port            int32
	Protocol        types.ProtocolEnum
	Type            types.TargetTypeEnum // of its targets
	IPType          string
	Check           HealthCheck
	Attributes      map[string]string
	LoadBalancer    []string // ARNs of the load balancers that use it
}

var _ graph.Managed[TargetGroupState] = (*TargetGroup)(nil)

// Needs implements graph.Desired.
func (t *TargetGroup) Needs() []graph.Edge {
	return append(graph.Exists(t.VPC), graph.Outlives(t.LoadBalancer)...) // AWS does not delete a target group that a listener uses
}

// Find implements graph.Desired.
func (t *TargetGroup) Find(ctx context.Context, c *cloud.Clients) (*TargetGroupState, error) {
	s, err := t.find(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	return s, s.complete(ctx, c)
}

// Identify implements graph.Identified.
func (t *TargetGroup) Identify(ctx context.Context, c *cloud.Clients, _ *TargetGroupState) (*TargetGroupState, error) {
	s, err := t.find(ctx, c)
	if s == nil || err != nil {
		return nil, err
	}
	s.Tags, err = describeTags(ctx, c, s.ID)
	return s, err
}

func (t *TargetGroup) find(ctx context.Context, c *cloud.Clients) (*TargetGroupState, error) {
	vpc, ok := t.VPC.Found()
	if !ok {
		return nil, nil
	}
	all, err := TargetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.Name == t.Name && x.VPC == vpc.ID {
			return &x, nil
		}
	}
	return t.createdByCAPA(ctx, c, vpc.ID, all)
}

// CheckCreation implements graph.CheckedCreation: the name of a target group is unique in its account and region (CreateTargetGroup, API reference).
func (t *TargetGroup) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	all, err := TargetGroups(ctx, c)
	for _, x := range all {
		if x.Name == t.Name {
			return fmt.Sprintf("a target group named %s exists in %s (%s), which another cluster has left: delete it", t.Name, x.VPC, x.ID), nil
		}
	}
	return "", err
}

// createdByCAPA returns the target group that CAPA created, or nil. Its name ends with
// random characters.
func (t *TargetGroup) createdByCAPA(ctx context.Context, c *cloud.Clients, vpc string, all []TargetGroupState) (*TargetGroupState, error) {
	lb, _ := t.LoadBalancer.Found()
	var identified, used []TargetGroupState
	for _, x := range all {
		if x.VPC != vpc || !t.mayBeCreatedByCAPA(x) {
			continue
		}
		tags, err := describeTags(ctx, c, x.ID)
		if err != nil {
			return nil, err
		}
		x.Tags = tags
		switch id := tags[cloud.ResourceTag]; {
		case tags[c.OwnerTag()] != cloud.Owned:
		case id == t.Tags[cloud.ResourceTag]:
			identified = append(identified, x)
		case id == "" && slices.Contains(x.LoadBalancer, lb.ID):
			used = append(used, x)
		}
	}
	if len(identified) == 0 {
		identified = used
	}
	return identity.AtMostOne(identified, t.Tags[cloud.ResourceTag])
}

// mayBeCreatedByCAPA reports whether the name, port and IP address type are those that
// CAPA gives to this target group.
func (t *TargetGroup) mayBeCreatedByCAPA(x TargetGroupState) bool {
	return t.Stem != "" && strings.HasPrefix(x.Name, t.Stem) && x.Port == t.Port && x.IPType == t.IPType
}

// Diff implements graph.Desired.
func (t *TargetGroup) Diff(have *TargetGroupState) (d plan.Diff) {
	if have.ID == "" { // the name of a target group cannot change
		d.Fixed("name", have.Name, t.Name)
	}
	d.Fixed("port", have.Port, t.Port)
	d.Fixed("ipAddressType", have.IPType, t.IPType)
	d.Set("healthCheck", have.Check, t.Check)
	for _, k := range slices.Sorted(maps.Keys(t.Attributes)) {
		d.Set("attribute "+k, have.Attributes[k], t.Attributes[k])
	}
	d.Tags(have.Tags, t.Tags)
	return d
}

// String prints a health check: "TCP port 6443 every 5s, timeout 4s, 2 up, 6 down".
func (h HealthCheck) String() string {
	if h == (HealthCheck{}) {
		return ""
	}
	return fmt.Sprintf(
		"%s%s port %s every %ds, timeout %ds, %d up, %d down",
		h.Protocol,
		text.Prefixed(" ", h.Path),
		h.Port,
		h.Interval,
		h.Timeout,
		h.Healthy,
		h.Unhealthy,
	)
}

// Create implements graph.Creator.
func (t *TargetGroup) Create(ctx context.Context, c *cloud.Clients) (*TargetGroupState, error) {
	in := &elb.CreateTargetGroupInput{
		Name: &t.Name, VpcId: aws.String(t.VPC.CloudID()), Port: &t.Port,
		Protocol: types.ProtocolEnumTcp, TargetType: types.TargetTypeEnumInstance, IpAddressType: types.TargetGroupIpAddressTypeEnum(t.IPType),
		HealthCheckEnabled: aws.Bool(true), HealthCheckProtocol: types.ProtocolEnum(t.Check.Protocol), HealthCheckPort: &t.Check.Port,
		HealthCheckIntervalSeconds: &t.Check.Interval, HealthCheckTimeoutSeconds: &t.Check.Timeout,
		HealthyThresholdCount: &t.Check.Healthy, UnhealthyThresholdCount: &t.Check.Unhealthy,
		Tags: sdkTags(t.Tags),
	}
	if t.Check.Path != "" {
		in.HealthCheckPath = &t.Check.Path
	}
	out, err := c.ELBV2.CreateTargetGroup(ctx, in)
	if err != nil || len(out.TargetGroups) == 0 {
		return nil, err
	}
	s := targetGroupState(out.TargetGroups[0])
	s.Tags, s.Attributes = t.Tags, map[string]string{}
	return &s, nil
}

// Update implements graph.Updater.
func (t *TargetGroup) Update(ctx context.Context, c *cloud.Clients, have *TargetGroupState, d plan.Diff) (*TargetGroupState, error) {
	after := *have
	after.Attributes = cloud.Tags(have.Attributes).With(nil)
	var attributes []types.TargetGroupAttribute
	for _, k := range slices.Sorted(maps.Keys(t.Attributes)) {
		if d.Has("attribute " + k) {
			attributes = append(attributes, types.TargetGroupAttribute{Key: aws.String(k), Value: aws.String(t.Attributes[k])})
			after.Attributes[k] = t.Attributes[k]
		}
	}
	if len(attributes) > 0 {
		_, err := c.ELBV2.ModifyTargetGroupAttributes(ctx, &elb.ModifyTargetGroupAttributesInput{TargetGroupArn: &have.ID, Attributes: attributes})
		if err != nil {
			return nil, err
		}
	}
	if d.Has("healthCheck") {
		if err := t.check(ctx, c, have.ID); err != nil {
			return nil, err
		}
		after.Check = t.Check
	}
	if d.HasTags() {
		var err error
		if after.Tags, err = changeTags(ctx, c, have.ID, have.Tags, t.Tags, d); err != nil {
			return nil, err
		}
	}
	return &after, nil
}

func (t *TargetGroup) check(ctx context.Context, c *cloud.Clients, arn string) error {
	in := &elb.ModifyTargetGroupInput{
		TargetGroupArn: &arn, HealthCheckProtocol: types.ProtocolEnum(t.Check.Protocol), HealthCheckPort: &t.Check.Port,
		HealthCheckIntervalSeconds: &t.Check.Interval, HealthCheckTimeoutSeconds: &t.Check.Timeout,
		HealthyThresholdCount: &t.Check.Healthy, UnhealthyThresholdCount: &t.Check.Unhealthy,
	}
	if t.Check.Path != "" {
		in.HealthCheckPath = &t.Check.Path
	}
	_, err := c.ELBV2.ModifyTargetGroup(ctx, in)
	return err
}

// Delete implements graph.Deleter.
func (t *TargetGroup) Delete(ctx context.Context, c *cloud.Clients, have *TargetGroupState) error {
	_, err := c.ELBV2.DeleteTargetGroup(ctx, &elb.DeleteTargetGroupInput{TargetGroupArn: &have.ID})
	return err
}

// TargetGroups lists all target groups of the region.
func TargetGroups(ctx context.Context, c *cloud.Clients) ([]TargetGroupState, error) {
	return cloud.Remember(ctx, c, "target groups", func(ctx context.Context) ([]TargetGroupState, error) {
		p := elb.NewDescribeTargetGroupsPaginator(c.ELBV2, &elb.DescribeTargetGroupsInput{})
		return cloud.Pages(ctx, p, func(o *elb.DescribeTargetGroupsOutput) (out []TargetGroupState) {
			for _, x := range o.TargetGroups {
				out = append(out, targetGroupState(x))
			}
			return out
		})
	})
}

// OwnedTargetGroups lists the target groups in a VPC that the cluster owns, with their tags.
func OwnedTargetGroups(ctx context.Context, c *cloud.Clients, vpc string) ([]TargetGroupState, error) {
	all, err := TargetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	all, err = withGroupTags(ctx, c, slices.DeleteFunc(slices.Clone(all), func(s TargetGroupState) bool { return s.VPC != vpc }))
	return slices.DeleteFunc(all, func(s TargetGroupState) bool { return !s.IsOwned(c) }), err
}

// RetireTargetGroup adds the deletion of a target group that is not desired any more. after is what forwards to it.
func RetireTargetGroup(g *graph.Graph, id plan.ID, arn string, after graph.Resource) {
	kind.Retire(g, id, kind.Listed(TargetGroups, arn), &TargetGroup{}, append(graph.Awaits(after), graph.Outlives(after)...))
}

// TargetGroupsBehind lists the target groups that a load balancer uses, with their attributes
// and tags.
func TargetGroupsBehind(ctx context.Context, c *cloud.Clients, lb string) (out []TargetGroupState, err error) {
	all, err := TargetGroups(ctx, c)
	for _, x := range all {
		if err == nil && slices.Contains(x.LoadBalancer, lb) {
			err = x.complete(ctx, c)
			out = append(out, x)
		}
	}
	return out, err
}

func targetGroupState(x types.TargetGroup) TargetGroupState {
	if x.HealthCheckProtocol != types.ProtocolEnumHttp && x.HealthCheckProtocol != types.ProtocolEnumHttps {
		x.HealthCheckPath = nil // other protocols do not use it, but AWS may still return it
	}
	return TargetGroupState{
		Object: identity.Object{ID: aws.ToString(x.TargetGroupArn)}, Name: aws.ToString(x.TargetGroupName), VPC: aws.ToString(x.VpcId), Port: aws.ToInt32(x.Port),
		IPType: cmp.Or(string(x.IpAddressType), "ipv4"), LoadBalancer: x.LoadBalancerArns, Protocol: x.Protocol, Type: x.TargetType,
		Check: HealthCheck{
			Protocol: string(x.HealthCheckProtocol), Port: aws.ToString(x.HealthCheckPort), Path: aws.ToString(x.HealthCheckPath),
			Interval: aws.ToInt32(x.HealthCheckIntervalSeconds), Timeout: aws.ToInt32(x.HealthCheckTimeoutSeconds),
			Healthy: aws.ToInt32(x.HealthyThresholdCount), Unhealthy: aws.ToInt32(x.UnhealthyThresholdCount),
		},
	}
}

// complete sets the attributes and tags, which DescribeTargetGroups does not return.
func (s *TargetGroupState) complete(ctx context.Context, c *cloud.Clients) (err error) {
	out, err := cloud.Remember(ctx, c, "attributes of "+s.ID, func(ctx context.Context) (*elb.DescribeTargetGroupAttributesOutput, error) {
		return c.ELBV2.DescribeTargetGroupAttributes(ctx, &elb.DescribeTargetGroupAttributesInput{TargetGroupArn: &s.ID})
	})
	if err != nil {
		return err
	}
	s.Attributes = map[string]string{}
	for _, a := range out.Attributes {
		s.Attributes[aws.ToString(a.Key)] = aws.ToString(a.Value)
	}
	s.Tags, err = describeTags(ctx, c, s.ID)
	return err
}

// targetGroupKind declares target groups.
func targetGroupKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: "target-group", Rehearsed: true, InCluster: true, Area: plan.AreaLoadBalancer,
		ReadActions: []string{"elasticloadbalancing:DescribeTags", "elasticloadbalancing:DescribeTargetGroupAttributes", "elasticloadbalancing:DescribeTargetGroups"},
		Statement:   kind.LoadBalancers,
		Actions: []string{
			"elasticloadbalancing:AddTags", "elasticloadbalancing:CreateTargetGroup", "elasticloadbalancing:DeleteTargetGroup", "elasticloadbalancing:ModifyTargetGroup",
			"elasticloadbalancing:ModifyTargetGroupAttributes", "elasticloadbalancing:RemoveTags",
		},
	}, kind.Functions[TargetGroupState]{
		List: targetGroupsOf, InVPC: targetGroupsIn, Delete: &TargetGroup{},
		Refers:   func(s TargetGroupState) []string { return []string{s.VPC} },
		Outlives: func(s TargetGroupState) []string { return s.LoadBalancer }, // AWS does not delete a target group that a listener uses
	})
}

// targetGroupsIn lists the target groups of a VPC that a load balancer of the cluster uses,
// with their tags.
func targetGroupsIn(ctx context.Context, c *cloud.Clients, vpc string) ([]TargetGroupState, error) {
	balancers, err := loadBalancersOf(ctx, c, kind.Owner{Cluster: c.Cluster})
	if err != nil || len(balancers) == 0 {
		return nil, err
	}
	all, err := TargetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s TargetGroupState) bool {
		return s.VPC != vpc || !slices.ContainsFunc(balancers, func(lb LoadBalancerState) bool { return slices.Contains(s.LoadBalancer, lb.ID) })
	})
	return withGroupTags(ctx, c, all)
}

// withGroupTags returns target groups with their tags.
func withGroupTags(ctx context.Context, c *cloud.Clients, all []TargetGroupState) ([]TargetGroupState, error) {
	return withTags(
		all,
		func(s TargetGroupState) (cloud.Tags, error) { return describeTags(ctx, c, s.ID) },
		func(s *TargetGroupState, tags cloud.Tags) { s.Tags = tags },
	)
}

// targetGroupsOf lists the target groups that are deleted with a cluster.
func targetGroupsOf(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]TargetGroupState, error) {
	all, err := TargetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	return filterByOwner(
		all,
		of,
		func(s TargetGroupState) (cloud.Tags, error) { return describeTags(ctx, c, s.ID) },
		func(s *TargetGroupState, tags cloud.Tags) { s.Tags = tags },
	)
}
