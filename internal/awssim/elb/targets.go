package elb

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

func invalidTarget(why string) error {
	return &types.InvalidTargetException{Message: aws.String(why)}
}

// find returns the target with an ID and port, or nil.
func (g *TargetGroup) find(id string, port int32) *Target {
	for _, t := range g.Targets {
		if t.ID == id && t.Port == port {
			return t
		}
	}
	return nil
}

// readTarget returns the ID and port of a target in a call.
func (g *TargetGroup) readTarget(op string, d types.TargetDescription) (id string, port int32, err error) {
	if err := core.Only(op, &d, "Id", "Port"); err != nil {
		return "", 0, err
	}
	id, port = aws.ToString(d.Id), g.Port
	core.Set(&port, d.Port)
	if !strings.HasPrefix(id, "i-") {
		return "", 0, core.Fail("ValidationError", "instance ID '%s' is not valid", id)
	}
	if port < 1 || port > 65535 {
		return "", 0, core.Fail("ValidationError", "port '%d' must be between 1 and 65535", port)
	}
	return id, port, nil
}

func (svc *Service) registerTargets(in *elb.RegisterTargetsInput) (*elb.RegisterTargetsOutput, error) {
	g, err := svc.targetGroup(in.TargetGroupArn)
	if err != nil {
		return nil, err
	}
	if len(in.Targets) == 0 {
		return nil, core.Fail("ValidationError", "at least one target must be specified")
	}
	fresh := make([]*Target, 0, len(in.Targets))
	for _, d := range in.Targets {
		id, port, err := g.readTarget("RegisterTargets", d)
		if err != nil {
			return nil, err
		}
		if err := svc.checkTarget(g, id); err != nil {
			return nil, err
		}
		fresh = append(fresh, &Target{ID: id, Port: port, Registered: svc.Now()})
	}
	for _, t := range fresh {
		switch old := g.find(t.ID, t.Port); {
		case old == nil:
			g.Targets = append(g.Targets, t)
		case !old.Drained.IsZero():
			*old = *t
		}
	}
	if len(g.Targets) > 1000 {
		g.Targets = slices.DeleteFunc(g.Targets, func(t *Target) bool { return slices.Contains(fresh, t) })
		return nil, core.Fail("TooManyTargets", "the maximum number of targets has been reached")
	}
	return &elb.RegisterTargetsOutput{}, nil
}

// checkTarget checks that an instance can be registered now.
func (svc *Service) checkTarget(g *TargetGroup, id string) error {
	i := svc.ec2.Instance(id)
	switch {
	case i == nil:
		return invalidTarget("The following targets do not exist: '" + id + "'")
	case i.VPC != g.VPC:
		return invalidTarget("The following targets are not in the target group VPC '" + g.VPC + "': '" + id + "'")
	case !svc.ec2.InstanceRuns(i):
		return invalidTarget("The following targets are not in a running state and cannot be registered: '" + id + "'")
	case g.IPType == "ipv6" && !svc.hasIPv6(i):
		return invalidTarget("The following targets have no primary IPv6 address: '" + id + "'")
	}
	return nil
}

func (svc *Service) hasIPv6(i *ec2.Instance) bool {
	return slices.ContainsFunc(i.Interfaces, func(id string) bool {
		n := svc.ec2.Interface(id)
		return n != nil && len(n.IPv6) > 0
	})
}

func (svc *Service) deregisterTargets(in *elb.DeregisterTargetsInput) (*elb.DeregisterTargetsOutput, error) {
	g, err := svc.targetGroup(in.TargetGroupArn)
	if err != nil {
		return nil, err
	}
	if len(in.Targets) == 0 {
		return nil, core.Fail("ValidationError", "at least one target must be specified")
	}
	delay, err := strconv.Atoi(g.Attributes[deregistrationDelay])
	if err != nil {
		return nil, err
	}
	if g.Used.IsZero() {
		delay = 0 // there is no connection to drain
	}
	for _, d := range in.Targets {
		id, port, err := g.readTarget("DeregisterTargets", d)
		if err != nil {
			return nil, err
		}
		if t := g.find(id, port); t != nil && t.Drained.IsZero() {
			t.Drained = svc.Now().Add(time.Duration(delay) * time.Second)
		}
	}
	svc.Settle()
	return &elb.DeregisterTargetsOutput{}, nil
}

