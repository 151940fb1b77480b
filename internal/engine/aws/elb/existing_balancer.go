package elb

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// ExistingBalancer is an existing load balancer with which machines are registered, and what the cluster needs of it.
type ExistingBalancer struct {
	Name         string
	LoadBalancer *graph.Ref[LoadBalancerState]
	VPC          *graph.Ref[ec2.VPCState] // of the cluster
	Port         int32                    // of the listener
	To           int32                    // of the machines; 0: any
	Scheme       string                   // of the manifest; "" if it has none
}

var (
	_ graph.Checked = (*Targets)(nil)
	_ graph.Doubted = (*Targets)(nil)
)

// Check implements graph.Checked. It says why machines could not be registered with the target group of an existing load balancer,
// or why the API server could not be reached through it. Targets that are instances have to be in the VPC of their target group, and
// for a target group of IPv6 they need a primary IPv6 address. Sources: LoadBalancerState and RegisterTargets in the ELB API, and the
// pages about Network Load Balancers, listeners and target groups in the Elastic Load Balancing user guide.
func (t *Targets) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	x := t.Existing
	if x == nil {
		return "", nil
	}
	lb, found := x.LoadBalancer.Found()
	group, known := t.Group.Found()
	if !found || !known {
		return "", nil
	}
	vpc := ec2.KnownVPC(x.VPC)
	if refusal := lb.unusable(vpc); refusal != "" {
		return fmt.Sprintf("the load balancer %s is %s: use another load balancer", x.Name, refusal), nil
	}
	if refusal := t.refusesMachines(group, vpc); refusal != "" {
		return fmt.Sprintf("the target group %s behind the port %d of the load balancer %s %s: use another target group", group.Name, x.Port, x.Name, refusal), nil
	}
	all, err := Listeners(ctx, c, lb.ID)
	for _, l := range all {
		if l.Port == x.Port && !forwardsTCP(l.Protocol) {
			return fmt.Sprintf("the listener on the port %d of the load balancer %s has the protocol %s, and the API server needs TCP: change the listener",
				x.Port, x.Name, l.Protocol), nil
		}
	}
	return "", err
}

// unusable says why a load balancer cannot be that of a cluster in the VPC; "" if it can.
func (s LoadBalancerState) unusable(vpc string) string {
	switch {
	case s.Failure() != "":
		return s.Failure() + ", and AWS does not repair it"
	case s.Type != types.LoadBalancerTypeEnumNetwork:
		return fmt.Sprintf("of the type %s, and machines join through connections of TCP, which only a network load balancer forwards", s.Type)
	case vpc != "" && s.VPC != vpc:
		return fmt.Sprintf("in the VPC %s, and the cluster in %s", s.VPC, vpc)
	}
	return ""
}

// refusesMachines says why the machines of a cluster in the VPC cannot be in the target group; "" if they can.
func (t *Targets) refusesMachines(group TargetGroupState, vpc string) string {
	switch {
	case vpc != "" && group.VPC != vpc:
		return fmt.Sprintf("is in the VPC %s, and the cluster in %s", group.VPC, vpc)
	case group.Type != types.TargetTypeEnumInstance:
		return fmt.Sprintf("has targets of the type %s, and machines are registered as instances", group.Type)
	case !forwardsTCP(group.Protocol):
		return fmt.Sprintf("has the protocol %s, and the API server needs TCP", group.Protocol)
	case group.IPType == string(types.TargetGroupIpAddressTypeEnumIpv6) && !t.primaryIPv6():
		return "is for IPv6, and the machines have no primary IPv6 address (assignPrimaryIPv6)"
	}
	return ""
}

func forwardsTCP(p types.ProtocolEnum) bool {
	return p == types.ProtocolEnumTcp || p == types.ProtocolEnumTcpUdp
}

// primaryIPv6 reports whether all machines have a primary IPv6 address, as far as is known.
func (t *Targets) primaryIPv6() bool {
	for _, i := range t.Instances {
		m, own := i.Desired().(*ec2.Instance)
		if own && (m.Spec.AssignPrimaryIPv6 == nil || *m.Spec.AssignPrimaryIPv6 != infrav1.PrimaryIPv6AssignmentStateEnabled) {
			return false
		}
	}
	return true
}

// Doubts implements graph.Doubted. It warns of a scheme that differs from the manifest, because a run does not change it, and of a target
// group that forwards to a port on which the API server does not listen.
func (t *Targets) Doubts(context.Context, *cloud.Clients) (warnings []string, err error) {
	x := t.Existing
	if x == nil {
		return nil, nil
	}
	lb, found := x.LoadBalancer.Found()
	group, known := t.Group.Found()
	if !found || !known {
		return nil, nil
	}
	scheme := string(types.LoadBalancerSchemeEnumInternetFacing)
	if lb.Internal {
		scheme = string(types.LoadBalancerSchemeEnumInternal)
	}
	if x.Scheme != "" && x.Scheme != scheme {
		warnings = append(
			warnings,
			fmt.Sprintf("the load balancer %s is %s, not %s, and a run does not change that: who is outside of the VPC reaches only one that is internet-facing",
				x.Name, scheme, x.Scheme),
		)
	}
	if x.To > 0 && group.Port != x.To {
		warnings = append(
			warnings,
			fmt.Sprintf("the target group %s behind the port %d of the load balancer %s forwards to the port %d of the machines, and kubeadm's API server listens on %d",
				group.Name, x.Port, x.Name, group.Port, x.To),
		)
	}
	return warnings, nil
}
