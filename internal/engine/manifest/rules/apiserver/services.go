package apiserver

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// service checks a Service (ValidateService), and the address and node ports that it asks for (pkg/registry/core/service).
func (c *check) service(o *corev1.Service) {
	s := &o.Spec
	c.serviceName("metadata.name", o.Name)
	c.labels("spec.selector", s.Selector)
	open := s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
	oneOf(c, "spec.type", s.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	oneOf(c, "spec.sessionAffinity", s.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	switch {
	case s.Type == corev1.ServiceTypeExternalName:
		c.need("spec.externalName", s.ExternalName)
	case len(s.Ports) == 0 && s.ClusterIP != corev1.ClusterIPNone:
		c.refuse("spec.ports", "at least one port is required", "add one, or write clusterIP: None")
	}
	if s.ExternalTrafficPolicy != "" && !open {
		c.refuse("spec.externalTrafficPolicy", "is only for the types NodePort and LoadBalancer", "remove it")
	}
	oneOf(c, "spec.externalTrafficPolicy", s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	c.serviceOfType(s)
	c.serviceTraffic(s)
	c.servicePorts(s, open)
	if s.Type != corev1.ServiceTypeExternalName {
		c.serviceFamilies(s)
		return
	}
	for _, name := range given(
		setting{"clusterIP", s.ClusterIP != ""}, setting{"clusterIPs", s.ClusterIP == "" && len(s.ClusterIPs) > 0},
		setting{"ipFamilies", len(s.IPFamilies) > 0}, setting{"ipFamilyPolicy", s.IPFamilyPolicy != nil},
	) {
		c.refuse("spec."+name, "is not for the type ExternalName, which is a name only", "remove it")
	}
}

// serviceName checks the name of a Service. Kubernetes 1.35 may permit names that begin with a digit (RelaxedServiceNameValidation).
func (c *check) serviceName(field, name string) {
	const relaxed = 35
	if bad := validation.IsDNS1035Label(name); c.Minor > 0 && c.Minor < relaxed && c.Gates && len(bad) > 0 {
		c.refuse(field, fmt.Sprintf("%q is not the name of a Service", name), "use small letters, digits and -, and begin with a letter")
		return
	}
	c.label(field, name)
}

// serviceTraffic checks which traffic goes to a Service, and how.
func (c *check) serviceTraffic(s *corev1.ServiceSpec) {
	if a := s.SessionAffinityConfig; a != nil && a.ClientIP != nil && s.SessionAffinity == corev1.ServiceAffinityClientIP {
		between(c, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", a.ClientIP.TimeoutSeconds, 1, 86400)
	}
	for i, address := range s.ExternalIPs {
		c.endpoint(fmt.Sprintf("spec.externalIPs[%d]", i), address)
	}
	balanced := s.Type == corev1.ServiceTypeLoadBalancer
	c.when(len(s.LoadBalancerSourceRanges) > 0 && !balanced, "spec.loadBalancerSourceRanges", "is only for the type LoadBalancer", "remove it, or change the type")
	for i, block := range s.LoadBalancerSourceRanges {
		c.block(fmt.Sprintf("spec.loadBalancerSourceRanges[%d]", i), strings.TrimSpace(block))
	}
	c.when(
		s.AllocateLoadBalancerNodePorts != nil && !balanced, "spec.allocateLoadBalancerNodePorts", "is only for the type LoadBalancer",
		"remove it, or change the type",
	)
	isOneOf(c, "spec.internalTrafficPolicy", s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
	isOneOf(
		c, "spec.trafficDistribution", s.TrafficDistribution, corev1.ServiceTrafficDistributionPreferClose,
		corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode,
	)
}

// endpoint checks an address to which requests of a Service may go (ValidateEndpointIP).
func (c *check) endpoint(field, text string) {
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		c.address(field, text)
	case ip.IsUnspecified(), ip.IsLoopback(), ip.IsLinkLocalUnicast(), ip.IsLinkLocalMulticast():
		c.refuse(field, text+" is an address of each machine itself", "write an address that other machines reach")
	}
}

// serviceFamilies checks the cluster IPs of a Service and their IP families (ValidateServiceClusterIPsRelatedFields, and initIPFamilyFields in
// pkg/registry/core/service/storage).
func (c *check) serviceFamilies(s *corev1.ServiceSpec) {
	before := len(c.found)
	c.serviceAddress("spec.clusterIP", s.ClusterIP)
	c.noAddress(s)
	if len(s.ClusterIPs) > 0 && s.ClusterIP != "" && s.ClusterIPs[0] != s.ClusterIP {
		c.refuse("spec.clusterIPs[0]", fmt.Sprintf("%s is not clusterIP, %s", s.ClusterIPs[0], s.ClusterIP), "remove one of them")
	}
	addresses := s.ClusterIPs
	if len(addresses) == 0 && s.ClusterIP != "" {
		addresses = []string{s.ClusterIP}
	}
	for i, address := range addresses {
		field := fmt.Sprintf("spec.clusterIPs[%d]", i)
		if address != s.ClusterIP {
			c.serviceAddress(field, address)
		}
		if ip, err := netip.ParseAddr(address); err == nil && i < len(s.IPFamilies) && familyOf(ip) != s.IPFamilies[i] {
			c.refuse(field, fmt.Sprintf("%s is not an address of %s, as ipFamilies[%d] says", address, s.IPFamilies[i], i), "change one of them")
		}
	}
	policy := c.familyPolicy(s)
	c.families(s.IPFamilies)
	if len(c.found) == before {
		c.familiesOfServer(s, policy)
	}
}

// familyPolicy checks whether a Service has one IP family or two, and returns what it says.
func (c *check) familyPolicy(s *corev1.ServiceSpec) corev1.IPFamilyPolicy {
	policy := corev1.IPFamilyPolicySingleStack
	if s.IPFamilyPolicy != nil {
		policy = *s.IPFamilyPolicy
	}
	oneOf(c, "spec.ipFamilyPolicy", policy, corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)
	anywhere := s.IPFamilyPolicy == nil && s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0 // then it is RequireDualStack by default
	if !anywhere && policy == corev1.IPFamilyPolicySingleStack && max(len(s.IPFamilies), len(s.ClusterIPs)) > 1 {
		c.refuse("spec.ipFamilyPolicy", "two families need another one", "write PreferDualStack or RequireDualStack")
	}
	return policy
}

// families checks the names of IP families.
func (c *check) families(all []corev1.IPFamily) {
	for i, family := range all {
		field := fmt.Sprintf("spec.ipFamilies[%d]", i)
		c.need(field, string(family))
		oneOf(c, field, family, corev1.IPv4Protocol, corev1.IPv6Protocol)
		c.when(slices.Contains(all[:i], family), field, fmt.Sprintf("%s is there twice", family), "remove one of them")
	}
}

// noAddress refuses a Service without the address that it needs.
func (c *check) noAddress(s *corev1.ServiceSpec) {
	open := s.Type == corev1.ServiceTypeNodePort || s.Type == corev1.ServiceTypeLoadBalancer
	c.when(
		s.ClusterIP == corev1.ClusterIPNone && open, "spec.clusterIPs[0]", fmt.Sprintf("a Service of the type %s needs an address, and clusterIP is None", s.Type),
		"remove clusterIP, or the type",
	)
	c.when(s.ClusterIP == "" && len(s.ClusterIPs) > 0, "spec.clusterIPs", "clusterIP is missing", "set it to the first of them, or remove them")
}

// familiesOfServer refuses IP families that the cluster does not have. Headless Services without a selector may have any family.
func (c *check) familiesOfServer(s *corev1.ServiceSpec, policy corev1.IPFamilyPolicy) {
	if len(c.Services) == 0 || s.ClusterIP == corev1.ClusterIPNone && len(s.Selector) == 0 {
		return
	}
	has := map[corev1.IPFamily]bool{}
	for _, b := range c.Services {
		has[familyOf(b.Addr())] = true
	}
	for i, family := range s.IPFamilies {
		if !has[family] {
			c.refuse(
				fmt.Sprintf("spec.ipFamilies[%d]", i),
				fmt.Sprintf("Services of the cluster have no %s", family),
				"remove it, or add a block to services of the Cluster",
			)
		}
	}
	if policy == corev1.IPFamilyPolicyRequireDualStack && len(has) < 2 {
		c.refuse("spec.ipFamilyPolicy", "Services of the cluster have one family", "write PreferDualStack, or add a block to services of the Cluster")
	}
}

func familyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// serviceOfType checks fields that only Services of some types have.
func (c *check) serviceOfType(s *corev1.ServiceSpec) {
	if name := s.ExternalName; s.Type == corev1.ServiceTypeExternalName && name != "" && len(validation.IsDNS1123Subdomain(strings.TrimSuffix(name, "."))) > 0 {
		c.refuse("spec.externalName", fmt.Sprintf("%q is no name in DNS", name), "write one such as db.example.com")
	}
	if s.LoadBalancerClass != nil {
		c.qualified("spec.loadBalancerClass", *s.LoadBalancerClass)
		c.when(s.Type != corev1.ServiceTypeLoadBalancer, "spec.loadBalancerClass", "is only for the type LoadBalancer", "remove it, or change the type")
	}
	if s.HealthCheckNodePort != 0 && (s.Type != corev1.ServiceTypeLoadBalancer || s.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal) {
		c.refuse("spec.healthCheckNodePort", "is only for the type LoadBalancer with externalTrafficPolicy: Local", "remove it")
	} else if s.HealthCheckNodePort != 0 {
		c.nodePort("spec.healthCheckNodePort", s.HealthCheckNodePort)
	}
}

func (c *check) servicePorts(s *corev1.ServiceSpec, open bool) {
	names, numbers, nodes := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, p := range s.Ports {
		at := fmt.Sprintf("spec.ports[%d].", i)
		number := fmt.Sprintf("%d of %s", p.Port, cmp.Or(p.Protocol, corev1.ProtocolTCP))
		if numbers[number] {
			c.refuse(strings.TrimSuffix(at, "."), "another port is "+number, "change one of them")
		}
		numbers[number] = true
		switch {
		case len(s.Ports) > 1 && p.Name == "":
			c.refuse(at+"name", "a port of several needs a name", "set it")
		case p.Name != "" && names[p.Name]:
			c.refuse(at+"name", "another port has the name "+p.Name, "change one of them")
		}
		names[p.Name] = true
		c.servicePort(at, &p)
		oneOf(c, at+"protocol", p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		c.port(at+"targetPort", p.TargetPort, true)
		node := fmt.Sprintf("%d of %s", p.NodePort, cmp.Or(p.Protocol, corev1.ProtocolTCP))
		switch {
		case p.NodePort == 0:
		case nodes[node]:
			c.refuse(at+"nodePort", "another port has the node port "+node, "change one of them")
		case !open:
			c.refuse(at+"nodePort", "is only for the types NodePort and LoadBalancer", "remove it, or change the type")
		default:
			c.nodePort(at+"nodePort", p.NodePort)
		}
		nodes[node] = true
	}
}

// nodePort refuses a node port that is not in the range of the cluster.
func (c *check) nodePort(field string, n int32) {
	if c.NodePort[1] > 0 && (n < c.NodePort[0] || n > c.NodePort[1]) {
		c.refuse(field, fmt.Sprintf("%d is not in the range of node ports, %d-%d", n, c.NodePort[0], c.NodePort[1]), "change it, or remove it")
	}
}

// servicePort checks the names of a port of a Service.
func (c *check) servicePort(at string, p *corev1.ServicePort) {
	if p.Name != "" {
		c.label(at+"name", p.Name)
	}
	if p.AppProtocol != nil {
		c.qualified(at+"appProtocol", *p.AppProtocol)
	}
}

// serviceAddress refuses an address of a Service that is outside of the cluster's addresses of Services.
func (c *check) serviceAddress(field, address string) {
	if address == "" || address == corev1.ClusterIPNone {
		return
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		c.refuse(field, fmt.Sprintf("%q is not an IP address", address), "correct it, or remove it")
		return
	}
	var blocks []string
	for _, b := range c.Services {
		if b.Contains(ip) {
			return
		}
		blocks = append(blocks, b.String())
	}
	if len(blocks) > 0 {
		c.refuse(field, fmt.Sprintf("%s is not an address of Services, %s", address, strings.Join(blocks, " or ")), "change it, or remove it")
	}
}

// port refuses a number that is not a port, and a text that is not the name of a port. If the port is optional, 0 means that it is not set.
func (c *check) port(field string, p intstr.IntOrString, optional bool) {
	const most = 65535
	switch {
	case p.Type == intstr.String:
		if bad := validation.IsValidPortName(p.StrVal); len(bad) > 0 {
			c.refuse(field, fmt.Sprintf("%q is not the name of a port: %s", p.StrVal, bad[0]), "change it")
		}
	case p.IntVal == 0 && optional:
	case p.IntVal < 1 || p.IntVal > most:
		c.refuse(field, fmt.Sprintf("%d is not a port", p.IntVal), fmt.Sprintf("use 1 to %d", most))
	}
}
