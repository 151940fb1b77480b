package discover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Balancer is a network load balancer of the API server.
type Balancer struct {
	elb.LoadBalancerState
	Owned     bool
	Port      int32 // of the API server
	Listeners map[int32]elb.TargetGroupState
}

// Classic is a Classic Load Balancer of the API server.
type Classic struct {
	elb.ClassicLoadBalancerState
	Owned bool
	Port  int32
}

// apiPort is the port of the API server on its machine.
const apiPort = manifest.DefaultAPIPort

// readBalancers reads the load balancers of the API server: the cluster's own, or those of
// somebody else with which its control plane is registered.
func (s *SelfManaged) readBalancers(ctx context.Context, c *cloud.Clients) error {
	own, err := elb.OwnLoadBalancers(ctx, c)
	if err != nil {
		return fmt.Errorf("load balancers: %w", err)
	}
	for _, lb := range own {
		if err := s.addBalancer(ctx, c, lb, true); err != nil {
			return err
		}
	}
	classic, err := elb.OwnClassicLoadBalancers(ctx, c)
	if err != nil {
		return fmt.Errorf("classic load balancers: %w", err)
	}
	for _, lb := range classic {
		s.Classic = &Classic{ClassicLoadBalancerState: lb, Owned: true, Port: classicPort(lb)}
	}
	if len(s.Balancers) == 0 && s.Classic == nil {
		err = s.readExistingBalancers(ctx, c)
	}
	slices.SortStableFunc(s.Balancers, func(x, y Balancer) int { return rank(s.isPrimary(y)) - rank(s.isPrimary(x)) })
	return err
}

func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

// isPrimary reports whether a load balancer is that of the endpoint.
func (s *SelfManaged) isPrimary(b Balancer) bool {
	if s.Marker != nil {
		if host, _, _ := strings.Cut(s.Marker.Endpoint, ":"); s.isBalancer(host) {
			return b.DNS == host
		}
	}
	return b.Name == topology.APIServerName(s.Namespace, s.Name, false)
}

// isBalancer reports whether a host is the name in DNS of a load balancer of the API server.
func (s *SelfManaged) isBalancer(host string) bool {
	return s.Classic != nil && s.Classic.DNS == host || slices.ContainsFunc(s.Balancers, func(b Balancer) bool { return b.DNS == host })
}

func (s *SelfManaged) addBalancer(ctx context.Context, c *cloud.Clients, lb elb.LoadBalancerState, owned bool) error {
	b := Balancer{LoadBalancerState: lb, Owned: owned, Listeners: map[int32]elb.TargetGroupState{}}
	groups, err := elb.TargetGroupsBehind(ctx, c, lb.ID)
	if err != nil {
		return fmt.Errorf("target groups of %s: %w", lb.Name, err)
	}
	listeners, err := elb.Listeners(ctx, c, lb.ID)
	if err != nil {
		return fmt.Errorf("listeners of %s: %w", lb.Name, err)
	}
	for _, l := range listeners {
		for _, g := range groups {
			if g.ID != l.Target {
				continue
			}
			b.Listeners[l.Port] = g
			if g.Port == apiPort && (b.Port == 0 || strings.HasSuffix(g.Tags[cloud.ResourceTag], "/api")) {
				b.Port = l.Port
			}
		}
	}
	if b.Port != 0 {
		s.Balancers = append(s.Balancers, b)
	}
	return nil
}

// readExistingBalancers finds load balancers by the machines of the control plane.
func (s *SelfManaged) readExistingBalancers(ctx context.Context, c *cloud.Clients) error {
	var machines []string
	for _, m := range s.Machines {
		if m.Tags[cloud.RoleTag] == topology.RoleControlPlane {
			machines = append(machines, m.ID)
		}
	}
	serves := func(instances []string) bool {
		return slices.ContainsFunc(instances, func(id string) bool { return slices.Contains(machines, id) })
	}
	all, err := elb.LoadBalancers(ctx, c)
	if err != nil {
		return fmt.Errorf("load balancers: %w", err)
	}
	groups, err := elb.TargetGroups(ctx, c)
	if err != nil {
		return fmt.Errorf("target groups: %w", err)
	}
	for _, g := range groups {
		if g.VPC != s.VPC.ID || g.Port != apiPort {
			continue
		}
		targets, err := elb.TargetsOf(ctx, c, g.ID)
		if err != nil {
			return fmt.Errorf("targets of %s: %w", g.Name, err)
		}
		for _, lb := range all {
			if serves(targets.Instances) && slices.Contains(g.LoadBalancer, lb.ID) {
				if err := s.addBalancer(ctx, c, lb, false); err != nil {
					return err
				}
			}
		}
	}
	classic, err := elb.ClassicLoadBalancers(ctx, c)
	for _, lb := range classic {
		if serves(lb.Instances) {
			s.Classic = &Classic{ClassicLoadBalancerState: lb, Port: classicPort(lb)}
		}
	}
	return err
}

func classicPort(lb elb.ClassicLoadBalancerState) (port int32) {
	for _, l := range lb.Listeners {
		if _, err := fmt.Sscanf(l, "TCP %d", &port); err == nil {
			return port
		}
	}
	return port
}

// Endpoint returns the host and port of the API server; "" if it is not known.
func (s *SelfManaged) Endpoint() string {
	switch {
	case s.Marker != nil && s.Marker.Endpoint != "":
		return s.Marker.Endpoint
	case len(s.Balancers) > 0:
		return fmt.Sprintf("%s:%d", s.Balancers[0].DNS, s.Balancers[0].Port)
	case s.Classic != nil:
		return fmt.Sprintf("%s:%d", s.Classic.DNS, s.Classic.Port)
	}
	return ""
}

