package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// runFlags say how a run works.
type runFlags struct {
	wait  choice
	waits bool // the command waits, or shows what a run waits for
	drain bool

	checks    bool // a plan asks IAM what the caller lacks
	unchecked bool // a run does not ask

	cost         choice
	maxCost      float64 // a month; 0: any
	newEtcd      string  // askName without a name
	networkFirst bool
	kmsKey       string
	restore      cluster.Restore
	backup       string   // file or object of a backup before the run; "" for none
	recipients   []string // of it
}

// addWait adds --wait.
func (f *runFlags) addWait(cmd *cobra.Command) {
	f.wait = choice{
		of:  []string{string(plan.Infrastructure), string(plan.APIServer), string(plan.NodesJoined), string(plan.NodesReady)},
		old: map[string]string{"nodes": string(plan.NodesReady)},
	}
	cmd.Flags().Var(&f.wait, "wait", "wait `UNTIL`: infrastructure (AWS runs the machines), api (the API server answers and the control plane has joined), "+
		"joined (all machines have joined, and their Nodes may not be ready), ready (all Nodes are ready, and the pods of add-ons run); default: ready if the manifest installs a pod network, otherwise joined")
	complete(cmd, "wait", f.wait.of)
}

// addDrain adds --drain.
func (f *runFlags) addDrain(cmd *cobra.Command) {
	cmd.Flags().
		BoolVar(&f.drain, "drain", true, "drain Nodes before terminating machines, within pod disruption budgets, remove their etcd members and delete the Nodes; "+
			"false terminates machines without using the API server, and replaces no machine")
}

// addNetworkFirst adds --network-first.
func (f *runFlags) addNetworkFirst(cmd *cobra.Command) {
	cmd.Flags().
		BoolVar(&f.networkFirst, "network-first", false, "launch machines after their NAT gateways are available, a minute later; without it, machines that fetch their boot data "+
			"from a secret or parameter are launched at once, and wait for the network for up to 15 minutes")
}

// askName is the value of --new-etcd without a name. It is no name of a cluster.
const askName = "?"

// addNewEtcd adds --new-etcd. It has to be told the name of the cluster: on the command line, or on a
// terminal when it asks for it.
func (f *runFlags) addNewEtcd(cmd *cobra.Command) {
	cmd.Flags().
		StringVar(&f.newEtcd, "new-etcd", "", "if all machines of the control plane are lost, begin a new, empty etcd: all objects of the cluster are lost, and its workers are replaced; "+
			"takes the `NAME` of the cluster after '=', and asks for it on a terminal otherwise, also with --yes")
	cmd.Flags().Lookup("new-etcd").NoOptDefVal = askName
}

// permitsNewEtcd returns the name of the cluster that may begin a new etcd; "" for none.
func (f *runFlags) permitsNewEtcd(name string) (string, error) {
	switch f.newEtcd {
	case "", name:
		return f.newEtcd, nil
	case askName:
		return name, nil
	}
	return "", env.Usagef("--new-etcd=%s does not name the cluster of the manifest, %s", f.newEtcd, name)
}

// addCost adds --cost.
func (f *runFlags) addCost(cmd *cobra.Command) {
	f.cost = choice{value: "on", of: []string{"on", "off"}}
	cmd.Flags().Var(&f.cost, "cost", "show what the cluster costs a month, by AWS's price list: on, off; needs the IAM action pricing:GetProducts")
	complete(cmd, "cost", f.cost.of)
}

// addMaxCost adds --max-cost.
func (f *runFlags) addMaxCost(cmd *cobra.Command) {
	cmd.Flags().
		Float64Var(&f.maxCost, "max-cost", 0, "refuse a cluster that would cost more than this `AMOUNT` a month, in the currency of AWS's price list; exit code 4 (0: any)")
}

// checkMaxCost checks --max-cost and --cost.
func (f *runFlags) checkMaxCost() error {
	switch {
	case f.maxCost < 0:
		return env.Usagef("--max-cost: must not be negative, is %v", f.maxCost)
	case f.maxCost > 0 && f.cost.value == "off":
		return env.Usagef("--max-cost needs the costs, and --cost=off does not ask for them")
	}
	return nil
}

