package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// loadBalancers are what control-plane machines are registered with.
type loadBalancers struct {
	leftovers graph.Resource // what load balancers leave behind for a while
	targets   []target
	classic   *graph.Ref[elb.ClassicLoadBalancerState]
	shared    bool // the classic one is somebody else's
}

// target is a target group, and what it is for.
type target struct {
	name   string // "api", "secondary/api", "8132"
	group  *graph.Ref[elb.TargetGroupState]
	shared bool // it is somebody else's
}

// networkLoadBalancers lists those of the manifest that are network load
// balancers.
func (b *builder) networkLoadBalancers() (out []*infrav1.AWSLoadBalancerSpec) {
	for _, lb := range []*infrav1.AWSLoadBalancerSpec{b.spec.ControlPlaneLoadBalancer, b.spec.SecondaryControlPlaneLoadBalancer} {
		if lb != nil && lb.LoadBalancerType == infrav1.LoadBalancerTypeNLB {
			out = append(out, lb)
		}
	}
	return out
}

// endpointPort is the port at which clients reach the API server.
func (b *builder) endpointPort() int32 {
	if p := b.spec.ControlPlaneEndpoint.Port; p != 0 {
		return p
	}
	if p := b.m.Object.Spec.ClusterNetwork.APIServerPort; p != 0 {
		return p
	}
	return apiPort
}

func (b *builder) loadBalancers() {
	b.endpoint = bootdata.Endpoint{Host: b.spec.ControlPlaneEndpoint.Host, Port: b.endpointPort()}
	if e := b.m.Object.Spec.ControlPlaneEndpoint; e.Host != "" {
		b.endpoint.Host, b.endpoint.Port = e.Host, e.Port
	}
	primary := b.spec.ControlPlaneLoadBalancer
	switch {
	case primary == nil || primary.LoadBalancerType == infrav1.LoadBalancerTypeDisabled:
	case primary.LoadBalancerType == infrav1.LoadBalancerTypeNLB:
		b.endpoint.Network = b.network1(primary, "", "spec.controlPlaneLoadBalancer")
	default:
		b.endpoint.Classic = b.classic(primary)
	}
	if second := b.spec.SecondaryControlPlaneLoadBalancer; second != nil {
		b.network1(second, "secondary/", "spec.secondaryControlPlaneLoadBalancer")
	}
}

// network1 adds one network load balancer with its listeners and target
// groups, or looks up one that somebody else made.
func (b *builder) network1(spec *infrav1.AWSLoadBalancerSpec, prefix, path string) *graph.Ref[elb.LoadBalancerState] {
	id := graph.ID("load-balancer/" + prefix + "network")
	name := b.balancerName(spec)
	if spec.Name != nil && b.inv.Foreign[name] {
		return b.foreignNetworkLoadBalancer(id, name, spec, prefix, path)
	}
	r := &elb.LoadBalancer{
		Name: name, VPC: b.net.vpc, Subnets: b.balanced(spec), Groups: []*graph.Ref[ec2.SecurityGroupState]{b.groups[infrav1.SecurityGroupAPIServerLB]},
		ExtraIDs: spec.AdditionalSecurityGroups, Internal: internal(spec), DualStack: b.net.ipv6, CrossZone: spec.CrossZoneLoadBalancing,
		Tags: b.tags(id, name, roleAPIServer),
	}
	if !r.Internal {
		r.Internet = b.net.internet
	}
	if slices.Contains([]string{"us-iso-east-1", "us-iso-west-1", "us-isob-east-1"}, b.m.Region) {
		r.Groups, r.ExtraIDs = nil, nil // network load balancers take no security groups there
	}
	lb := graph.Add(b.Graph, id, r, b.infra(path), graph.With(graph.Exists(b.lb.leftovers)))
	b.listener(lb, spec, prefix, "api", b.endpointPort(), apiPort, b.apiCheck(spec), spec.TargetGroupIPType, path)
	for i, l := range spec.AdditionalListeners {
		port := int32(l.Port) //nolint:gosec // a port
		b.listener(lb, spec, prefix, strconv.FormatInt(l.Port, 10), port, port, extraCheck(l), l.TargetGroupIPType, fmt.Sprintf("%s.additionalListeners[%d]", path, i))
	}
	return lb
}

// balancerName returns the name of a network load balancer, which its target
// groups and listeners carry as a tag too.
func (b *builder) balancerName(spec *infrav1.AWSLoadBalancerSpec) string {
	if spec.Name != nil {
		return *spec.Name
	}
	return loadBalancerName(b.m.Namespace + "-" + b.m.Name)
}

