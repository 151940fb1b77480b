package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// loadBalancers are the load balancers of the API server, with which machines of the
// control plane are registered.
type loadBalancers struct {
	endpoint        bootdata.Endpoint
	listeners       []graph.Resource
	targets         []target
	classic         *graph.Ref[elb.ClassicLoadBalancerState]
	existingClassic bool             // the classic load balancer is not managed
	living          []graph.Resource // registrations that are made before all others
}

// target is a target group.
type target struct {
	name     string // "api", "secondary/api", "8132"
	group    *graph.Ref[elb.TargetGroupState]
	existing *elb.ExistingBalancer // nil if the target group is managed
}

// networkLoadBalancers lists the network load balancers of the manifest.
func (in inputs) networkLoadBalancers() (out []*infrav1.AWSLoadBalancerSpec) {
	for _, lb := range []*infrav1.AWSLoadBalancerSpec{in.spec.ControlPlaneLoadBalancer, in.spec.SecondaryControlPlaneLoadBalancer} {
		if lb != nil && lb.LoadBalancerType == infrav1.LoadBalancerTypeNLB {
			out = append(out, lb)
		}
	}
	return out
}

// balancerPlace says where the load balancers of the API server are.
type balancerPlace struct {
	net        network
	group      *graph.Ref[ec2.SecurityGroupState] // nil in externally managed infrastructure
	interfaces graph.Resource                     // network interfaces that load balancers leave behind
}

// addLoadBalancers adds the load balancers of the manifest.
func addLoadBalancers(g *graph.Graph, in inputs, at balancerPlace) (out loadBalancers, err error) {
	out.endpoint = bootdata.Endpoint{Host: in.spec.ControlPlaneEndpoint.Host, Port: in.m.APIPort()}
	if e := in.m.Object.Spec.ControlPlaneEndpoint; e.Host != "" {
		out.endpoint.Host, out.endpoint.Port = e.Host, e.Port
	}
	var first, second networkLoadBalancer
	primary := in.spec.ControlPlaneLoadBalancer
	switch {
	case primary == nil || primary.LoadBalancerType == infrav1.LoadBalancerTypeDisabled:
	case primary.LoadBalancerType == infrav1.LoadBalancerTypeNLB:
		if first, err = addNetworkLoadBalancer(g, in, at, primary, "", "spec.controlPlaneLoadBalancer"); err != nil {
			return out, err
		}
		out.endpoint.Network = first.ref
	default:
		if out.classic, err = addClassicLoadBalancer(g, in, at, primary); err != nil {
			return out, err
		}
		out.endpoint.Classic, out.existingClassic = out.classic, in.m.External || in.inv.Balancers[in.classicName(primary)]
	}
	if spec := in.spec.SecondaryControlPlaneLoadBalancer; spec != nil {
		second, err = addNetworkLoadBalancer(g, in, at, spec, "secondary/", "spec.secondaryControlPlaneLoadBalancer")
	}
	out.listeners = slices.Concat(first.listeners, second.listeners)
	out.targets = slices.Concat(first.targets, second.targets)
	return out, err
}

// networkLoadBalancer is one network load balancer with its listeners and target
// groups.
type networkLoadBalancer struct {
	ref       *graph.Ref[elb.LoadBalancerState]
	listeners []graph.Resource
	targets   []target
}

// listener is a port of a network load balancer, and the target port on the machines.
type listener struct {
	name     string // "api", "8132"
	stem     string // of the name of its target group
	port, to int32
	check    elb.HealthCheck
	ipType   *infrav1.TargetGroupIPType
	path     string
}

// listeners lists the listeners of a network load balancer, that of the API server first.
func (in inputs) listeners(spec *infrav1.AWSLoadBalancerSpec, path string) []listener {
	out := []listener{{
		name: "api", stem: "apiserver-target-", port: in.m.APIPort(), to: apiPort, check: apiCheck(spec), ipType: spec.TargetGroupIPType, path: path,
	}}
	for i, l := range spec.AdditionalListeners {
		port := int32(l.Port) //nolint:gosec // a port
		out = append(out, listener{
			name: strconv.FormatInt(l.Port, 10), stem: "additional-listener-", port: port, to: port, check: extraCheck(l), ipType: l.TargetGroupIPType,
			path: fmt.Sprintf("%s.additionalListeners[%d]", path, i),
		})
	}
	return out
}

