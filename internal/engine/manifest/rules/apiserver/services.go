package apiserver

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// service checks a Service (ValidateService), and the address and node ports that it asks for (pkg/registry/core/service).
func (c *check) service(o *corev1.Service) {
	c.label("metadata.name", o.Name)
	s := &o.Spec
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
	c.servicePorts(s, open)
	if s.Type != corev1.ServiceTypeExternalName {
		c.serviceFamilies(s)
	}
}

// serviceFamilies checks the cluster IPs of a Service and their IP families (ValidateServiceClusterIPsRelatedFields, and initIPFamilyFields in
// pkg/registry/core/service/storage).
func (c *check) serviceFamilies(s *corev1.ServiceSpec) {
	before := len(c.found)
	c.serviceAddress("spec.clusterIP", s.ClusterIP)
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
	policy := corev1.IPFamilyPolicySingleStack
	if s.IPFamilyPolicy != nil {
		policy = *s.IPFamilyPolicy
	}
	oneOf(c, "spec.ipFamilyPolicy", policy, corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)
	if policy == corev1.IPFamilyPolicySingleStack && max(len(s.IPFamilies), len(s.ClusterIPs)) > 1 {
		c.refuse("spec.ipFamilyPolicy", "two families need another one", "write PreferDualStack or RequireDualStack")
	}
	if len(c.found) == before {
		c.familiesOfServer(s, policy)
	}
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
		oneOf(c, fmt.Sprintf("spec.ipFamilies[%d]", i), family, corev1.IPv4Protocol, corev1.IPv6Protocol)
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
	if s.LoadBalancerClass != nil && s.Type != corev1.ServiceTypeLoadBalancer {
		c.refuse("spec.loadBalancerClass", "is only for the type LoadBalancer", "remove it, or change the type")
	}
	if s.HealthCheckNodePort != 0 && (s.Type != corev1.ServiceTypeLoadBalancer || s.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal) {
		c.refuse("spec.healthCheckNodePort", "is only for the type LoadBalancer with externalTrafficPolicy: Local", "remove it")
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
		oneOf(c, at+"protocol", p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		c.port(at+"targetPort", p.TargetPort, true)
		node := fmt.Sprintf("%d of %s", p.NodePort, cmp.Or(p.Protocol, corev1.ProtocolTCP))
		switch {
		case p.NodePort == 0:
		case nodes[node]:
			c.refuse(at+"nodePort", "another port has the node port "+node, "change one of them")
		case !open:
			c.refuse(at+"nodePort", "is only for the types NodePort and LoadBalancer", "remove it, or change the type")
		case c.NodePort[1] > 0 && (p.NodePort < c.NodePort[0] || p.NodePort > c.NodePort[1]):
			c.refuse(at+"nodePort", fmt.Sprintf("%d is not in the range of node ports, %d-%d", p.NodePort, c.NodePort[0], c.NodePort[1]), "change it, or remove it")
		}
		nodes[node] = true
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

// ingress checks an Ingress (pkg/apis/networking/validation).
func (c *check) ingress(o *networkingv1.Ingress) {
	if len(o.Spec.Rules) == 0 && o.Spec.DefaultBackend == nil {
		c.refuse("spec", "needs rules or defaultBackend", "add one of them")
	}
	if b := o.Spec.DefaultBackend; b != nil {
		c.backend("spec.defaultBackend", b)
	}
	for i, r := range o.Spec.Rules {
		if r.HTTP == nil {
			continue
		}
		for j, p := range r.HTTP.Paths {
			at := fmt.Sprintf("spec.rules[%d].http.paths[%d].", i, j)
			if p.PathType == nil {
				c.refuse(at+"pathType", "a value is required", "write Prefix, Exact or ImplementationSpecific")
			} else {
				oneOf(c, at+"pathType", *p.PathType, networkingv1.PathTypePrefix, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific)
				if *p.PathType != networkingv1.PathTypeImplementationSpecific && !strings.HasPrefix(p.Path, "/") {
					c.refuse(at+"path", fmt.Sprintf("%q does not begin with /", p.Path), "write /"+p.Path)
				}
			}
			c.backend(at+"backend", &p.Backend)
		}
	}
}

func (c *check) backend(at string, b *networkingv1.IngressBackend) {
	switch {
	case b.Service == nil && b.Resource == nil:
		c.refuse(at, "needs a service or a resource", "write service: {name: NAME, port: {number: PORT}}")
	case b.Service != nil && b.Service.Port == (networkingv1.ServiceBackendPort{}):
		c.refuse(at, "service.port needs a number or a name", "set one of them")
	}
}

func (c *check) networkPolicy(o *networkingv1.NetworkPolicy) {
	for i, t := range o.Spec.PolicyTypes {
		oneOf(c, fmt.Sprintf("spec.policyTypes[%d]", i), t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	}
	for i, r := range o.Spec.Ingress {
		at := fmt.Sprintf("spec.ingress[%d].", i)
		c.peers(at+"from", r.From)
		c.policyPorts(at, r.Ports)
	}
	for i, r := range o.Spec.Egress {
		at := fmt.Sprintf("spec.egress[%d].", i)
		c.peers(at+"to", r.To)
		c.policyPorts(at, r.Ports)
	}
}

func (c *check) peers(at string, peers []networkingv1.NetworkPolicyPeer) {
	for i, p := range peers {
		field := fmt.Sprintf("%s[%d].ipBlock", at, i)
		switch {
		case p.IPBlock == nil:
			if p.PodSelector == nil && p.NamespaceSelector == nil {
				c.refuse(fmt.Sprintf("%s[%d]", at, i), "needs podSelector, namespaceSelector or ipBlock", "add one of them")
			}
		case p.PodSelector != nil || p.NamespaceSelector != nil:
			c.refuse(field, "stands beside a selector", "make two items of them")
		default:
			if _, err := netip.ParsePrefix(p.IPBlock.CIDR); err != nil {
				c.refuse(field+".cidr", fmt.Sprintf("%q is not a block of addresses", p.IPBlock.CIDR), "write one such as 10.0.0.0/8")
			}
		}
	}
}

func (c *check) policyPorts(at string, ports []networkingv1.NetworkPolicyPort) {
	for i, p := range ports {
		if p.Port != nil {
			c.port(fmt.Sprintf("%sports[%d].port", at, i), *p.Port, false)
		}
	}
}