// listener adds a target group and the listener that sends to it.
func (b *builder) listener(lb *graph.Ref[elb.LoadBalancerState], spec *infrav1.AWSLoadBalancerSpec, prefix, what string, port, to int32, check elb.HealthCheck, ipType *infrav1.TargetGroupIPType, path string) {
	stem := "additional-listener-"
	if what == "api" {
		stem = "apiserver-target-"
	}
	groupID, listenerID := graph.ID("target-group/"+prefix+what), graph.ID("listener/"+prefix+what)
	name, lbName := stem+suffix(b.m.Namespace, b.m.Name, prefix, what, fmt.Sprint(to)), b.balancerName(spec)
	group := graph.Add(b.Graph, groupID, &elb.TargetGroup{
		Name: name, Stem: stem, VPC: b.net.vpc, LoadBalancer: lb, Port: to, IPType: b.ipType(ipType), Check: check,
		Attributes: map[string]string{
			"target_health_state.unhealthy.connection_termination.enabled": "false",
			"target_health_state.unhealthy.draining_interval_seconds":      "300",
			"preserve_client_ip.enabled":                                   strconv.FormatBool(spec.PreserveClientIP),
		},
		Tags: b.tags(groupID, lbName, roleAPIServer),
	}, b.infra(path))
	graph.Add(b.Graph, listenerID, &elb.Listener{
		LoadBalancer: lb, Target: group, Port: port, Tags: b.tags(listenerID, lbName, roleAPIServer),
	}, b.infra(path))
	b.lb.targets = append(b.lb.targets, target{name: prefix + what, group: group})
}

// foreignNetworkLoadBalancer looks up a load balancer that somebody else made,
// and the target group of its API listener, where there is one.
func (b *builder) foreignNetworkLoadBalancer(id graph.ID, name string, spec *infrav1.AWSLoadBalancerSpec, prefix, path string) *graph.Ref[elb.LoadBalancerState] {
	lb := graph.Use(b.Graph, id, elb.LoadBalancerByName(name), b.infra(path))
	ports := map[string]int32{"api": b.endpointPort()}
	for _, l := range spec.AdditionalListeners {
		ports[strconv.FormatInt(l.Port, 10)] = int32(l.Port) //nolint:gosec // a port
	}
	for _, what := range slices.Sorted(maps.Keys(ports)) {
		group := graph.Use(b.Graph, graph.ID("target-group/"+prefix+what), elb.TargetGroupOf(lb, ports[what]), b.infra(path), graph.With(graph.On(lb)))
		b.lb.targets = append(b.lb.targets, target{prefix + what, group, true})
	}
	return lb
}

// classic adds a classic load balancer, or looks up one that somebody else
// made.
func (b *builder) classic(spec *infrav1.AWSLoadBalancerSpec) *graph.Ref[elb.ClassicLoadBalancerState] {
	const id, path = graph.ID("load-balancer/classic"), "spec.controlPlaneLoadBalancer"
	name := loadBalancerName(b.m.Name)
	if spec.Name != nil {
		name = *spec.Name
	}
	if b.inv.Foreign[name] {
		b.lb.classic, b.lb.shared = graph.Use(b.Graph, id, elb.ClassicLoadBalancerByName(name), b.infra(path)), true
		return b.lb.classic
	}
	r := &elb.ClassicLoadBalancer{
		Name: name, VPC: b.net.vpc, Subnets: b.balanced(spec), Groups: []*graph.Ref[ec2.SecurityGroupState]{b.groups[infrav1.SecurityGroupAPIServerLB]},
		ExtraIDs: spec.AdditionalSecurityGroups, Internal: internal(spec), CrossZone: spec.CrossZoneLoadBalancing,
		Port: b.endpointPort(), Check: classicCheck(spec), Tags: b.tags(id, name, roleAPIServer),
	}
	if !r.Internal {
		r.Internet = b.net.internet
	}
	b.lb.classic = graph.Add(b.Graph, id, r, b.infra(path), graph.With(graph.Exists(b.lb.leftovers)))
	return b.lb.classic
}

func internal(spec *infrav1.AWSLoadBalancerSpec) bool {
	return spec.Scheme != nil && *spec.Scheme == infrav1.ELBSchemeInternal
}

// balanced lists the subnets of a load balancer: those that the manifest
// names, or one in each zone.
func (b *builder) balanced(spec *infrav1.AWSLoadBalancerSpec) (out []*graph.Ref[ec2.SubnetState]) {
	for _, name := range spec.Subnets {
		i := slices.IndexFunc(b.net.subnets, func(s subnet) bool { return s.name == name })
		if i < 0 {
			b.fail("%s: subnet %s is not one of the cluster's", b.m.Origin(b.m.InfraObject(), "spec.controlPlaneLoadBalancer.subnets"), name)
			return nil
		}
		out = append(out, b.net.subnets[i].ref)
	}
	if len(out) > 0 {
		return out
	}
	zones := map[string]bool{}
	for _, s := range b.net.of(!internal(spec) || len(b.net.of(false)) == 0) {
		if !zones[s.zone] {
			zones[s.zone] = true
			out = append(out, s.ref)
		}
	}
	return out
}