// port is the port at which clients reach the API server.
func (s *SelfManaged) port() int32 {
	_, port, _ := strings.Cut(s.Endpoint(), ":")
	if n, err := strconv.ParseInt(port, 10, 32); err == nil {
		return int32(n)
	}
	return apiPort
}

// setBalancers sets the load balancers of an AWSCluster.
func (s *SelfManaged) setBalancers(spec map[string]any) {
	for i, b := range s.Balancers[:min(2, len(s.Balancers))] {
		field := []string{"controlPlaneLoadBalancer", "secondaryControlPlaneLoadBalancer"}[i]
		spec[field] = s.balancer(b, i == 0)
	}
	switch {
	case s.Classic != nil && len(s.Balancers) == 0:
		spec["controlPlaneLoadBalancer"] = s.classicBalancer()
	case len(s.Balancers) == 0:
		spec["controlPlaneLoadBalancer"] = map[string]any{"loadBalancerType": "disabled"}
	}
	if lb, ok := spec["controlPlaneLoadBalancer"].(map[string]any); ok {
		setList(lb, "ingressRules", s.apiServerRules())
	}
}

func (s *SelfManaged) balancer(b Balancer, primary bool) map[string]any {
	out := map[string]any{"loadBalancerType": "nlb"}
	byDefault := ""
	if primary && b.Owned {
		byDefault = topology.APIServerName(s.Namespace, s.Name, false)
	}
	set(out, "name", b.Name, byDefault)
	api := b.Listeners[b.Port]
	if b.Owned {
		s.setPlacement(out, b.Internal, b.Subnets, b.Groups)
		if b.CrossZone {
			out["crossZoneLoadBalancing"] = true
		}
		set(out, "healthCheckProtocol", api.Check.Protocol, "TCP")
		setMap(out, "healthCheck", counts(api.Check))
		if s.VPC.IPv6CIDR != "" {
			out["targetGroupIPType"] = api.IPType
		}
		if api.Attributes["preserve_client_ip.enabled"] == "true" {
			out["preserveClientIP"] = true
		}
	}
	var more []any
	for _, port := range slices.Sorted(maps.Keys(b.Listeners)) {
		if port != b.Port {
			more = append(more, s.listener(port, b.Listeners[port], b.Owned))
		}
	}
	setList(out, "additionalListeners", more)
	return out
}

func (s *SelfManaged) listener(port int32, g elb.TargetGroupState, owned bool) map[string]any {
	out := map[string]any{"port": int64(port)}
	if !owned {
		return out
	}
	if s.VPC.IPv6CIDR != "" {
		out["targetGroupIPType"] = g.IPType
	}
	check := counts(g.Check)
	set(check, "protocol", g.Check.Protocol, "TCP")
	set(check, "port", g.Check.Port, strconv.Itoa(int(port)))
	set(check, "path", g.Check.Path, "/")
	setMap(out, "healthCheck", check)
	return out
}

// counts returns the numbers of a health check that are not the defaults of CAPA.
func counts(h elb.HealthCheck) map[string]any {
	out := map[string]any{}
	for _, x := range []struct {
		field         string
		have, usually int32
	}{
		{"intervalSeconds", h.Interval, 5}, {"timeoutSeconds", h.Timeout, 4}, {"thresholdCount", h.Healthy, 2}, {"unhealthyThresholdCount", h.Unhealthy, 6},
	} {
		if x.have != x.usually {
			out[x.field] = int64(x.have)
		}
	}
	return out
}

// setPlacement sets the scheme, the subnets and the security groups of a load balancer, if
// they are not those that it has by default.
func (s *SelfManaged) setPlacement(out map[string]any, internal bool, subnets, groups []string) {
	if internal {
		out["scheme"] = "internal"
	}
	if !same(subnets, s.usualSubnets(internal)) {
		var names []any
		for _, id := range slices.Sorted(slices.Values(subnets)) {
			names = append(names, s.subnetName(id))
		}
		out["subnets"] = names
	}
	own := s.Groups[infrav1.SecurityGroupAPIServerLB].ID
	setList(out, "additionalSecurityGroups", anys(slices.DeleteFunc(slices.Sorted(slices.Values(groups)), func(id string) bool { return id == own })))
}

// usualSubnets lists the subnets in which a load balancer is by default: one in each zone.
func (s *SelfManaged) usualSubnets(internal bool) (ids []string) {
	private := slices.ContainsFunc(s.Subnets, func(x ec2.SubnetState) bool { return !s.Public[x.ID] })
	zones := map[string]bool{}
	for _, x := range s.inOrder() {
		if s.Public[x.ID] == (!internal || !private) && !zones[x.Zone] && !topology.IsUnusualZone(s.Region, x.Zone) {
			zones[x.Zone] = true
			ids = append(ids, x.ID)
		}
	}
	return ids
}

func (s *SelfManaged) classicBalancer() map[string]any {
	b := s.Classic
	out := map[string]any{"loadBalancerType": "classic"}
	byDefault := ""
	if b.Owned {
		byDefault = topology.APIServerName(s.Namespace, s.Name, true)
		s.setPlacement(out, b.Internal, b.Subnets, b.Groups)
		if b.CrossZone {
			out["crossZoneLoadBalancing"] = true
		}
		protocol, _, _ := strings.Cut(b.Health.Target, ":")
		out["healthCheckProtocol"] = protocol
	}
	set(out, "name", b.ID, byDefault)
	return out
}