// addNetworkLoadBalancer adds one network load balancer, or looks up an existing
// one.
func addNetworkLoadBalancer(
	g *graph.Graph,
	in inputs,
	at balancerPlace,
	spec *infrav1.AWSLoadBalancerSpec,
	prefix, path string,
) (out networkLoadBalancer, err error) {
	id := plan.ID(elb.LoadBalancerKind + "/" + prefix + "network") // as in the declaration of the kind
	name := in.balancerName(spec)
	if in.m.External || spec.Name != nil && in.inv.Balancers[name] {
		return addExistingNetworkLoadBalancer(g, in, at.net.vpc, id, name, spec, prefix, path), nil
	}
	r := &elb.LoadBalancer{
		Name: name, VPC: at.net.vpc, Groups: []*graph.Ref[ec2.SecurityGroupState]{at.group},
		ExtraIDs: spec.AdditionalSecurityGroups, Internal: internal(spec), DualStack: at.net.ipv6, CrossZone: spec.CrossZoneLoadBalancing,
		Tags: in.namedTags(name, roleAPIServer),
	}
	if r.Subnets, err = balancerSubnets(g, in, at.net, spec, path); err != nil {
		return out, err
	}
	if !r.Internal {
		r.Internet = at.net.internet
	}
	if slices.Contains([]string{"us-iso-east-1", "us-iso-west-1", "us-isob-east-1"}, in.m.Region) {
		r.Groups, r.ExtraIDs = nil, nil // network load balancers take no security groups there
	}
	out.ref = graph.Add(g, id, r, in.infra(path), graph.With(graph.Exists(at.interfaces)), graph.DeletedBehind(isMachine))
	for _, l := range in.listeners(spec, path) {
		targetID, listenerID := plan.ID("target-group/"+prefix+l.name), plan.ID("listener/"+prefix+l.name)
		group := graph.Add(g, targetID, &elb.TargetGroup{
			Name: l.stem + suffix(in.m.Namespace, in.m.Name, prefix, l.name, fmt.Sprint(l.to)), Stem: l.stem,
			VPC: at.net.vpc, LoadBalancer: out.ref, Port: l.to, IPType: at.net.ipType(l.ipType), Check: l.check,
			Attributes: map[string]string{
				"target_health_state.unhealthy.connection_termination.enabled": "false",
				"target_health_state.unhealthy.draining_interval_seconds":      "300",
				"preserve_client_ip.enabled":                                   strconv.FormatBool(spec.PreserveClientIP),
			},
			Tags: in.tags(targetID, name, roleAPIServer),
		}, in.infra(l.path))
		out.listeners = append(out.listeners, graph.Add(g, listenerID, &elb.Listener{
			LoadBalancer: out.ref, Target: group, Port: l.port, Tags: in.tags(listenerID, name, roleAPIServer),
		}, in.infra(l.path)))
		out.targets = append(out.targets, target{name: prefix + l.name, group: group})
	}
	return out, nil
}

// balancerName returns the name of a network load balancer, which is also the tag Name of
// its target groups and listeners.
func (in inputs) balancerName(spec *infrav1.AWSLoadBalancerSpec) string {
	if spec.Name != nil {
		return *spec.Name
	}
	return loadBalancerName(in.m.Namespace + "-" + in.m.Name)
}

// addExistingNetworkLoadBalancer looks up an existing load balancer, and the
// target groups of its listeners.
func addExistingNetworkLoadBalancer(
	g *graph.Graph,
	in inputs,
	vpc *graph.Ref[ec2.VPCState],
	id plan.ID,
	name string,
	spec *infrav1.AWSLoadBalancerSpec,
	prefix, path string,
) networkLoadBalancer {
	out := networkLoadBalancer{ref: graph.Use(g, id, elb.LoadBalancerByName(name), in.infra(path))}
	ports := map[string]int32{"api": in.m.APIPort()}
	for _, l := range spec.AdditionalListeners {
		ports[strconv.FormatInt(l.Port, 10)] = int32(l.Port) //nolint:gosec // a port
	}
	for _, what := range slices.Sorted(maps.Keys(ports)) {
		group := graph.Use(g, plan.ID("target-group/"+prefix+what), elb.TargetGroupOf(out.ref, ports[what]), in.infra(path), graph.With(graph.On(out.ref)))
		existing := &elb.ExistingBalancer{Name: name, LoadBalancer: out.ref, VPC: vpc, Port: ports[what]}
		if what == "api" {
			existing.To = apiPort
		}
		if spec.Scheme != nil {
			existing.Scheme = string(*spec.Scheme)
		}
		out.targets = append(out.targets, target{prefix + what, group, existing})
	}
	return out
}

func (in inputs) classicName(spec *infrav1.AWSLoadBalancerSpec) string {
	if spec.Name != nil {
		return *spec.Name
	}
	return loadBalancerName(in.m.Name)
}

