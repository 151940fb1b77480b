package cluster

import (
	"github.com/spf13/cobra"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// addWait adds the flag that says how far a run waits, or looks.
func (f *flags) addWait(cmd *cobra.Command) {
	f.wait = choice{"", []string{string(topology.Infrastructure), string(topology.APIServer), string(topology.NodesReady)}}
	cmd.Flags().Var(&f.wait, "wait", "`HOW` far the cluster has to be: infrastructure (AWS runs the machines), api (the API server answers and the control plane has joined), "+
		"nodes (all nodes are ready); default: nodes where the manifest brings a pod network, else api")
	complete(cmd, "wait", f.wait.of)
}

// addDrain adds the flag that says how machines go.
func (f *flags) addDrain(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.drain, "drain", true, "let machines that go leave in good order: their pods are moved as disruption budgets allow, etcd is told, and their nodes are deleted; "+
		"false terminates them without asking the API server, and replaces none")
}

// waitsFor returns how far a run on a cluster waits, and, where that is not the
// user's choice nor as far as it goes, why.
func (f *flags) waitsFor(m *manifest.Cluster) (wait topology.Wait, why string) {
	switch {
	case f.wait.value != "":
		return topology.Wait(f.wait.value), ""
	case internal(m):
		return topology.Infrastructure, "the API server can be reached from within the VPC alone: this run waits for what AWS does; there, use --wait=nodes"
	case m.HasPodNetwork():
		return topology.NodesReady, ""
	}
	return topology.APIServer, "nodes become ready once there is a pod network: install one with kubectl, or with --cni FILE"
}

// internal reports whether the API server has only an address within the VPC.
func internal(m *manifest.Cluster) bool {
	if m.EKS != nil {
		public := m.EKS.ControlPlane.Spec.EndpointAccess.Public
		return public != nil && !*public
	}
	lb := m.Infra.Spec.ControlPlaneLoadBalancer
	return lb != nil && lb.Scheme != nil && *lb.Scheme == infrav1.ELBSchemeInternal
}
