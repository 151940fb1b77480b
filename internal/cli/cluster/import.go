package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type importOptions struct {
	*flags
	output          destination
	keys, bootData  string
	adopt, yes, all bool
}

func newImport(f *flags) *cobra.Command {
	o := &importOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "import {NAME | --all}",
		Short: "Make a manifest of a cluster that exists",
		Long: `Make a manifest of a cluster that exists in AWS: an EKS cluster that eksctl, Terraform,
the console, Cluster API or this program has made, or a self-managed one that Cluster API
or this program has made. NAME is the name of the EKS cluster, or that of the Cluster
object. Neither a management cluster nor an older manifest is needed.

The command only reads. It checks the manifest with a plan, and says what 'cluster
create' would change. Comments in the manifest say what is left out, or not known, and
why. All node groups, Fargate profiles and add-ons of an EKS cluster are in the manifest,
also those that another tool has added to a cluster of Cluster API. Those that no manifest
can describe are left out: other commands leave them as they are.

Machines of self-managed clusters got their configuration when they booted: files,
commands and users. The import reads it where AWS still has it: in the launch templates of
machine pools, in user data, in the bucket of the cluster, and in the secrets of workers
that have not been deleted (secretsmanager:GetSecretValue). Machines of this program have
tags that tell whether the manifest has the same template. If it does not, 'cluster
create' would replace them. Machines of Cluster API have no such tags, and stay.
kubeadm's configuration, and labels and taints of Nodes, are read in the cluster, if the
account has its keys, or with those of --pki-from.

--pki-from ssm reads the keys on a machine of the control plane that Systems Manager
reaches, with ssm:DescribeInstanceInformation, ssm:SendCommand and
ssm:GetCommandInvocation. They are encrypted on the machine with a key of this run, so
that AWS stores nothing that anybody else can read. No file is written there.

--boot-data-from ssm reads in the same way what the newest machine of every other group
got from cloud-init: files, commands, users, and how kubeadm registers it. Files and
commands that may contain a secret, and passwords, are left out; a comment says which.

'cluster create' and 'cluster delete' work on resources that have the tags of the
cluster. --adopt sets them on the cluster and on its parts, records that the machines have
the templates of the manifest, and changes nothing else. From then on, 'cluster delete'
deletes the cluster. The VPC of another tool stays.

--all lists all clusters of the region, those of EKS and the self-managed ones, with what
the import would make of each: whether there is a manifest, what it leaves out, and what
'cluster create' would change.

The manifest does not contain self-managed nodes that another tool has added to an EKS
cluster, which the command names, nor objects in Kubernetes. Node groups keep the launch
templates that another tool, such as eksctl, has made for them.`,
		Example: `  clusterawsadm cluster import shop --region eu-west-1 > shop.yaml
  clusterawsadm cluster import shop --region eu-west-1 --to shop.yaml --adopt
  clusterawsadm cluster import shop --region eu-west-1 --to shop.yaml --pki-from ssm --adopt
  clusterawsadm cluster import --all --region eu-west-1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all {
				return cobra.NoArgs(cmd, args)
			}
			return oneName(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.all {
				return o.runAll(cmd.Context())
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "list all clusters of the region, and what the import would make of each; write no manifest")
	o.output.addTo(cmd, "`FILE` for the manifest; it is not overwritten (default: standard output)", "yaml")
	cmd.Flags().BoolVar(&o.adopt, "adopt", false, "set the tags by which other commands find the cluster, and the template of its machines")
	cmd.Flags().
		StringVar(&o.keys, "pki-from", "", "where the keys of a cluster are that are not in the account: `FOLDER|ssm`, a folder with a copy of /etc/kubernetes/pki of a control-plane machine, or ssm to read them on such a machine with SSM Run Command; --adopt stores them")
	cmd.Flags().
		StringVar(&o.bootData, "boot-data-from", "", "`ssm` reads what machines booted with, on the machines, with SSM Run Command: files, commands, users")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation of --adopt")
	return cmd
}

// run imports the cluster. The manifest is written before the tags are set, so that it is
// there whatever happens.
func (o *importOptions) run(ctx context.Context, name string) (err error) {
	if o.bootData != "" && o.bootData != onMachine {
		return env.Usagef("--boot-data-from %s: it can only be %s", o.bootData, onMachine)
	}
	options := cluster.ImportOptions{KeysFromMachine: o.keys == onMachine, BootDataFromMachines: o.bootData != ""}
	if err := checkWritable("to", o.output.to); err != nil {
		return err
	}
	if !options.KeysFromMachine {
		if options.Keys, err = readKeys(o.keys); err != nil {
			return err
		}
	}
	i, s, err := o.imported(ctx, name, options)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	if err := o.write(ctx, i.Manifest); err != nil {
		return err
	}
	o.tell(i)
	if !o.adopt || i.Plan.Empty() {
		return nil
	}
	question := fmt.Sprintf("Adopt cluster %s in %s? 'cluster delete' deletes it from then on.", i.Name, s.target.Config.Region)
	if len(i.Templates) > 0 {
		question = fmt.Sprintf(
			"Adopt cluster %s in %s? Its machines stay as they are, and count as made from the templates in the manifest; new ones get only what is written there. 'cluster delete' deletes the cluster from then on.",
			i.Name,
			s.target.Config.Region,
		)
	}
	if err := o.confirmed(ctx, o.yes, question, "pass --yes"); err != nil {
		return err
	}
	res, err := i.Adopt(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	o.Env.Story("adopted cluster %s: %s have its tags; a plan of the manifest is empty", i.Name, text.Count(tagged(res.Plan), "resource"))
	return nil
}

// onMachine is the value of --pki-from and --boot-data-from with which something is read on
// machines.
const onMachine = "ssm"

// readKeys reads the keys of a cluster from a folder; none if it is "".
func readKeys(folder string) (map[string][]byte, error) {
	if folder == "" {
		return nil, nil
	}
	keys, err := reconcile.KeyFiles(os.DirFS(folder))
	if err != nil {
		return nil, env.Usagef("--pki-from %s: %v", folder, err)
	}
	return keys, nil
}

// imported imports the cluster of a name.
func (f *flags) imported(ctx context.Context, name string, o cluster.ImportOptions) (i *reconcile.Imported, s *session, err error) {
	if !regex.Of(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,99}$`).MatchString(name) {
		return nil, nil, env.Usagef("%q cannot be the name of a cluster", name)
	}
	if s, err = f.open(ctx, f.Region); err != nil {
		return nil, nil, err
	}
	i, err = reconcile.Import(ctx, name, s.target, o)
	if errors.Is(err, cluster.ErrNotFound) {
		err = f.notFound(name, s.target.Config.Region)
	}
	if err != nil {
		s.Close(&err)
		return nil, nil, err
	}
	return i, s, nil
}

