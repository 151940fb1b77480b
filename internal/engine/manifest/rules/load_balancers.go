package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Rules of Elastic Load Balancing: CreateLoadBalancer, CreateTargetGroup and CreateListener in its API
// reference, and "Health checks for Network Load Balancer target groups" in its user guide.
const (
	mostBalancerGroups = 5
	usualInterval      = 5 // seconds between two health checks, in CAPA
	trafficPort        = "traffic-port"
	longestPath        = 1024 // of a health check
)

// checkBalancerRules checks the load balancers of the API server.
func (c *checks) checkBalancerRules() {
	spec := &c.cluster.Infra.Spec
	for path, lb := range map[string]*infrav1.AWSLoadBalancerSpec{
		"spec.controlPlaneLoadBalancer": spec.ControlPlaneLoadBalancer, "spec.secondaryControlPlaneLoadBalancer": spec.SecondaryControlPlaneLoadBalancer,
	} {
		if lb == nil {
			continue
		}
		for i, id := range lb.AdditionalSecurityGroups {
			c.checkID(c.infra, fmt.Sprintf("%s.additionalSecurityGroups[%d]", path, i), id, "sg", "a security group")
		}
		if n := len(lb.AdditionalSecurityGroups); n > mostBalancerGroups-1 {
			c.fail(
				c.infra.Problem(
					path+".additionalSecurityGroups",
					fmt.Sprintf("a load balancer has at most %d security groups, with that of the cluster %d", mostBalancerGroups, n+1),
					"remove some",
				),
			)
		}
		c.checkBalancerZones(path+".subnets", lb.Subnets)
		p := lb.HealthCheckProtocol
		switch {
		case lb.LoadBalancerType == infrav1.LoadBalancerTypeNLB:
			c.checkTargets(path, lb)
		// HealthCheck, API reference of classic load balancers
		case lb.LoadBalancerType == infrav1.LoadBalancerTypeClassic && p != nil && (*p == infrav1.ELBProtocolUDP || *p == infrav1.ELBProtocolTLS):
			c.fail(c.infra.Problem(path+".healthCheckProtocol", fmt.Sprintf("a classic load balancer does not check health by %s", *p), "use TCP, SSL, HTTP or HTTPS"))
		}
		if lb.LoadBalancerType == infrav1.LoadBalancerTypeClassic {
			c.warnOfClassic(path, lb)
		}
	}
	if !c.managed {
		c.checkHost(c.infra, "spec.controlPlaneEndpoint.host", spec.ControlPlaneEndpoint.Host)
	}
	if port := spec.ControlPlaneEndpoint.Port; port < 0 || port > mostPort {
		c.fail(c.infra.Problem("spec.controlPlaneEndpoint.port", fmt.Sprintf("%d is not a port", port), fmt.Sprintf("use 1 to %d", mostPort)))
	}
}

// checkBalancerZones refuses two subnets of one zone ("Subnets" of CreateLoadBalancer, in both versions of the ELB API reference).
func (c *checks) checkBalancerZones(path string, names []string) {
	zones := map[string]string{}
	for i, name := range names {
		for _, s := range c.cluster.Infra.Spec.NetworkSpec.Subnets {
			if s.ID != name && s.GetResourceID() != name || s.AvailabilityZone == "" {
				continue
			}
			if other := zones[s.AvailabilityZone]; other != "" && other != name {
				c.fail(
					c.infra.Problem(
						fmt.Sprintf("%s[%d]", path, i),
						fmt.Sprintf("%s is in the zone %s, as %s is: a load balancer has one subnet in each zone", name, s.AvailabilityZone, other),
						"remove one of them",
					),
				)
			}
			zones[s.AvailabilityZone] = name
		}
	}
}

// checkHost checks the host of the API server, which is in kubeconfigs and certificates.
func (c *checks) checkHost(o *manifest.Entry, path, host string) {
	if _, err := netip.ParseAddr(host); host == "" || err == nil {
		if host != "" && strings.Contains(host, ":") {
			c.fail(o.Problem(path, fmt.Sprintf("%q: Cluster API writes no brackets around an IPv6 address", host), "use a name in DNS"))
		} else if why := c.unreachable(host); why != "" && c.wantsLoadBalancer() {
			c.fail(o.Problem(path, why+": nobody would reach the API server", "remove it to use the name of the load balancer"))
		}
		return
	}
	if bad := validation.IsDNS1123Subdomain(host); len(bad) > 0 {
		fix := "change it"
		if c.wantsLoadBalancer() {
			fix += ", or remove it to use the name of the load balancer"
		}
		c.fail(o.Problem(path, fmt.Sprintf("%q is neither an IP address nor a name in DNS", host), fix))
	}
}

