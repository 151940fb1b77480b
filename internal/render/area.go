package render

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// Area is a part of a cluster that people think of as one.
type Area string

// The areas, in the order in which a cluster is built.
const (
	Prerequisites Area = "prerequisites"
	Network       Area = "network"
	Security      Area = "security"
	LoadBalancer  Area = "load balancer"
	ControlPlane  Area = "control plane"
	Workers       Area = "workers"
	Kubernetes    Area = "kubernetes"
	Other         Area = "other"
)

func areas() []Area {
	return []Area{Prerequisites, Network, Security, LoadBalancer, ControlPlane, Workers, Kubernetes, Other}
}

// AreaOf returns the area of a resource by its kind, and that of a machine by the
// object of the manifest that it comes from, or else by the name of its group.
func AreaOf(id reconcile.ID, origin string) Area {
	kind := id.Kind()
	switch {
	case slices.Contains([]string{"api-server", "kubeadm-config", "node", "addons", "drain", "etcd-member", "etcd-members", "node-object", "node-objects", "kube-proxy", "coredns", "join-token", "aws-auth"}, kind):
		return Kubernetes
	case contains(kind, "image", "key-pair", "profile"):
		return Prerequisites
	case kind == "network-interfaces" || kind == "bastion":
		return Network
	case kind == "volume": // of a claim
		return Kubernetes
	case ofMachine(kind):
		return machineArea(id, origin)
	case contains(kind, "security-group", "role", "polic", "bucket", "secret", "parameter", "certificate", "oidc"):
		return Security
	case contains(kind, "load-balancer", "listener", "target", "dns"):
		return LoadBalancer
	case contains(kind, "control-plane", "eks", "init"):
		return ControlPlane
	case contains(kind, "kubernetes", "addon", "resource-set", "node", "api-server"):
		return Kubernetes
	case contains(kind, "vpc", "subnet", "gateway", "route", "elastic-ip", "endpoint"):
		return Network
	}
	return Other
}

// ofMachine reports whether a resource of that kind is a machine, or a part of one.
func ofMachine(kind string) bool {
	return contains(kind, "machine", "instance", "retired", "interface", "user-data", "volume", "launch-template", "node-group")
}

func machineArea(id reconcile.ID, origin string) Area {
	switch {
	case strings.Contains(origin, "KubeadmControlPlane/"):
		return ControlPlane
	case strings.Contains(origin, "MachineDeployment/"):
		return Workers
	}
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
// common: "machine/md-0" of "machine/md-0/17", and "retired/machine/md-0" of
// "retired/machine/md-0/17/i-0123". It is "" for a resource that is not one of
// many.
func group(id reconcile.ID) string {
	words := strings.Split(string(id), "/")
	last := 1
	if id.Kind() == "retired" {
		last = 2
	}
	if !ofMachine(id.Kind()) && id.Kind() != "node" || len(words) < last+2 {
		return ""
	}
	return strings.Join(words[:len(words)-last], "/")
}
