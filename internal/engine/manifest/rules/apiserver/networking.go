package apiserver

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	invalid "k8s.io/apimachinery/pkg/util/validation/field"
)

// ingress checks an Ingress (pkg/apis/networking/validation).
func (c *check) ingress(o *networkingv1.Ingress) {
	s := &o.Spec
	c.when(len(s.Rules) == 0 && s.DefaultBackend == nil, "spec", "needs rules or defaultBackend", "add one of them")
	if s.DefaultBackend != nil {
		c.backend("spec.defaultBackend", s.DefaultBackend)
	}
	for i, r := range s.Rules {
		field := fmt.Sprintf("spec.rules[%d].", i)
		_, err := netip.ParseAddr(r.Host)
		c.when(err == nil, field+"host", r.Host+" is an IP address", "write the name that clients use")
		if err != nil {
			c.host(field+"host", r.Host)
		}
		if r.HTTP != nil {
			c.paths(field+"http.paths", r.HTTP.Paths)
		}
	}
	for i, t := range s.TLS {
		field := fmt.Sprintf("spec.tls[%d].", i)
		for j, host := range t.Hosts {
			c.host(fmt.Sprintf("%shosts[%d]", field, j), host)
		}
		c.subdomain(field+"secretName", t.SecretName)
	}
	if s.IngressClassName == nil {
		return
	}
	c.invalid("spec.ingressClassName", *s.IngressClassName, validation.IsDNS1123Subdomain(*s.IngressClassName))
	const annotation = "kubernetes.io/ingress.class"
	other, set := o.Annotations[annotation]
	c.when(
		set && other != *s.IngressClassName, fmt.Sprintf("metadata.annotations[%s]", annotation),
		fmt.Sprintf("%q is not spec.ingressClassName, %q", other, *s.IngressClassName), "remove the annotation",
	)
}

// host checks a name to which requests are sent.
func (c *check) host(field, name string) {
	if strings.Contains(name, "*") {
		c.invalid(field, name, validation.IsWildcardDNS1123Subdomain(name))
	} else {
		c.subdomain(field, name)
	}
}

func (c *check) paths(at string, paths []networkingv1.HTTPIngressPath) {
	c.when(len(paths) == 0, at, "at least one path is required", "add one")
	for i, p := range paths {
		field := fmt.Sprintf("%s[%d].", at, i)
		c.backend(field+"backend", &p.Backend)
		if p.PathType == nil {
			c.refuse(field+"pathType", "a value is required", "write Prefix, Exact or ImplementationSpecific")
			continue
		}
		oneOf(c, field+"pathType", *p.PathType, networkingv1.PathTypePrefix, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific)
		free := *p.PathType == networkingv1.PathTypeImplementationSpecific
		if !strings.HasPrefix(p.Path, "/") && (p.Path != "" || !free) {
			c.refuse(field+"path", fmt.Sprintf("%q does not begin with /", p.Path), "write /"+p.Path)
		} else if !free {
			c.path(field+"path", p.Path)
		}
	}
}

// path refuses a path that a client cannot ask for as it is written.
func (c *check) path(field, path string) {
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		c.when(strings.Contains(path, part), field, fmt.Sprintf("%q contains %s", path, part), "remove it, or use pathType: ImplementationSpecific")
	}
	for _, end := range []string{"/..", "/."} {
		c.when(strings.HasSuffix(path, end), field, fmt.Sprintf("%q ends with %s", path, end), "remove it, or use pathType: ImplementationSpecific")
	}
}

func (c *check) backend(at string, b *networkingv1.IngressBackend) {
	switch {
	case b.Service == nil && b.Resource == nil:
		c.refuse(at, "needs a service or a resource", "write service: {name: NAME, port: {number: PORT}}")
	case b.Service != nil && b.Resource != nil:
		c.refuse(at, "service and resource exclude each other", "remove one of them")
	case b.Resource != nil:
		c.reference(at+".resource.", b.Resource.Kind, b.Resource.Name)
	default:
		c.backendService(at, b.Service)
	}
}

func (c *check) backendService(at string, s *networkingv1.IngressServiceBackend) {
	c.need(at+".service.name", s.Name)
	if s.Name != "" {
		c.serviceName(at+".service.name", s.Name)
	}
	switch {
	case s.Port.Name == "" && s.Port.Number == 0:
		c.refuse(at, "service.port needs a number or a name", "set one of them")
	case s.Port.Name != "" && s.Port.Number != 0:
		c.refuse(at, "service.port has a number and a name", "remove one of them")
	case s.Port.Name != "":
		c.port(at+".service.port.name", intstr.FromString(s.Port.Name), false)
	default:
		c.port(at+".service.port.number", intstr.FromInt32(s.Port.Number), false)
	}
}

// reference checks the kind and the name of an object that another one refers to.
func (c *check) reference(at, kind, name string) {
	c.need(at+"kind", kind)
	c.need(at+"name", name)
}

