package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// addWait adds --wait.
func (f *flags) addWait(cmd *cobra.Command) {
	f.wait = choice{of: []string{string(plan.Infrastructure), string(plan.APIServer), string(plan.NodesJoined), string(plan.NodesReady)}}
	cmd.Flags().Var(&f.wait, "wait", "wait `UNTIL`: infrastructure (AWS runs the machines), api (the API server answers and the control plane has joined), "+
		"joined (all machines have joined, and their Nodes may not be ready), nodes (all Nodes are ready); default: nodes if the manifest installs a pod network, otherwise joined")
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

// askName is the value of --new-etcd without a name. It is no name of a cluster.
const askName = "?"

// addNewEtcd adds --new-etcd. It has to be told the name of the cluster: on the command line, or on a
// terminal when it asks for it.
func (f *flags) addNewEtcd(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.newEtcd, "new-etcd", "", "if all machines of the control plane are lost, begin a new, empty etcd: all objects of the cluster are lost, and its workers are replaced; "+
		"takes the `NAME` of the cluster after '=', and asks for it on a terminal otherwise, also with --yes")
	cmd.Flags().Lookup("new-etcd").NoOptDefVal = askName
}

// permitsNewEtcd returns the name of the cluster that may begin a new etcd; "" for none.
func (f *flags) permitsNewEtcd(name string) (string, error) {
	switch f.newEtcd {
	case "", name:
		return f.newEtcd, nil
	case askName:
		return name, nil
	}
	return "", env.Usagef("--new-etcd=%s does not name the cluster of the manifest, %s", f.newEtcd, name)
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

// waitsFor returns what a run waits for: what the user has chosen, or else the most.
func (f *flags) waitsFor(m *reconcile.Manifest) plan.Wait {
	return cmp.Or(plan.Wait(f.wait.value), m.MostWait())
}

// lacking says what the Nodes of a cluster need to become ready and its manifest does not
// install, and how to install it; "" for nothing.
func lacking(m *reconcile.Manifest) string {
	switch lacks := m.Lacks(); len(lacks) {
	case 0:
		return ""
	case 1:
		return "the manifest installs no " + lacks[0] + ". Install one with --cni FILE or kubectl"
	default:
		return "the manifest installs no " + strings.Join(lacks, " and no ") + ". Install them with --cni FILE and --addon FILE, or with kubectl"
	}
}

// notes are remarks about what a plan leads to.
func (f *flags) notes(p plan.Plan) (notes []string) {
	if p.ReplacesControlPlane && f.backup.To == "" {
		notes = append(notes, "Machines of the control plane are replaced: --backup FILE backs up etcd and the keys of the cluster first.")
	}
	starts := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Resource.Kind() == reconcile.KindAPIServer && s.Action == plan.Await })
	replaces := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.ReplacedBy != "" }) && slices.ContainsFunc(p.Steps, awaitsReadyNode)
	switch {
	case f.lacking == "":
		return notes
	case starts:
		return append(notes, "Nodes will not become ready: "+f.lacking+".")
	case replaces: // somebody may have installed it
		return append(notes, "Old machines leave when the Nodes of the new ones are ready: "+f.lacking+", if that was not done.")
	}
	return notes
}

// awaitsReadyNode reports whether a step waits until a Node is ready.
func awaitsReadyNode(s plan.Step) bool {
	return s.Action == plan.Await && s.Resource.Kind() == reconcile.KindNode &&
		slices.ContainsFunc(s.Diff, func(c plan.Change) bool { return c.Field == "state" && c.Want == "ready" })
}