// write writes the manifest to the file, or to standard output.
func (o *importOptions) write(ctx context.Context, manifest []byte) error {
	if o.output.to == "" {
		_, err := o.Env.Out.Write(manifest)
		return err
	}
	if written, err := isWritten(ctx, o.output.to, manifest); written || err != nil {
		return err
	}
	if err := files.Create(o.output.to, manifest, files.Private); err != nil {
		return fmt.Errorf("the manifest: %w", err)
	}
	o.Env.Story("wrote %s", o.output.to)
	return nil
}

// tell says what the manifest does not contain, and what a run with it would change.
func (o *importOptions) tell(i *reconcile.Imported) {
	if i.KeysFrom != "" {
		o.Env.Story("the keys of the cluster were read on %s", i.KeysFrom)
	}
	o.tellMissing(i)
	for _, s := range i.Differences {
		o.Env.Story("warning: 'cluster create' would %s %s: see 'cluster plan'", s.Action, s.Resource)
	}
	switch n := tagged(i.Plan) - len(i.Differences); {
	case i.Plan.Empty():
		o.Env.Story("a plan of the manifest is empty")
	case !o.adopt && n > 0:
		o.Env.Story("%s of cluster %s do not have its tags yet: --adopt sets them", text.Count(n, "resource"), i.Name)
	}
}

// tellMissing says what the manifest does not contain.
func (f *flags) tellMissing(i *reconcile.Imported) {
	for _, x := range i.LeftOut {
		f.Env.Story("left out %s", x)
	}
	for _, x := range i.Unknown {
		f.Env.Story("warning: %s (cluster import --pki-from)", x)
	}
	for _, pool := range i.Later {
		f.Env.Story("note: the first 'cluster create' writes what new machines of %s boot with into its launch template; the machines that it has stay", pool)
	}
	for _, t := range i.Templates {
		fields := "it is not known in what it differs"
		if len(t.Fields) > 0 {
			fields = "it differs in " + strings.Join(t.Fields, ", ")
		}
		whose, remedy := text.Count(t.Machines, "machine")+" of "+t.Group, "complete the manifest, or record with --adopt that they have its template"
		if t.Machines == 0 {
			whose = "the nodes of " + t.Group
		}
		if t.Pool {
			remedy = "complete the manifest"
		}
		f.Env.Story("warning: %s: launched with other settings than those in the manifest: %s. 'cluster create' would replace them; %s", whose, fields, remedy)
	}
}

// tagged returns how many resources a plan changes.
func tagged(p plan.Plan) (n int) {
	for _, s := range p.Steps {
		if s.Does() {
			n++
		}
	}
	return n
}
