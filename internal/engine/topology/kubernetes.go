package topology

import (
	"fmt"
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// kubernetes are the resources in the Kubernetes cluster that other stages refer to.
type kubernetes struct {
	api        *incluster.API                           // nil where the run needs no API server
	server     *graph.Ref[incluster.APIServerState]     // nil where the run does not wait for it
	config     *graph.Ref[incluster.KubeadmConfigState] // nil if the cluster does not use kubeadm, or the run does not wait
	podNetwork []graph.Edge                             // after which Nodes can become ready
	// controlPlaneNodes are the Nodes of the control plane, except for those of
	// rollouts.
	controlPlaneNodes []graph.Resource
}

// newAPI returns the access to the API server; nil if the run does not use it. Its error
// messages name the flags of a run that needs no API server.
func newAPI(in inputs, sources bootSources, cluster *graph.Ref[eks.ClusterState], plan machinePlan) *incluster.API {
	var without []string
	if in.usesAPIServer() {
		without = append(without, "--wait=infrastructure")
	}
	if in.drainsAny(plan) {
		without = append(without, "--drain=false")
	}
	if len(without) == 0 {
		return nil
	}
	return &incluster.API{Endpoint: sources.endpoint, PKI: sources.keys, EKS: cluster, Without: strings.Join(without, " ")}
}

// addServer adds the API server. answers are the resources that have to be settled before it
// can answer, and entries those on EKS of which one may be the caller's.
func addServer(
	g *graph.Graph,
	in inputs,
	api *incluster.API,
	machines []Machine,
	answers []graph.Resource,
	entries ...*graph.Ref[eks.AccessEntryState],
) *graph.Ref[incluster.APIServerState] {
	server := &incluster.APIServer{API: api, Entries: entries, After: graph.Awaits(slices.Concat(answers, resources(entries))...)}
	for _, m := range machines {
		if m.ControlPlane {
			server.Machines, server.After = append(server.Machines, m.Instance), append(server.After, m.routes...)
		}
	}
	return graph.Expect(g, "api-server", server, in.infra("spec.controlPlaneEndpoint"), graph.Diagnosed(diagnose.Server(server, in.etcdOf())))
}

// addKubernetes adds the API server, unless k has it, the ConfigMaps of kubeadm, the add-ons,
// and the Nodes of the machines. etcd is the check that members of etcd have machines: while one has
// none, no other machine of the control plane joins.
func addKubernetes(
	g *graph.Graph,
	in inputs,
	k kubernetes,
	theCluster machinePlan,
	machines []Machine,
	answers, etcd []graph.Resource,
	mappings []incluster.Mapping,
) (_ kubernetes, remarks []string) {
	if !in.usesAPIServer() {
		return k, in.postponedRemarks(mappings)
	}
	if k.server == nil {
		k.server = addServer(g, in, k.api, machines, answers)
	}
	if cp := in.m.ControlPlane; cp != nil && in.m.EKS == nil {
		config, origin := in.clusterConfiguration()
		k.config = graph.Expect(g, "kubeadm-config", &incluster.KubeadmConfig{
			API: k.api, Server: k.server, Version: cp.Object.Spec.Version, Spec: config, Unknown: theCluster.unknown,
		}, graph.From(origin))
	}
	if in.usesAWSAuth() {
		graph.Install(g, "aws-auth", &incluster.AWSAuth{API: k.api, Server: k.server, Wanted: mappings}, in.infra("spec.iamAuthenticatorConfig"))
	}
	k.podNetwork = addAddons(g, in, k)
	var after []graph.Edge // a Node joins without a pod network
	if in.o.Wait == plan.NodesReady {
		after = k.podNetwork
	}
	for _, m := range machines {
		switch {
		case m.rolls: // its rollout waits for it
		case m.ControlPlane:
			k.controlPlaneNodes = append(k.controlPlaneNodes, addNode(g, in, k, m, slices.Concat(after, graph.Awaits(etcd...))))
		case in.waitsForNodes():
			addNode(g, in, k, m, after)
		}
	}
	return k, nil
}

// addSystemImages adds the images that are updated after the whole control plane:
// kube-proxy has its version, and CoreDNS the one in the manifest. The Corefile stays:
// corefile-migration v1.0.35 changes nothing in kubeadm's from CoreDNS 1.9.3 to 1.14.7.
func addSystemImages(g *graph.Graph, in inputs, k kubernetes, controlPlane []graph.Resource) (added []graph.Resource) {
	cp := in.m.ControlPlane
	if k.config == nil || cp == nil {
		return nil
	}
	config, origin := in.clusterConfiguration()
	after := append(graph.Awaits(controlPlane...), graph.Awaits(k.config)...)
	// kubeadm init does not install what its phases skip; somebody may have installed it later
	skipped := func(phase string) bool {
		phases := cp.Object.Spec.KubeadmConfigSpec.InitConfiguration.SkipPhases
		return !in.inv.Initialized && (slices.Contains(phases, phase) || slices.Contains(phases, "addon"))
	}
	if _, skip := cp.Object.Annotations[controlplanev1.SkipKubeProxyAnnotation]; !skip && !skipped("addon/kube-proxy") {
		added = append(added, graph.Expect(g, "kube-proxy", &incluster.SystemImage{
			API: k.api, Server: k.server, Workload: "daemonsets", Name: "kube-proxy", Container: "kube-proxy", Tag: imageTag(cp.Object.Spec.Version),
			Given: config.ImageRepository, After: after,
		}, graph.From(in.m.Origin("KubeadmControlPlane/"+cp.Object.Name, "spec.version"))))
	}
	if _, skip := cp.Object.Annotations[controlplanev1.SkipCoreDNSAnnotation]; !skip && config.DNS.ImageTag != "" && !skipped("addon/coredns") {
		repository := config.DNS.ImageRepository
		if repository == "" {
			repository = config.ImageRepository
		}
		added = append(added, graph.Expect(g, "coredns", &incluster.SystemImage{
			API: k.api, Server: k.server, Workload: "deployments", Name: "coredns", Container: "coredns", Tag: config.DNS.ImageTag,
			Given: repository, After: after,
		}, graph.From(origin)))
	}
	return added
}

// imageTag converts a version to an image tag.
func imageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// addNode adds the Node of a machine. In a rollout, the Node has to be able to replace
// another one: a worker is ready for pods, and a machine of the control plane runs all
// its components.
func addNode(g *graph.Graph, in inputs, k kubernetes, m Machine, after []graph.Edge) graph.Resource {
	n := &incluster.Node{
		API: k.api, Server: k.server, Machine: m.Instance, External: m.External, Labels: m.labels, Replaceable: m.replaceable,
		Ready: in.o.Wait == plan.NodesReady || m.rolls && !m.ControlPlane, Parts: (m.rolls || in.o.Wait == plan.NodesReady) && m.ControlPlane,
	}
	return graph.Expect(g, plan.ID("node/"+m.place()), n, graph.From(m.Instance.Origin()), graph.With(after, m.routes), graph.Diagnosed(diagnose.Node(n)))
}

// waitsForNode reports whether the run waits for the Node of a machine.
func (in inputs) waitsForNode(m Machine) bool {
	return in.usesAPIServer() && (m.ControlPlane || m.rolls || in.waitsForNodes())
}

// addEtcdMembers adds the check that each member of etcd has a machine, before machines are added to
// a control plane that has begun. It returns the resources that new machines of the control plane
// wait for. gone are the unhealthy machines, which leave before.
func addEtcdMembers(g *graph.Graph, in inputs, api *incluster.API, plan machinePlan, gone []graph.Resource) []graph.Resource {
	if !in.checksEtcd(plan) {
		return gone
	}
	certificates, _ := in.etcdCertificates()
	_, origin := in.clusterConfiguration()
	return []graph.Resource{graph.Expect(g, "etcd-members", &incluster.EtcdMembers{
		API: api, Certificates: certificates, After: graph.Awaits(gone...), Signs: in.lostMembers(),
	}, graph.From(origin), graph.Diagnosed(diagnose.Etcd(in.controlPlane(), plan.controlPlanes())))}
}

// controlPlane lists the IDs of the machines of the control plane.
func (in inputs) controlPlane() (ids []string) {
	for _, m := range in.inv.Machines {
		if m.Tags[cloud.RoleTag] == RoleControlPlane {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// controlPlanes is the number of machines of the control plane that the manifest has.
func (p machinePlan) controlPlanes() (n int) {
	for _, x := range p.groups {
		if x.controlPlane {
			n += x.count
		}
	}
	return n
}

// lostMembers says why members of etcd may have no machine.
func (in inputs) lostMembers() (signs []string) {
	for _, m := range in.inv.Terminating {
		if m.Tags[cloud.RoleTag] == RoleControlPlane {
			signs = append(signs, fmt.Sprintf("that of %s (%s), which is %s", m.ID, m.PrivateDNS, m.Status))
		}
	}
	return append(signs, in.inv.LostMembers...)
}

// checksEtcd reports whether a run compares the members of etcd with the machines. It does so if it
// launches machines of the control plane, or if a member seems to have no machine.
func (in inputs) checksEtcd(plan machinePlan) bool {
	launches := slices.ContainsFunc(plan.groups, func(x groupPlan) bool { return x.controlPlane && len(x.launch) > 0 })
	return in.hasEtcd() && (launches || len(in.inv.LostMembers) > 0)
}

// hasEtcd reports whether etcd runs on machines of the control plane, and the run may change its
// members.
func (in inputs) hasEtcd() bool {
	begun := in.inv.Initialized || !in.launchedControlPlane() // otherwise its first machine may still boot
	return in.etcdOf().Members > 0 && begun && in.hasControlPlane() && in.o.Drain && in.usesAPIServer()
}

// etcdOf says where etcd runs.
func (in inputs) etcdOf() (etcd diagnose.EtcdOf) {
	config, _ := in.clusterConfiguration()
	if _, stacked := in.etcdCertificates(); !stacked {
		etcd.External = config.Etcd.External.Endpoints
	} else if in.m.EKS == nil {
		etcd.Members = in.controlPlanes()
	}
	return etcd
}

// members is how many members etcd should have; 0 without an etcd whose members the run may change.
func (in inputs) members() int {
	if !in.hasEtcd() {
		return 0
	}
	return in.controlPlanes()
}

// needsStopped reports whether etcd has no quorum without the stopped machines of the control plane.
func (in inputs) needsStopped() bool {
	members, running := in.controlPlanes(), 0
	for _, m := range in.inv.Machines {
		if isControlPlane(m) && !m.Stopped {
			running++
		}
	}
	_, stacked := in.etcdCertificates()
	return stacked && running < plan.Quorum(members)
}

// controlPlanes is how many machines the control plane has, or should have if that is more.
func (in inputs) controlPlanes() int {
	n := len(in.controlPlane())
	if c := in.m.ControlPlane; c != nil && c.Object.Spec.Replicas != nil {
		n = max(n, int(*c.Object.Spec.Replicas))
	}
	return n
}

// drainsAny reports whether the run drains a Node or removes a member of etcd.
func (in inputs) drainsAny(plan machinePlan) bool {
	return in.checksEtcd(plan) || slices.ContainsFunc(plan.leaving, in.drains) || slices.ContainsFunc(plan.groups, func(x groupPlan) bool {
		return slices.ContainsFunc(slices.Concat(x.outdated, x.unhealthy), in.drains)
	})
}