// warnOfClassic warns about fields that have an effect only on network load balancers (getAPIServerClassicELBSpec in
// pkg/cloud/services/elb/loadbalancer.go of CAPA). There is one warning for all of them.
func (c *checks) warnOfClassic(path string, lb *infrav1.AWSLoadBalancerSpec) {
	var fields []string
	for field, set := range map[string]bool{
		"additionalListeners": len(lb.AdditionalListeners) > 0, "healthCheck": lb.HealthCheck != nil, "preserveClientIP": lb.PreserveClientIP,
	} {
		if set {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	switch {
	case len(fields) == 1 && fields[0] == "additionalListeners":
		c.warn(
			c.infra.Problem(
				path+"."+fields[0],
				"has no effect: a classic load balancer has the listener of the API server only",
				"use loadBalancerType: nlb, or remove it",
			),
		)
	case len(fields) == 1:
		c.warn(c.infra.Problem(path+"."+fields[0], "has no effect on a classic load balancer", "remove it, or set loadBalancerType: nlb"))
	case len(fields) > 1:
		c.warn(c.infra.Problem(path, strings.Join(fields, ", ")+" have no effect on a classic load balancer", "remove them, or set loadBalancerType: nlb"))
	}
}

// checkTargets checks the listeners and health checks of a network load balancer.
func (c *checks) checkTargets(path string, lb *infrav1.AWSLoadBalancerSpec) {
	if p := lb.HealthCheckProtocol; p != nil && (*p == infrav1.ELBProtocolSSL || *p == infrav1.ELBProtocolTLS || *p == infrav1.ELBProtocolUDP) {
		c.fail(c.infra.Problem(path+".healthCheckProtocol", fmt.Sprintf("a network load balancer does not check health by %s", *p), "use TCP, HTTP or HTTPS"))
	}
	if config := lb.HealthCheck; config != nil {
		c.checkTimes(path+".healthCheck", config.IntervalSeconds, config.TimeoutSeconds)
	}
	for i, listener := range lb.AdditionalListeners {
		if api := int64(c.cluster.APIPort()); listener.Port == api { // DuplicateListener
			c.fail(
				c.infra.Problem(
					fmt.Sprintf("%s.additionalListeners[%d].port", path, i),
					fmt.Sprintf("the load balancer has a listener on port %d already, that of the API server", api),
					"remove it, or use another port",
				),
			)
		}
		if config := listener.HealthCheck; config != nil {
			c.checkListener(fmt.Sprintf("%s.additionalListeners[%d].healthCheck", path, i), config)
		}
	}
}

// checkListener checks the health check of an additional listener.
func (c *checks) checkListener(at string, config *infrav1.TargetGroupHealthCheckAdditionalSpec) {
	c.checkTimes(at, config.IntervalSeconds, config.TimeoutSeconds)
	if config.Path != nil && (len(*config.Path) > longestPath || !regex.Of(`^/[!-~]*$`).MatchString(*config.Path)) {
		c.fail(c.infra.Problem(at+".path", fmt.Sprintf("%q is not the path of a URL", *config.Path), "begin it with /"))
	}
	if config.Port == nil || *config.Port == trafficPort {
		return
	}
	if n, err := strconv.Atoi(*config.Port); err != nil || n < 1 || n > mostPort {
		c.fail(c.infra.Problem(at+".port", fmt.Sprintf("%q is not a port", *config.Port), fmt.Sprintf("use %s, or 1 to %d", trafficPort, mostPort)))
	}
}

// checkTimes compares the time limit of a health check with the time between two of them.
func (c *checks) checkTimes(path string, interval, timeout *int64) {
	between := int64(usualInterval)
	if interval != nil {
		between = *interval
	}
	if timeout != nil && *timeout > between {
		c.fail(
			c.infra.Problem(
				path+".timeoutSeconds",
				fmt.Sprintf("%d is more than the time between two health checks, %d seconds", *timeout, between),
				"set less, or a larger intervalSeconds",
			),
		)
	}
}

// checkLoopback refuses an internal load balancer that preserves the addresses of clients. The machine that runs kubeadm init is the only target
// then, and its client: such a connection times out ("Connections time out for requests from a target to its load balancer",
// https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-troubleshooting.html). kubeadm connects to controlPlaneEndpoint
// (CreateKubeConfigFile in cmd/kubeadm/app/phases/kubeconfig of Kubernetes). Settings that may lead elsewhere, such as an entry in /etc/hosts, are
// not judged.
func (c *checks) checkLoopback(o *manifest.Entry, lb *infrav1.AWSLoadBalancerSpec) {
	plane := c.cluster.ControlPlane
	if c.managed || plane == nil || lb == nil || !lb.PreserveClientIP || lb.LoadBalancerType != infrav1.LoadBalancerTypeNLB ||
		lb.Scheme == nil || *lb.Scheme != infrav1.ELBSchemeInternal || c.cluster.Infra.Spec.ControlPlaneEndpoint.Host != "" {
		return
	}
	spec := &plane.Object.Spec.KubeadmConfigSpec
	for _, command := range slices.Concat(spec.BootCommands, spec.PreKubeadmCommands) {
		if strings.Contains(command, "hosts") || strings.Contains(command, "iptables") || strings.Contains(command, "nft") {
			return
		}
	}
	if slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return strings.Contains(f.Path, "hosts") }) {
		return
	}
	c.fail(o.Problem(
		"spec.controlPlaneLoadBalancer.preserveClientIP",
		"kubeadm init fails: its machine is the only target of this internal load balancer, and cannot connect to itself through it with its own address",
		"remove it, or use scheme: internet-facing",
	))
}