// addClassicLoadBalancer adds a classic load balancer, or looks up an existing
// one.
func addClassicLoadBalancer(g *graph.Graph, in inputs, at balancerPlace, spec *infrav1.AWSLoadBalancerSpec) (*graph.Ref[elb.ClassicLoadBalancerState], error) {
	const id, path = plan.ID(elb.ClassicLoadBalancerKind), "spec.controlPlaneLoadBalancer"
	name := in.classicName(spec)
	if in.m.External || in.inv.Balancers[name] {
		return graph.Use(g, id, elb.ClassicLoadBalancerByName(name), in.infra(path)), nil
	}
	subnets, err := balancerSubnets(g, in, at.net, spec, path)
	if err != nil {
		return nil, err
	}
	r := &elb.ClassicLoadBalancer{
		Name: name, VPC: at.net.vpc, Subnets: subnets, Groups: []*graph.Ref[ec2.SecurityGroupState]{at.group},
		ExtraIDs: spec.AdditionalSecurityGroups, Internal: internal(spec), CrossZone: spec.CrossZoneLoadBalancing,
		Port: in.m.APIPort(), Health: classicCheck(spec), Tags: in.namedTags(name, roleAPIServer),
	}
	if !r.Internal {
		r.Internet = at.net.internet
	}
	return graph.Add(g, id, r, in.infra(path), graph.With(graph.Exists(at.interfaces)), graph.DeletedBehind(isMachine)), nil
}

func internal(spec *infrav1.AWSLoadBalancerSpec) bool {
	return spec.Scheme != nil && *spec.Scheme == infrav1.ELBSchemeInternal
}

// unbalanced returns an error for a machine of the control plane in a zone in which the load balancer has no subnet: the load balancer does
// not forward to it. CAPA does not register such a machine with a classic load balancer (RegisterInstanceWithAPIServerELB in
// pkg/cloud/services/elb/loadbalancer.go). A target of a network load balancer stays unused (Target.NotInUse, TargetHealth in the API
// reference). Existing load balancers, network load balancers with cross-zone load balancing, and subnets whose zone is not known are not
// checked.
func (in inputs) unbalanced(net network, x group, zone string) error {
	if !x.controlPlane || zone == "" || in.m.External {
		return nil
	}
	for _, x := range []struct {
		path string
		lb   *infrav1.AWSLoadBalancerSpec
	}{
		{"spec.controlPlaneLoadBalancer", in.spec.ControlPlaneLoadBalancer}, {"spec.secondaryControlPlaneLoadBalancer", in.spec.SecondaryControlPlaneLoadBalancer},
	} {
		if x.lb == nil || in.existsAlready(x.lb) || x.lb.LoadBalancerType == infrav1.LoadBalancerTypeNLB && x.lb.CrossZoneLoadBalancing {
			continue
		}
		zones, known := net.balancerZones(x.lb)
		if !known || slices.Contains(zones, zone) {
			continue
		}
		return fmt.Errorf("%s: machines of the control plane are in %s, and the load balancer has subnets in %s only: it would forward nothing to them: "+
			"add a subnet in %[2]s, or keep the machines in its zones", in.m.Origin(in.m.InfraObject(), x.path+".subnets"), zone, strings.Join(zones, ", "))
	}
	return nil
}

// existsAlready reports whether a run uses a load balancer that it does not manage.
func (in inputs) existsAlready(lb *infrav1.AWSLoadBalancerSpec) bool {
	if lb.LoadBalancerType == infrav1.LoadBalancerTypeNLB {
		return lb.Name != nil && in.inv.Balancers[in.balancerName(lb)]
	}
	return in.inv.Balancers[in.classicName(lb)]
}

// balancerZones returns the zones in which a load balancer has a subnet: one that the manifest names, or one in each zone with a suitable
// subnet. known is false if the zone of one is not known.
func (n network) balancerZones(lb *infrav1.AWSLoadBalancerSpec) (zones []string, known bool) {
	if len(lb.Subnets) == 0 {
		for _, s := range n.defaultSubnets(lb) {
			if s.zone == "" {
				return nil, false
			}
			if !slices.Contains(zones, s.zone) {
				zones = append(zones, s.zone)
			}
		}
		return zones, len(zones) > 0
	}
	for _, name := range lb.Subnets {
		s, ok := n.named(name)
		if !ok || s.zone == "" {
			return nil, false
		}
		zones = append(zones, s.zone)
	}
	return zones, len(zones) > 0
}

// defaultSubnets are the subnets that a load balancer may have if the manifest names none.
func (n network) defaultSubnets(lb *infrav1.AWSLoadBalancerSpec) []subnet {
	return n.subnetsOfKind(!internal(lb) || len(n.subnetsOfKind(false)) == 0)
}

