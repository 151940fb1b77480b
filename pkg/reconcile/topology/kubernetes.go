package topology

import (
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"clusterawsadm/pkg/reconcile/graph"
	"clusterawsadm/pkg/reconcile/resource"
)

// Wait is how far a cluster has to be before a run that makes it ends.
type Wait string

// How far a cluster can be. The zero value waits for AWS alone.
const (
	Infrastructure Wait = "infrastructure" // AWS runs the machines
	APIServer      Wait = "api"            // the API server answers, and all machines of the control plane have joined
	NodesReady     Wait = "nodes"          // all machines are nodes, and ready
)

// kubernetes adds what comes of the machines: the API server, what kubeadm
// leaves in it, the nodes.
func (b *builder) kubernetes() {
	if b.o.Wait != APIServer && b.o.Wait != NodesReady {
		return
	}
	b.reach("--wait=infrastructure")
	b.server = graph.Expect(b.Graph, "api-server", &resource.APIServer{API: b.api, After: b.serves()}, b.infra("spec.controlPlaneEndpoint"))
	if b.m.EKS == nil {
		graph.Expect(b.Graph, "kubeadm-config", &resource.KubeadmConfig{API: b.api, Server: b.server})
	}
	for _, m := range b.made {
		if m.ControlPlane || b.o.Wait == NodesReady {
			b.node(m)
		}
	}
}

// reach prepares to ask the API server; a run with the flag does without it.
func (b *builder) reach(without string) *resource.API {
	if b.api == nil {
		b.api = &resource.API{Endpoint: b.endpoint, PKI: b.keys, EKS: b.plane, Without: without}
	}
	if !strings.Contains(b.api.Without, without) {
		b.api.Without += " " + without
	}
	return b.api
}

// serves lists what has to be there before the API server can answer.
func (b *builder) serves() (needs []graph.Edge) {
	for _, n := range b.Nodes() {
		if n.ID().Kind() == "targets" || strings.HasPrefix(string(n.ID()), "listener/") {
			needs = append(needs, graph.Awaits(n)...)
		}
	}
	return needs
}

// node adds the node that a machine becomes.
func (b *builder) node(m Machine) {
	graph.Expect(b.Graph, nodeID(m), &resource.Node{
		API: b.api, Server: b.server, Machine: m.Node, Ready: b.o.Wait == NodesReady, External: m.External,
	}, graph.From(m.Node.Origin()))
}

func nodeID(m Machine) graph.ID {
	return graph.ID("node/" + strings.TrimPrefix(string(m.Node.ID()), "machine/"))
}

// external reports whether the kubelets of a group leave it to a cloud
// controller manager to say which machines they run on.
func external(g group) bool {
	if g.kubeadm == nil {
		return false
	}
	is := func(a bootstrapv1.Arg) bool {
		return a.Name == "cloud-provider" && a.Value != nil && *a.Value == "external"
	}
	return slices.ContainsFunc(g.kubeadm.InitConfiguration.NodeRegistration.KubeletExtraArgs, is) ||
		slices.ContainsFunc(g.kubeadm.JoinConfiguration.NodeRegistration.KubeletExtraArgs, is)
}
