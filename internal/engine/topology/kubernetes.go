package topology

import (
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// Wait is how far a cluster has to be before a run that makes it ends.
type Wait string

// How far a cluster can be. The zero value waits for AWS alone.
const (
	Infrastructure Wait = "infrastructure" // AWS runs the machines
	APIServer      Wait = "api"            // the API server answers, and all machines of the control plane have joined
	NodesReady     Wait = "nodes"          // all machines are nodes, and ready
)

// asks reports whether a run talks to the API server.
func (w Wait) asks() bool { return w == APIServer || w == NodesReady }

// kubernetes adds what comes of the machines: the API server, what kubeadm
// leaves in it, the nodes.
func (b *builder) kubernetes() {
	if !b.o.Wait.asks() {
		b.postponed()
		b.awsAuth()
		return
	}
	b.reach("--wait=infrastructure")
	server := &incluster.APIServer{API: b.api, After: b.serves()}
	for _, m := range b.made {
		if m.ControlPlane {
			server.Machines = append(server.Machines, m.Instance)
		}
	}
	b.server = graph.Expect(b.Graph, "api-server", server, b.infra("spec.controlPlaneEndpoint"), graph.Diagnosed(diagnose.Server(server)))
	b.tend()
	b.awsAuth()
	network := b.resourceSets()
	for _, m := range b.made {
		switch {
		case b.rolling(m): // its rollout waits for it
		case b.o.Wait == NodesReady:
			b.node(m, network...)
		case m.ControlPlane:
			b.node(m)
		}
	}
}

// tend adds what kubeadm keeps in the cluster, and brings up to date: what
// joining machines go by first of all.
func (b *builder) tend() {
	cp := b.m.ControlPlane
	if b.m.EKS != nil || cp == nil {
		return
	}
	config, at := b.clusterConfiguration()
	b.config = graph.Expect(b.Graph, "kubeadm-config", &incluster.KubeadmConfig{API: b.api, Server: b.server, Version: cp.Object.Spec.Version, Spec: config, Untold: slices.Sorted(slices.Values(b.untold))}, graph.From(at))
}

// tended lists what a machine of the control plane that joins later goes by.
func (b *builder) tended() []graph.Resource {
	if b.config == nil {
		return nil
	}
	return []graph.Resource{b.config}
}

// afterControl adds what is brought up to date when all of the control plane
// is: kube-proxy follows its version; CoreDNS, where the manifest names it. Its
// Corefile stays as it is: corefile-migration v1.0.35 changes nothing in
// kubeadm's from CoreDNS 1.9.3 to 1.14.7.
func (b *builder) afterControl(last []graph.Resource) (all []graph.Resource) {
	cp := b.m.ControlPlane
	if b.config == nil || cp == nil {
		return last
	}
	config, at := b.clusterConfiguration()
	after := append(graph.Awaits(last...), graph.Awaits(b.config)...)
	if _, skip := cp.Object.Annotations[controlplanev1.SkipKubeProxyAnnotation]; !skip {
		last = append(last, graph.Expect(b.Graph, "kube-proxy", &incluster.SystemImage{
			API: b.api, Server: b.server, Workload: "daemonsets", Name: "kube-proxy", Container: "kube-proxy", Tag: imageTag(cp.Object.Spec.Version), Given: config.ImageRepository, After: after,
		}, graph.From(b.m.Origin("KubeadmControlPlane/"+cp.Object.Name, "spec.version"))))
	}
	if _, skip := cp.Object.Annotations[controlplanev1.SkipCoreDNSAnnotation]; !skip && config.DNS.ImageTag != "" {
		dns := config.DNS
		repository := dns.ImageRepository
		if repository == "" && config.ImageRepository != "" {
			repository = config.ImageRepository
		}
		last = append(last, graph.Expect(b.Graph, "coredns", &incluster.SystemImage{
			API: b.api, Server: b.server, Workload: "deployments", Name: "coredns", Container: "coredns", Tag: dns.ImageTag, Given: repository, After: after,
		}, graph.From(at)))
	}
	return last
}

// imageTag is a version as tags of images have it.
func imageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// reach prepares to ask the API server; a run with the flag does without it.
func (b *builder) reach(without string) *incluster.API {
	if b.api == nil {
		b.api = &incluster.API{Endpoint: b.endpoint, PKI: b.keys, EKS: b.plane, Without: without}
	}
	if !strings.Contains(b.api.Without, without) {
		b.api.Without += " " + without
	}
	return b.api
}

// serves lists what has to be there before the API server can answer.
func (b *builder) serves() (needs []graph.Edge) {
	for _, n := range b.Resources() {
		if n.ID().Kind() == "targets" || strings.HasPrefix(string(n.ID()), "listener/") {
			needs = append(needs, graph.Awaits(n)...)
		}
	}
	return needs
}

// node adds the node that a machine becomes. One that is to stand in for another
// has more to bring: a worker takes pods, a control plane runs all its parts.
func (b *builder) node(m Machine, after ...graph.Edge) graph.Resource {
	rolls := b.rolling(m)
	n := &incluster.Node{
		API: b.api, Server: b.server, Machine: m.Instance, External: m.External, Labels: m.labels,
		Ready: b.o.Wait == NodesReady || rolls && !m.ControlPlane, Parts: rolls && m.ControlPlane,
	}
	return graph.Expect(b.Graph, nodeID(m), n, graph.From(m.Instance.Origin()), graph.With(after), graph.Diagnosed(diagnose.Node(n)))
}

func nodeID(m Machine) graph.ID {
	return graph.ID("node/" + m.place())
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
