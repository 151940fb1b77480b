package incluster

import (
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Kinds of resources in the cluster.
const (
	APIServerKind   = "api-server"
	NodeKind        = "node"
	ResourceSetKind = "resource-set"
	KubeProxyKind   = "kube-proxy"
	CoreDNSKind     = "coredns"
)

// Kinds lists the kinds of this package, with what a status line shows of them.
func Kinds() []*kind.Kind {
	all := []*kind.Kind{
		kind.Of(kind.Kind{Name: APIServerKind}, kind.Functions[APIServerState]{Status: apiServerStatus}),
		kind.Of(kind.Kind{Name: NodeKind}, kind.Functions[NodeState]{Status: nodeStatus}),
		kind.Of(kind.Kind{Name: PoolNodesKind}, kind.Functions[PoolNodesState]{Status: poolNodesStatus}),
		kind.Of(kind.Kind{Name: HelmReleaseKind}, kind.Functions[HelmReleaseState]{Status: helmReleaseStatus}),
		kind.Of(kind.Kind{Name: WorkloadsKind}, kind.Functions[WorkloadsState]{Status: workloadsStatus}),
		kind.Of(kind.Kind{Name: KubeProxyKind}, kind.Functions[SystemImageState]{Status: systemImageStatus}),
	}
	for _, name := range []string{
		ResourceSetKind, "aws-auth", CoreDNSKind, "drain", "etcd-member", "etcd-members", "helm-leftovers", "hook", JoinTokenKind, "kubeadm-config", "node-object", "node-objects", "self-managed-addon", "vpc-cni",
	} {
		all = append(all, &kind.Kind{Name: name})
	}
	for _, k := range all {
		k.Area = plan.AreaKubernetes
	}
	return all
}

func apiServerStatus(s APIServerState) (state, detail string) { return s.Status, s.Version }

func nodeStatus(s NodeState) (state, detail string) {
	switch {
	case s.Name == "":
		return "", ""
	case !s.Ready:
		state = "NotReady" // as kubectl shows it
	case s.Cordoned:
		state = "SchedulingDisabled"
	}
	return state, kind.Join(strings.Join(s.Roles(), ","), s.Version, s.IP, state)
}

func poolNodesStatus(s PoolNodesState) (state, detail string) {
	joined, ready := s.Joined()
	return "", fmt.Sprintf("%d of %d joined, %d ready", joined, s.all(), ready)
}

func systemImageStatus(s SystemImageState) (state, detail string) { return "", s.Image }