// ingressClass checks an IngressClass.
func (c *check) ingressClass(o *networkingv1.IngressClass) {
	c.errors(validation.IsDomainPrefixedPath(invalid.NewPath("spec.controller"), o.Spec.Controller))
	p := o.Spec.Parameters
	if p == nil {
		return
	}
	const at = "spec.parameters."
	if p.APIGroup != nil {
		c.subdomain(at+"apiGroup", *p.APIGroup)
	}
	c.reference(at, p.Kind, p.Name)
	scope := networkingv1.IngressClassParametersReferenceScopeCluster
	if p.Scope != nil {
		scope = *p.Scope
	}
	isOneOf(c, at+"scope", p.Scope, networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace)
	switch {
	case scope == networkingv1.IngressClassParametersReferenceScopeNamespace && p.Namespace == nil:
		c.refuse(at+"namespace", "the scope Namespace needs it", "set it, or change the scope")
	case scope == networkingv1.IngressClassParametersReferenceScopeCluster && p.Namespace != nil:
		c.refuse(at+"namespace", "is only for the scope Namespace", "remove it, or change the scope")
	}
}

func (c *check) networkPolicy(o *networkingv1.NetworkPolicy) {
	c.labelSelector("spec.podSelector", &o.Spec.PodSelector)
	const most = 2
	c.when(len(o.Spec.PolicyTypes) > most, "spec.policyTypes", "are more than Ingress and Egress", "write each of them once")
	for i, t := range o.Spec.PolicyTypes {
		c.need(fmt.Sprintf("spec.policyTypes[%d]", i), string(t))
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
		item := fmt.Sprintf("%s[%d]", at, i)
		c.labelSelector(item+".podSelector", p.PodSelector)
		c.labelSelector(item+".namespaceSelector", p.NamespaceSelector)
		selected := p.PodSelector != nil || p.NamespaceSelector != nil
		switch {
		case p.IPBlock == nil:
			c.when(!selected, item, "needs podSelector, namespaceSelector or ipBlock", "add one of them")
		case selected:
			c.refuse(item+".ipBlock", "stands beside a selector", "make two items of them")
		default:
			c.ipBlock(item+".ipBlock.", p.IPBlock)
		}
	}
}

// ipBlock checks a block of addresses and the blocks that are not meant (ValidateIPBlock).
func (c *check) ipBlock(at string, b *networkingv1.IPBlock) {
	if !c.block(at+"cidr", b.CIDR) {
		return
	}
	for i, text := range b.Except {
		field := fmt.Sprintf("%sexcept[%d]", at, i)
		outer, err := netip.ParsePrefix(b.CIDR)
		inner, wrong := netip.ParsePrefix(text)
		if !c.block(field, text) || err != nil || wrong != nil {
			continue
		}
		c.when(
			!outer.Contains(inner.Masked().Addr()) || inner.Bits() <= outer.Bits(), field,
			fmt.Sprintf("%s is not a part of %s", text, b.CIDR), "write a smaller block that is in it",
		)
	}
}

func (c *check) policyPorts(at string, ports []networkingv1.NetworkPolicyPort) {
	for i, p := range ports {
		field := fmt.Sprintf("%sports[%d].", at, i)
		isOneOf(c, field+"protocol", p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		if p.Port != nil {
			c.port(field+"port", *p.Port, false)
		}
		switch {
		case p.EndPort == nil:
		case p.Port == nil || p.Port.Type == intstr.String:
			c.refuse(field+"endPort", "is the end of a range, and port is no number", "write the first port of the range as port")
		case *p.EndPort < p.Port.IntVal:
			c.refuse(field+"endPort", fmt.Sprintf("%d is less than port, %d", *p.EndPort, p.Port.IntVal), "write the last port of the range")
		default:
			c.port(field+"endPort", intstr.FromInt32(*p.EndPort), false)
		}
	}
}

// endpointSlice checks an EndpointSlice (pkg/apis/discovery/validation).
func (c *check) endpointSlice(o *discoveryv1.EndpointSlice) {
	c.need("addressType", string(o.AddressType))
	oneOf(c, "addressType", o.AddressType, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN)
	for i, e := range o.Endpoints {
		if e.Hostname != nil {
			c.label(fmt.Sprintf("endpoints[%d].hostname", i), *e.Hostname)
		}
		field := fmt.Sprintf("endpoints[%d].addresses", i)
		c.when(len(e.Addresses) == 0, field, "at least one address is required", "add it")
		for j, text := range e.Addresses {
			c.endpointOfType(fmt.Sprintf("%s[%d]", field, j), text, o.AddressType)
		}
	}
	names := map[string]bool{}
	for i, p := range o.Ports {
		field, name := fmt.Sprintf("ports[%d].", i), ""
		if p.Name != nil {
			name = *p.Name
		}
		if name != "" {
			c.label(field+"name", name)
		}
		c.when(names[name], field+"name", fmt.Sprintf("another port has the name %q", name), "change one of them")
		names[name] = true
		isOneOf(c, field+"protocol", p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		if p.AppProtocol != nil {
			c.qualified(field+"appProtocol", *p.AppProtocol)
		}
	}
}

func (c *check) endpointOfType(field, text string, of discoveryv1.AddressType) {
	if of == discoveryv1.AddressTypeFQDN {
		c.errors(validation.IsFullyQualifiedDomainName(invalid.NewPath(field), text))
		return
	}
	ip, err := netip.ParseAddr(text)
	if err == nil && (of == discoveryv1.AddressTypeIPv4) != ip.Is4() {
		c.refuse(field, fmt.Sprintf("%s is not an address of %s, as addressType says", text, of), "change one of them")
		return
	}
	c.endpoint(field, text)
}
