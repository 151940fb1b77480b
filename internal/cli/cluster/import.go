package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type importOptions struct {
	*flags
	output     string
	adopt, yes bool
}

func newImport(f *flags) *cobra.Command {
	o := &importOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "import NAME",
		Short: "Make a manifest of an EKS cluster that exists",
		Long: `Make a manifest of an EKS cluster that exists in AWS: one that eksctl, Terraform, the
console, Cluster API or this program has made. NAME is the name of the EKS cluster, or
that of its Cluster object.

The command only reads. It checks the manifest with a plan, and says what 'cluster
create' would change. Parts that no manifest can describe are left out, and comments in
the manifest say which and why; other commands leave them as they are.

'cluster create' and 'cluster delete' work on resources that have the tags of the
cluster. --adopt sets them on the EKS cluster and on its parts, and changes nothing
else. From then on, 'cluster delete' deletes the EKS cluster. The VPC of another tool
stays.

The manifest does not contain the machines of self-managed nodes, nor objects in
Kubernetes.`,
		Example: `  clusterawsadm cluster import shop --region eu-west-1 > shop.yaml
  clusterawsadm cluster import shop --region eu-west-1 -o shop.yaml --adopt`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "`FILE` for the manifest; it is not overwritten (default: standard output)")
	cmd.Flags().BoolVar(&o.adopt, "adopt", false, "set the tags by which other commands find the cluster")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation of --adopt")
	return cmd
}

// run imports the cluster. The manifest is written before the tags are set, so that it is
// there whatever happens.
func (o *importOptions) run(ctx context.Context, name string) (err error) {
	i, s, err := o.imported(ctx, name)
	if err != nil {
		return err
	}
	defer s.Close(&err)
	if err := o.write(i.Manifest); err != nil {
		return err
	}
	o.tell(i)
	if !o.adopt || i.Plan.Empty() {
		return nil
	}
	question := fmt.Sprintf("Adopt cluster %s in %s? 'cluster delete' deletes it from then on.", i.Name, s.target.Config.Region)
	if err := o.confirmed(ctx, o.yes, question, "pass --yes"); err != nil {
		return err
	}
	res, err := i.Adopt(ctx, reconcile.Options{})
	if err != nil {
		return err
	}
	o.Env.Story("adopted cluster %s: %s have its tags; a plan of the manifest is empty", i.Name, text.Count(tagged(res.Plan), "resource"))
	return nil
}

// imported imports the cluster of a name.
func (f *flags) imported(ctx context.Context, name string) (i *reconcile.Imported, s *session, err error) {
	if !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,99}$`).MatchString(name) {
		return nil, nil, env.Usagef("%q cannot be the name of a cluster", name)
	}
	if s, err = f.open(ctx, f.Region); err != nil {
		return nil, nil, err
	}
	i, err = reconcile.Import(ctx, name, s.target, reconcile.LoadOptions{})
	if errors.Is(err, reconcile.ErrNotFound) {
		err = notFound(name, s.target.Config.Region)
	}
	if err != nil {
		s.Close(&err)
		return nil, nil, err
	}
	return i, s, nil
}

// write writes the manifest to the file, or to standard output.
func (o *importOptions) write(manifest []byte) error {
	if o.output == "" {
		_, err := o.Env.Out.Write(manifest)
		return err
	}
	old, err := os.ReadFile(o.output)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return &env.UsageError{Err: err}
	case bytes.Equal(old, manifest):
		return nil
	default:
		return env.Usagef("%s exists and has another content: choose another file with -o", o.output)
	}
	if err := os.WriteFile(o.output, manifest, 0o600); err != nil {
		return &env.UsageError{Err: err}
	}
	o.Env.Story("wrote %s", o.output)
	return nil
}

// tell says what the manifest does not contain, and what a run with it would change.
func (o *importOptions) tell(i *reconcile.Imported) {
	for _, x := range i.LeftOut {
		o.Env.Story("left out %s", x)
	}
	for _, s := range i.Differences {
		o.Env.Story("warning: 'cluster create' would %s %s: see 'cluster plan'", s.Action, s.Resource)
	}
	switch n := tagged(i.Plan) - len(i.Differences); {
	case i.Plan.Empty():
		o.Env.Story("a plan of the manifest is empty")
	case !o.adopt:
		o.Env.Story("%s of cluster %s do not have its tags yet: --adopt sets them", text.Count(n, "resource"), i.Name)
	}
}

// tagged returns how many resources a plan changes.
func tagged(p reconcile.Plan) (n int) {
	for _, s := range p.Steps {
		if s.Does() {
			n++
		}
	}
	return n
}
