package cluster

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

type upgradePlanOptions struct {
	editFlags
	output choice
	to     string
	write  bool
}

func newUpgradePlan(f *flags) *cobra.Command {
	o := &upgradePlanOptions{editFlags: editFlags{manifestFlags: manifestFlags{flags: f}}}
	cmd := &cobra.Command{
		Use:   "upgrade-plan {-f FILE | NAME}",
		Short: "Show how to upgrade Kubernetes: versions, edits, replacements",
		Long: `Show which versions of Kubernetes a cluster can be upgraded to: of a self-managed cluster
those with images for all its machines, in EKS those that EKS offers, with their status
and the last days of support. Kubernetes is upgraded by one minor version at a time.

With a manifest, the command also shows what to edit, by file and line, and what 'cluster
create' replaces then: it plans with the edited text. The version is the recommended one,
the newest patch of the next minor version, or that of --to. The versions of EKS add-ons
that EKS does not have for the new version are among the edits, and that of an AWS cloud
controller manager of another minor version.

The command changes nothing in AWS. --write makes the edits in the file, where the rest of
the text stays as it is, and shows the plan; without it, the file does not change, either.
The exit code is 4 if the version of --to cannot be reached, or if 'cluster create' would
be refused: then nothing is written.

For EKS it needs the permission eks:DescribeClusterVersions. Without it, the versions are
not known, and --to is not checked against them.`,
		Example: `  clusterawsadm cluster upgrade-plan -f demo.yaml
  clusterawsadm cluster upgrade-plan -f demo.yaml --to v1.34.2
  clusterawsadm cluster upgrade-plan -f demo.yaml --write
  clusterawsadm cluster upgrade-plan demo -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.addManifest(cmd)
	output(cmd, &o.output, "text", "json", "yaml")
	cmd.Flags().StringVar(&o.to, "to", "", "the `VERSION` to upgrade to, such as v1.34.2, or v1.34 for its newest patch (default: the recommended one)")
	cmd.Flags().BoolVarP(&o.write, "write", "w", false, "make the edits in the file, and show the plan")
	complete(cmd, "to", nil)
	return cmd
}

// upgrades is the JSON output.
type upgrades struct {
	Document int `json:"version"` // of the document
	cluster.Upgrades
}

func (o *upgradePlanOptions) run(ctx context.Context, args []string) (err error) {
	if o.to != "" && !regex.Of(`^v?\d+\.\d+(\.\d+)?$`).MatchString(o.to) {
		return env.Usagef("--to: %q is not a version of Kubernetes such as v1.34.2", o.to)
	}
	if o.write {
		if len(o.files) == 0 || len(args) > 0 {
			return env.Usagef("--write needs the manifest: use -f FILE")
		}
		if o.output.value != "text" {
			return env.Usagef("--write shows a plan as text: leave out -o")
		}
		return o.edit(ctx)
	}
	_, err = o.shown(ctx, args)
	return err
}

// edit makes the edits in the file.
func (o *upgradePlanOptions) edit(ctx context.Context) error {
	e, m, err := o.newEditor(ctx)
	if err != nil {
		return err
	}
	u, err := o.shown(ctx, nil)
	if err != nil {
		return err
	}
	var changes []fieldChange
	for _, edit := range u.Edits {
		object, err := e.find(edit.Object, m)
		if err != nil {
			return err
		}
		changes = append(changes, fieldChange{object: object, path: steps(edit.Path), value: edit.New, tag: edit.Old})
	}
	if len(changes) == 0 {
		o.Env.Story("Nothing to edit: the file is not changed.")
		return nil
	}
	return e.apply(ctx, changes)
}

// shown shows the upgrades.
func (o *upgradePlanOptions) shown(ctx context.Context, args []string) (u cluster.Upgrades, err error) {
	x, err := o.subject(ctx, args, runFlags{waits: true, drain: true}) // as create does
	if err != nil {
		return u, err
	}
	defer x.end(ctx, &err)
	c := x.cluster
	if u, err = c.Upgrades(ctx, o.to); err != nil {
		return u, err
	}
	if len(args) > 0 && !u.Exists {
		return u, o.notFound(c.Name, c.Region)
	}
	if o.output.value == "text" {
		v := render.UpgradesView{Named: len(args) > 0, Style: o.Env.OutStyle(), Width: o.Env.OutWidth()}
		err = o.Env.Answer(ctx, func(w io.Writer) error { return render.Upgrades(w, u, v) })
	} else {
		err = render.Encode(o.Env.Out, render.Format(o.output.value), upgrades{render.Version, u})
	}
	if err != nil {
		return u, err
	}
	return u, u.Refused()
}