// withinBudget returns a RefusedError if the cluster would cost more than --max-cost after the plan, or if its costs are not
// known. A plan that does not raise the costs is never refused.
func (f *runFlags) withinBudget(p plan.Plan) error {
	switch {
	case f.maxCost == 0:
		return nil
	case p.Cost == nil:
		return &plan.RefusedError{Reasons: []error{errors.New("--max-cost: what the cluster costs is not known, see the warning about AWS's price list")}}
	case p.Cost.After <= f.maxCost, p.Cost.Before > 0 && p.Cost.After <= p.Cost.Before:
		return nil
	}
	return &plan.RefusedError{Reasons: []error{fmt.Errorf(
		"the cluster would cost %s %.2f a month, and --max-cost allows %.2f: 'cluster plan --full' shows each position", p.Cost.Currency, p.Cost.After, f.maxCost,
	)}}
}

// addKMSKey adds --kms-key.
func (f *runFlags) addKMSKey(cmd *cobra.Command) {
	cmd.Flags().
		StringVar(&f.kmsKey, "kms-key", "", "`KEY` of KMS, as its ID, ARN or alias, that encrypts the cluster's keys and join token in SSM Parameter Store, which this run creates; you need "+
			"kms:Encrypt, kms:GenerateDataKey and kms:Decrypt for it, machines need nothing (default: the AWS managed key aws/ssm)")
}

// waitsFor returns what a run waits for: what the user has chosen, or else the most.
func (f *runFlags) waitsFor(m *reconcile.Manifest) plan.Wait {
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

// awaitsReadyNode reports whether a step waits until a Node is ready.
func awaitsReadyNode(s plan.Step) bool {
	return s.Action == plan.Await && s.Resource.Kind() == reconcile.KindNode &&
		slices.ContainsFunc(s.Diff, func(c plan.Change) bool { return c.Field == "state" && c.Want == "ready" })
}

// addRestore adds the flags of a run that restores a backup.
func (f *runFlags) addRestore(cmd *cobra.Command) {
	cmd.Flags().
		StringVar(&f.restore.File, "restore", "", "if all machines of the control plane are gone, begin with the backup in `FILE`, or s3://BUCKET/KEY; needs --age-key or --passphrase-file, unless a key of KMS encrypts it")
	cmd.Flags().
		StringVar(&f.restore.Bucket, "restore-bucket", "", "existing `BUCKET` from which the first machine loads the snapshot, encrypted, with --restore (default: that of the manifest)")
	addAgeKey(cmd, &f.restore.Keys)
	addPassphrase(cmd, &f.restore.Keys)
}

// addBackup adds the flags of a run that backs up the cluster first.
func (f *runFlags) addBackup(cmd *cobra.Command) {
	p := cmd.Flags()
	p.StringVar(
		&f.backup,
		"backup",
		"",
		"if machines of the control plane are replaced, back up the cluster first to `FILE`, which must not exist, or s3://BUCKET/KEY; needs --backup-recipient",
	)
	p.StringArrayVar(
		&f.recipients,
		"backup-recipient",
		nil,
		"`KEY` for which --backup encrypts: a public key of age, or the ARN or alias of a KMS key; can be repeated",
	)
}

// backupFirst returns the backup before a run; nil for none. The error is for flags of backups
// and restores that do not fit together.
func (f *runFlags) backupFirst() (*cluster.BackupFirst, error) {
	r := f.restore
	switch {
	case r.File == "" && r.Bucket+r.Keys.Identities+r.Keys.Passphrase != "":
		return nil, env.Usagef("--restore-bucket, --age-key and --passphrase-file belong to --restore")
	case f.backup == "" && len(f.recipients) > 0:
		return nil, env.Usagef("--backup-recipient belongs to --backup")
	case f.backup == "":
		return nil, nil
	case r.File != "" || f.newEtcd != "":
		return nil, env.Usagef("--backup needs a control plane that runs: --restore and --new-etcd are for one that is lost")
	case len(f.recipients) == 0:
		return nil, env.Usagef("--backup: %w: use --backup-recipient with a public key of age or a KMS key", cluster.ErrNoBackupKey)
	}
	b := &cluster.BackupFirst{To: f.backup}
	for _, key := range f.recipients {
		if strings.HasPrefix(key, "arn:") || strings.HasPrefix(key, "alias/") {
			b.Keys.KMS = append(b.Keys.KMS, key)
		} else {
			b.Keys.Recipients = append(b.Keys.Recipients, key)
		}
	}
	if err := reconcile.CheckBackupKeys(b.Keys); err != nil {
		return nil, &env.UsageError{Err: err}
	}
	if reconcile.BackupInS3(f.backup) {
		return b, nil
	}
	return b, checkNew("backup", f.backup)
}
