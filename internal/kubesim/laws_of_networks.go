package kubesim

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

const service, ingressKind, policyKind, slice = "Service", "Ingress", "NetworkPolicy", "EndpointSlice"

// serviceLaws are more rules about Services.
func serviceLaws() []law {
	return []law{
		{service, "metadata.name", func(v any, _ Object) string {
			if s, _ := v.(string); !regex.Of(`^[a-z]([-a-z0-9]*[a-z0-9])?$`).MatchString(s) {
				return fmt.Sprintf("Invalid value: %q: a DNS-1035 label must start with an alphabetic character", s)
			}
			return ""
		}},
		{service, "spec.selector", marked},
		{service, "spec.ports[].name", label},
		{service, "spec.ports[].appProtocol", keyOrNone},
		{service, "spec.loadBalancerClass", keyOrNone},
		{service, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", between(1, 86400)},
		{service, "spec.externalIPs[]", reachable},
		{service, "spec.loadBalancerSourceRanges[]", func(v any, _ Object) string {
			s, _ := v.(string)
			return cidr(strings.TrimSpace(s), nil)
		}},
		{service, "spec.loadBalancerSourceRanges", balanced},
		{service, "spec.allocateLoadBalancerNodePorts", balanced},
		{service, "spec.internalTrafficPolicy", among("Cluster", "Local")},
		{service, "spec.trafficDistribution", among("PreferClose", "PreferSameNode", "PreferSameZone")},
		{service, "spec.ipFamilies[]", among("IPv4", "IPv6")},
		{service, "spec.ipFamilies", func(v any, _ Object) string {
			if all, _ := v.([]any); len(all) == 2 && all[0] == all[1] {
				return fmt.Sprintf("[1]: Duplicate value: %q", all[1])
			}
			return ""
		}},
		{service, "spec.clusterIPs", func(v any, in Object) string {
			if !isEmpty(v) && isEmpty(in["clusterIP"]) {
				return "Invalid value: must be empty when `clusterIP` is not specified"
			}
			return ""
		}},
		{service, "spec.clusterIP", func(v any, in Object) string {
			if v == "None" && isOpen(in) {
				return fmt.Sprintf("Invalid value: \"None\": may not be set to 'None' for %s services", text(in, "type"))
			}
			return ""
		}},
		{service, "spec", func(v any, _ Object) string {
			s, _ := v.(Object)
			for _, field := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
				if text(s, "type") == "ExternalName" && !isEmpty(s[field]) {
					return field + ": Forbidden: may not be set for ExternalName services"
				}
			}
			return ""
		}},
	}
}

func balanced(v any, in Object) string {
	if v != nil && text(in, "type") != "LoadBalancer" {
		return "Forbidden: may only be used when `type` is 'LoadBalancer'"
	}
	return ""
}

func keyOrNone(v any, in Object) string {
	if v == nil {
		return ""
	}
	return keyName(v, in)
}

// reachable permits addresses that other machines can reach.
func reachable(v any, _ Object) string {
	s, _ := v.(string)
	ip := net.ParseIP(s)
	if ip == nil || ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() {
		return fmt.Sprintf("Invalid value: %q: may not be in the loopback range", s)
	}
	return ""
}

