package render

import (
	"slices"
	"strings"

	"clusterawsadm/pkg/reconcile/graph"
)

// Area is a part of a cluster that people think of as one.
type Area string

// The areas, in the order in which a cluster is built.
const (
	Network      Area = "network"
	Security     Area = "security"
	LoadBalancer Area = "load balancer"
	ControlPlane Area = "control plane"
	Workers      Area = "workers"
	Kubernetes   Area = "kubernetes"
	Other        Area = "other"
)

func areas() []Area {
	return []Area{Network, Security, LoadBalancer, ControlPlane, Workers, Kubernetes, Other}
}

// AreaOf tells the area of a node by the words of its ID: its kind, and for
// what belongs to a machine, whose machine it is.
func AreaOf(id graph.ID) Area {
	kind := id.Kind()
	switch {
	case contains(kind, "security-group", "role", "polic", "profile", "key", "bucket", "secret", "parameter", "certificate", "oidc", "identity"):
		if perMachine(id) {
			return machineArea(id)
		}
		return Security
	case contains(kind, "load-balancer", "listener", "target", "dns"):
		return LoadBalancer
	case contains(kind, "instance", "machine", "interface", "user-data", "userdata", "volume", "launch-template", "placement", "node-group", "asg", "autoscaling", "retired", "spot"):
		return machineArea(id)
	case contains(kind, "control-plane", "eks", "bootstrap"):
		return ControlPlane
	case contains(kind, "kubernetes", "addon", "resource-set", "node", "api-server", "apiserver"):
		return Kubernetes
	case contains(kind, "vpc", "subnet", "gateway", "route", "elastic-ip", "address", "endpoint", "cidr", "network", "zone", "dhcp"):
		return Network
	}
	return Other
}

// perMachine reports whether an ID has the form kind/group/name, as that of
// everything a machine has for itself.
func perMachine(id graph.ID) bool { return strings.Count(string(id), "/") >= 2 }

func machineArea(id graph.ID) Area {
	for word := range strings.SplitSeq(string(id), "/") {
		if strings.HasPrefix(word, "control-plane") || strings.HasSuffix(word, "control-plane") {
			return ControlPlane
		}
	}
	return Workers
}

func contains(kind string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(kind, w) })
}

// group is what the names of machines of one kind and one group have in
// common: "instance/md-0" of "instance/md-0/x7k2p". It is "" for a node that
// is not one of many.
func group(id graph.ID) string {
	if a := AreaOf(id); !perMachine(id) || a != ControlPlane && a != Workers {
		return ""
	}
	return string(id)[:strings.LastIndexByte(string(id), '/')]
}