func (svc *Service) describeTargetHealth(in *elb.DescribeTargetHealthInput) (*elb.DescribeTargetHealthOutput, error) {
	g, err := svc.targetGroup(in.TargetGroupArn)
	if err != nil {
		return nil, err
	}
	out := &elb.DescribeTargetHealthOutput{}
	if len(in.Targets) == 0 {
		for _, t := range g.Targets {
			out.TargetHealthDescriptions = append(out.TargetHealthDescriptions, g.showHealth(t.ID, t.Port, svc.health(g, t)))
		}
		return out, nil
	}
	for _, d := range in.Targets {
		id, port, err := g.readTarget("DescribeTargetHealth", d)
		if err != nil {
			return nil, err
		}
		t := g.find(id, port)
		if t == nil && svc.ec2.Instance(id) == nil {
			return nil, invalidTarget("The following targets do not exist: '" + id + "'")
		}
		h := types.TargetHealth{
			State:       types.TargetHealthStateEnumUnused,
			Reason:      types.TargetHealthReasonEnumNotRegistered,
			Description: aws.String("Target is not registered to the target group"),
		}
		if t != nil {
			h = svc.health(g, t)
		}
		out.TargetHealthDescriptions = append(out.TargetHealthDescriptions, g.showHealth(id, port, h))
	}
	return out, nil
}

func (g *TargetGroup) showHealth(id string, port int32, h types.TargetHealth) types.TargetHealthDescription {
	checked := g.Check.Port
	if checked == "traffic-port" {
		checked = strconv.Itoa(int(port))
	}
	return types.TargetHealthDescription{
		Target:          &types.TargetDescription{Id: aws.String(id), Port: aws.Int32(port)},
		HealthCheckPort: aws.String(checked),
		TargetHealth:    &h,
	}
}

// apiServerPort is the port of API servers. Nothing listens on other ports: a user's
// agent there would come from an object in the cluster, which is not simulated.
const apiServerPort = 6443

// health returns the health of a target. Health checks start when the target is
// registered and the group is in use; a target is not healthy before its load balancer is
// active.
func (svc *Service) health(g *TargetGroup, t *Target) types.TargetHealth {
	is := func(state types.TargetHealthStateEnum, reason types.TargetHealthReasonEnum, why string) types.TargetHealth {
		return types.TargetHealth{State: state, Reason: reason, Description: aws.String(why)}
	}
	b, i := svc.userOf(g), svc.ec2.Instance(t.ID)
	if !t.Drained.IsZero() {
		return is(types.TargetHealthStateEnumDraining, types.TargetHealthReasonEnumDeregistrationInProgress, "Target deregistration is in progress")
	}
	if b == nil {
		return is(types.TargetHealthStateEnumUnused, types.TargetHealthReasonEnumNotInUse, "Target group is not configured to receive traffic from the load balancer")
	}
	if !svc.ec2.InstanceRuns(i) {
		return is(types.TargetHealthStateEnumUnused, types.TargetHealthReasonEnumInvalidState, "Target is in the stopped or terminated state")
	}
	if !slices.ContainsFunc(b.Zones, func(z LoadBalancerZone) bool { return z.Zone == i.Zone }) {
		return is(
			types.TargetHealthStateEnumUnused,
			types.TargetHealthReasonEnumNotInUse,
			"Target is in an Availability Zone that is not enabled for the load balancer",
		)
	}
	since := t.Registered
	if g.Used.After(since) {
		since = g.Used
	}
	if svc.Now().Before(since.Add(TargetTakes)) {
		return is(types.TargetHealthStateEnumInitial, types.TargetHealthReasonEnumInitialHealthChecking, "Initial health checks in progress")
	}
	if svc.Now().Before(b.Ready) {
		return is(types.TargetHealthStateEnumInitial, types.TargetHealthReasonEnumRegistrationInProgress, "Target registration is in progress")
	}
	if i.Boot != nil && i.UserData != "" &&
		(i.Boot.Failed != "" || i.Boot.ControlPlane && i.Boot.Joined.IsZero() || i.Boot.ControlPlane != (t.Port == apiServerPort)) {
		// Without user data, the image decides what runs.
		return is(types.TargetHealthStateEnumUnhealthy, types.TargetHealthReasonEnumFailedHealthChecks, "Health checks failed")
	}
	return types.TargetHealth{State: types.TargetHealthStateEnumHealthy}
}