// register adds the machines of the control plane to their load balancers. With
// beside, others that are registered stay.
func (b *builder) register(control []*graph.Ref[ec2.InstanceState], beside bool) {
	var gone []string
	for _, m := range b.going() {
		if !beside {
			gone = append(gone, m.ID)
		}
	}
	b.atBalancers("", elb.Targets{Instances: control, Shared: beside, Gone: gone}, b.infra("spec.controlPlaneLoadBalancer"))
}

// atBalancers adds the same registration at every load balancer of the control
// plane, under their names and what follows.
func (b *builder) atBalancers(then string, like elb.Targets, opts ...graph.Option) (added []graph.Edge) {
	for _, t := range b.lb.targets {
		r := like
		r.Group, r.Shared = t.group, like.Shared || t.shared
		r.Healthy = like.Healthy && (t.name == "api" || t.name == "secondary/api") // what else listens may come later, or never
		added = append(added, graph.Awaits(graph.Add(b.Graph, graph.ID("targets/"+t.name+then), &r, opts...))...)
	}
	if b.lb.classic != nil {
		added = append(added, graph.Awaits(graph.Add(b.Graph, graph.ID("targets/classic"+then), &elb.ClassicTargets{
			LoadBalancer: b.lb.classic, Instances: like.Instances, Shared: like.Shared || b.lb.shared, Gone: like.Gone,
		}, opts...))...)
	}
	return added
}

// ipType is how a target group reaches its targets: over IPv6 where every
// private subnet has it, unless the manifest says otherwise.
func (b *builder) ipType(given *infrav1.TargetGroupIPType) string {
	switch {
	case given != nil:
		return string(*given)
	case !b.net.ipv6:
		return "ipv4"
	}
	for _, s := range b.net.of(false) {
		if s.ipv6 == 0 && s.ipv6CIDR == "" {
			return "ipv4"
		}
	}
	return "ipv6"
}

// Health checks, with CAPA's defaults (facts B.10).
const (
	checkInterval  = 5
	checkTimeout   = 4
	checkHealthy   = 2
	checkUnhealthy = 6
	readyz         = "/readyz"
)

func (b *builder) apiCheck(spec *infrav1.AWSLoadBalancerSpec) elb.HealthCheck {
	h := elb.HealthCheck{Protocol: "TCP", Port: strconv.Itoa(apiPort), Interval: checkInterval, Timeout: checkTimeout, Healthy: checkHealthy, Unhealthy: checkUnhealthy}
	if p := spec.HealthCheckProtocol; p != nil {
		h.Protocol = string(*p)
	}
	if h.Protocol == "HTTP" || h.Protocol == "HTTPS" {
		h.Path = readyz
	}
	if c := spec.HealthCheck; c != nil {
		counted(&h, c.IntervalSeconds, c.TimeoutSeconds, c.ThresholdCount, c.UnhealthyThresholdCount)
	}
	return h
}

func extraCheck(l infrav1.AdditionalListenerSpec) elb.HealthCheck {
	h := elb.HealthCheck{Protocol: "TCP", Port: strconv.FormatInt(l.Port, 10), Interval: checkInterval, Timeout: checkTimeout, Healthy: checkHealthy, Unhealthy: checkUnhealthy}
	c := l.HealthCheck
	if c == nil {
		return h
	}
	if c.Protocol != nil {
		h.Protocol = *c.Protocol
	}
	if c.Port != nil {
		h.Port = *c.Port
	}
	if h.Protocol == "HTTP" || h.Protocol == "HTTPS" {
		h.Path = readyz
		if c.Path != nil {
			h.Path = *c.Path
		}
	}
	counted(&h, c.IntervalSeconds, c.TimeoutSeconds, c.ThresholdCount, c.UnhealthyThresholdCount)
	return h
}

func counted(h *elb.HealthCheck, interval, timeout, healthy, unhealthy *int64) {
	for at, n := range map[*int32]*int64{&h.Interval: interval, &h.Timeout: timeout, &h.Healthy: healthy, &h.Unhealthy: unhealthy} {
		if n != nil {
			*at = int32(*n) //nolint:gosec // validated to be at most 300
		}
	}
}

func classicCheck(spec *infrav1.AWSLoadBalancerSpec) elb.ClassicHealthCheck {
	target := fmt.Sprintf("TCP:%d", apiPort)
	if p := spec.HealthCheckProtocol; p != nil {
		target = fmt.Sprintf("%s:%d", *p, apiPort)
		if *p == infrav1.ELBProtocolHTTP || *p == infrav1.ELBProtocolHTTPS {
			target += readyz
		}
	}
	return elb.ClassicHealthCheck{Target: target, Interval: checkInterval, Timeout: checkTimeout, Healthy: checkHealthy, Unhealthy: checkUnhealthy}
}