// named returns the subnet with a name or an ID.
func (n network) named(name string) (subnet, bool) {
	if i := slices.IndexFunc(n.subnets, func(s subnet) bool { return s.is(name) }); i >= 0 {
		return n.subnets[i], true
	}
	return subnet{}, false
}

// balancerSubnets lists the subnets of a load balancer: those that the manifest
// names, or one in each zone.
func balancerSubnets(g *graph.Graph, in inputs, net network, spec *infrav1.AWSLoadBalancerSpec, path string) (out []*graph.Ref[ec2.SubnetState], err error) {
	for n, name := range spec.Subnets {
		s, ok := net.named(name)
		switch {
		case ok && !s.public && !internal(spec) && s.ref.Desired() != nil:
			return nil, fmt.Errorf("%s: the subnet %s is private, and the load balancer is internet-facing: clients do not reach it there: "+
				"list public subnets, or set scheme: internal", in.m.Origin(in.m.InfraObject(), fmt.Sprintf("%s.subnets[%d]", path, n)), name)
		case ok:
			out = append(out, s.ref)
		case strings.HasPrefix(name, "subnet-"):
			out = append(out, lookupInVPC(g, in, net.vpc, plan.ID("subnet/"+name), ec2.SubnetByID(net.vpc, name), in.m.InfraObject(), path+".subnets"))
		default:
			return nil, fmt.Errorf("%s: subnet %s is neither in spec.network.subnets nor the ID of a subnet", in.m.Origin(in.m.InfraObject(), path+".subnets"), name)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	zones := map[string]bool{}
	for _, s := range net.defaultSubnets(spec) {
		if !zones[s.zone] {
			zones[s.zone] = true
			out = append(out, s.ref)
		}
	}
	if len(out) == 0 { // there are private subnets only
		const needs = "%s: an internet-facing load balancer needs a public subnet, and "
		at := in.m.Origin(in.m.InfraObject(), path)
		if in.spec.NetworkSpec.VPC.ID != "" {
			return nil, fmt.Errorf(needs+"none of spec.network.subnets has a route to an internet gateway: list one that has, or set scheme: internal", at)
		}
		return nil, fmt.Errorf(needs+"the cluster has none: add one, or set scheme: internal", at)
	}
	return out, nil
}

// register adds the same registration for every load balancer of the control plane, each
// with its name and a suffix.
func (lbs loadBalancers) register(g *graph.Graph, suffix string, like elb.Targets, opts ...graph.Option) (added []graph.Resource) {
	opts = append(opts, graph.With(graph.SharedWith(lbs.living...)))
	for _, t := range lbs.targets {
		isAPI := t.name == "api" || t.name == "secondary/api" // the other ports may have nothing that listens
		if len(like.Living) > 0 && !isAPI {
			continue
		}
		r := like
		r.Group, r.Shared, r.Existing = t.group, like.Shared || t.existing != nil, t.existing
		r.Healthy = like.Healthy && isAPI
		added = append(added, graph.Add(g, plan.ID("targets/"+t.name+suffix), &r, opts...))
	}
	if lbs.classic != nil {
		added = append(added, graph.Add(g, plan.ID(elb.ClassicTargetsKind+suffix), &elb.ClassicTargets{
			LoadBalancer: lbs.classic, Instances: like.Instances, Shared: like.Shared || lbs.existingClassic, Removed: like.Removed,
			Living: like.Living,
		}, opts...))
	}
	return added
}

// ipType is the address type of a target group: IPv6 if every private subnet has it,
// unless the manifest says otherwise.
func (n network) ipType(given *infrav1.TargetGroupIPType) string {
	switch {
	case given != nil:
		return string(*given)
	case !n.ipv6:
		return "ipv4"
	}
	for _, s := range n.subnetsOfKind(false) {
		if s.ipv6 == 0 && s.ipv6CIDR == "" {
			return "ipv4"
		}
	}
	return "ipv6"
}

// Health checks, with CAPA's defaults.
const (
	checkInterval  = 5
	checkTimeout   = 4
	checkHealthy   = 2
	checkUnhealthy = 6
	readyz         = "/readyz"
)

func apiCheck(spec *infrav1.AWSLoadBalancerSpec) elb.HealthCheck {
	h := elb.HealthCheck{
		Protocol:  "TCP",
		Port:      strconv.Itoa(apiPort),
		Interval:  checkInterval,
		Timeout:   checkTimeout,
		Healthy:   checkHealthy,
		Unhealthy: checkUnhealthy,
	}
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
	h := elb.HealthCheck{
		Protocol:  "TCP",
		Port:      strconv.FormatInt(l.Port, 10),
		Interval:  checkInterval,
		Timeout:   checkTimeout,
		Healthy:   checkHealthy,
		Unhealthy: checkUnhealthy,
	}
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
		h.Path = "/" // the default of AWS
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