// ingressLaws are more rules about Ingresses, and those of their classes.
func ingressLaws() []law {
	const paths, backend = "spec.rules[].http.paths[]", "spec.rules[].http.paths[].backend"
	return []law{
		{ingressKind, "spec.rules[].host", func(v any, _ Object) string {
			if s, _ := v.(string); net.ParseIP(s) != nil {
				return fmt.Sprintf("Invalid value: %q: must be a DNS name, not an IP address", s)
			}
			return host(v, nil)
		}},
		{ingressKind, "spec.rules[].http.paths", needed},
		{ingressKind, paths + ".path", requestPath},
		{ingressKind, backend, func(v any, _ Object) string {
			b, _ := v.(Object)
			if b["service"] != nil && b["resource"] != nil {
				return "Invalid value: cannot set both resource and service backends"
			}
			return ""
		}},
		{ingressKind, backend + ".resource.kind", needed},
		{ingressKind, backend + ".service.name", func(v any, _ Object) string {
			if isEmpty(v) {
				return required
			}
			return label(v, nil)
		}},
		{ingressKind, backend + ".service.port", func(v any, _ Object) string {
			p, _ := v.(Object)
			if p["name"] != nil && p["number"] != nil {
				return "Invalid value: cannot set both port name & port number"
			}
			return ""
		}},
		{ingressKind, backend + ".service.port.name", portNumber},
		{ingressKind, backend + ".service.port.number", portNumber},
		{ingressKind, "spec.ingressClassName", domain},
		{ingressKind, "spec.tls[].hosts[]", host},
		{ingressKind, "spec.tls[].secretName", domain},
		{"IngressClass", "spec.controller", func(v any, _ Object) string {
			if s, _ := v.(string); !regex.Of(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?/.+$`).MatchString(s) {
				return fmt.Sprintf("Invalid value: %q: must be a domain-prefixed path (such as \"acme.io/foo\")", s)
			}
			return ""
		}},
		{"IngressClass", "spec.parameters.kind", needed},
		{"IngressClass", "spec.parameters.name", needed},
		{"IngressClass", "spec.parameters", func(v any, _ Object) string {
			p, _ := v.(Object)
			if why := among("Cluster", "Namespace")(p["scope"], nil); why != "" {
				return "scope: " + why
			}
			if (text(p, "scope") == "Namespace") != (p["namespace"] != nil) {
				return "namespace: Invalid value: is for the scope 'Namespace' and only for it"
			}
			return ""
		}},
	}
}

// host permits names of DNS, also with * as the first part.
func host(v any, _ Object) string {
	s, _ := v.(string)
	return domain(strings.TrimPrefix(s, "*."), nil)
}

// requestPath is the rule of a path of requests.
func requestPath(v any, in Object) string {
	s, _ := v.(string)
	if text(in, "pathType") == "ImplementationSpecific" {
		if s != "" && !strings.HasPrefix(s, "/") {
			return fmt.Sprintf("Invalid value: %q: must be an absolute path", s)
		}
		return ""
	}
	if regex.Of(`//|/\.\.?(/|$)|%2[fF]`).MatchString(s) {
		return fmt.Sprintf("Invalid value: %q: must not contain '//'", s)
	}
	return ""
}

// policyLaws are more rules about NetworkPolicies, and those of EndpointSlices.
func policyLaws() (all []law) {
	for _, way := range []string{"spec.ingress[].from[].", "spec.egress[].to[]."} {
		all = append(all,
			law{policyKind, way + "podSelector", chosen},
			law{policyKind, way + "namespaceSelector", chosen},
			law{policyKind, way + "ipBlock.except[]", within},
		)
	}
	for _, way := range []string{"spec.ingress[].ports[].", "spec.egress[].ports[]."} {
		all = append(all,
			law{policyKind, way + "protocol", among("SCTP", "TCP", "UDP")},
			law{policyKind, way + "endPort", func(v any, in Object) string {
				last, is := number(v)
				if first, numeric := number(in["port"]); is && (!numeric || last < first) {
					return "Invalid value: must be greater than or equal to `port`"
				}
				return portNumber(v, in)
			}},
		)
	}
	return append(all,
		law{policyKind, "spec.podSelector", chosen},
		law{policyKind, "spec.policyTypes", atMost(2)},
		law{slice, "addressType", among("FQDN", "IPv4", "IPv6")},
		law{slice, "endpoints[].addresses", needed},
		law{slice, "endpoints", sliceAddresses},
		law{slice, "ports[].name", label},
		law{slice, "ports", distinct("name")},
		law{slice, "ports[].protocol", among("SCTP", "TCP", "UDP")},
	)
}

// within permits blocks of addresses that are smaller than the block that they are taken from, and in it.
func within(v any, in Object) string {
	s, _ := v.(string)
	_, outer, err := net.ParseCIDR(text(in, "cidr"))
	if err != nil {
		return ""
	}
	ip, inner, err := net.ParseCIDR(s)
	if err != nil {
		return fmt.Sprintf("Invalid value: %q: must be a valid CIDR value", s)
	}
	most, _ := outer.Mask.Size()
	if size, _ := inner.Mask.Size(); size <= most || !outer.Contains(ip) {
		return fmt.Sprintf("Invalid value: %q: must be a strict subset of `cidr`", s)
	}
	return ""
}

// sliceAddresses is the rule of the addresses of an EndpointSlice.
func sliceAddresses(v any, in Object) string {
	of := text(in, "addressType")
	for i, e := range listed(v) {
		addresses, _ := e["addresses"].([]any)
		for _, x := range addresses {
			if s, _ := x.(string); of != "FQDN" && (reachable(x, nil) != "" || strings.Contains(s, ":") != (of == "IPv6")) {
				return fmt.Sprintf("[%d].addresses: Invalid value: %q: must be an %s address", i, s, of)
			}
		}
	}
	return ""
}

// classTwice refuses an Ingress that names two classes.
func classTwice(o Object) string {
	class := text(o, "spec", "ingressClassName")
	old := text(o, "metadata", "annotations", "kubernetes.io/ingress.class")
	if text(o, "kind") == ingressKind && class != "" && !slices.Contains([]string{"", class}, old) {
		return fmt.Sprintf("annotations.kubernetes.io/ingress.class: Invalid value: %q: must match `ingressClassName` when both are specified", old)
	}
	return ""
}
