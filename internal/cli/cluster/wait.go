package cluster

import (
	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// addWait adds --wait.
func (f *flags) addWait(cmd *cobra.Command) {
	f.wait = choice{of: []string{string(reconcile.Infrastructure), string(reconcile.APIServer), string(reconcile.NodesReady)}}
	cmd.Flags().Var(&f.wait, "wait", "wait `UNTIL`: infrastructure (AWS runs the machines), api (the API server answers and the control plane has joined), "+
		"nodes (all Nodes are ready); default: nodes if the manifest installs a pod network, otherwise api")
	complete(cmd, "wait", f.wait.of)
}

// addDrain adds --drain.
func (f *flags) addDrain(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.drain, "drain", true, "drain Nodes before terminating machines, within pod disruption budgets, remove their etcd members and delete the Nodes; "+
		"false terminates machines without using the API server, and replaces no machine")
}

// addNetworkFirst adds --network-first.
func (f *flags) addNetworkFirst(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.networkFirst, "network-first", false, "launch machines after their NAT gateways are available, a minute later; without it, machines that fetch their boot data "+
		"from a secret or parameter are launched at once, and wait for the network for up to 15 minutes")
}

// addCost adds --cost.
func (f *flags) addCost(cmd *cobra.Command) {
	f.cost = choice{value: "on", of: []string{"on", "off"}}
	cmd.Flags().Var(&f.cost, "cost", "show what the cluster costs a month, by AWS's price list: on, off; needs the IAM action pricing:GetProducts")
	complete(cmd, "cost", f.cost.of)
}

// addKMSKey adds --kms-key.
func (f *flags) addKMSKey(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kmsKey, "kms-key", "", "ID, ARN or alias of the KMS key that encrypts the cluster's keys and join token in SSM Parameter Store, which this run creates; you need "+
		"kms:Encrypt, kms:GenerateDataKey and kms:Decrypt for it, machines need nothing (default: the AWS managed key aws/ssm)")
}

// waitsFor returns what a run waits for, and why it does not wait for more, unless the
// user has chosen that.
func (f *flags) waitsFor(m *reconcile.Manifest) (wait reconcile.Wait, why string) {
	if f.wait.value != "" {
		return reconcile.Wait(f.wait.value), ""
	}
	switch most := m.MostWait(); most {
	case reconcile.Infrastructure:
		return most, "the API server can only be reached from inside the VPC, so this run did not wait for it; inside the VPC use --wait=nodes"
	case reconcile.APIServer:
		return most, "Nodes become ready once a pod network is installed: use kubectl, or --cni FILE"
	case reconcile.NodesReady:
	}
	return reconcile.NodesReady, ""
}
