package cluster

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/schema"
)

type explainOptions struct {
	*flags
	output     formats
	apiVersion string
	recursive  bool
}

func newExplain(f *flags) *cobra.Command {
	o := &explainOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "explain [KIND[.FIELD…]]",
		Short: "Explain a field of a manifest, as kubectl explain does",
		Long: `Explain a kind or a field of a manifest, as kubectl explain does: its type, its
description, its values, and the fields below it. CLUSTERAWSADM says what this program
does with it, if that is not what the description says, and what a change of a cluster
that exists does.

The kind may be in lower case. Indexes of lists may be left out. Without an argument, the
command lists the kinds. It needs no account and no cluster.`,
		Example: `  clusterawsadm cluster explain AWSMachineTemplate.spec.template.spec.rootVolume
  clusterawsadm cluster explain machinedeployment.spec --recursive
  clusterawsadm cluster explain Cluster.spec.clusterNetwork --api-version v1beta1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.output.addTo(cmd, "text", "json", "yaml")
	cmd.Flags().StringVar(&o.apiVersion, "api-version", "", "the `VERSION` of the API, such as v1beta1 (default: the newest one)")
	cmd.Flags().BoolVar(&o.recursive, "recursive", false, "list the fields of fields, too, by name and type")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeField(typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return cmd
}

// completeField returns the kinds, or what the field that is typed has below it.
func completeField(typed string) (all []string) {
	cut := strings.LastIndexByte(typed, '.')
	if cut < 0 {
		for _, k := range schema.Kinds() {
			all = append(all, k.Name)
		}
		return all
	}
	e, err := schema.Explain(typed[:cut], "", false)
	if err != nil {
		return nil
	}
	for _, f := range e.Fields {
		all = append(all, typed[:cut+1]+f.Name)
	}
	return all
}

// kindList is the JSON output without an argument.
type kindList struct {
	Version int           `json:"version"` // of the document
	Kinds   []schema.Kind `json:"kinds"`
}

// explanation is the JSON output.
type explanation struct {
	Version int `json:"version"` // of the document
	*schema.Explanation
}

func (o *explainOptions) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		if is, err := o.output.encode(o.Env.Out, kindList{render.Version, schema.Kinds()}); is {
			return err
		}
		return o.Env.Answer(ctx, func(w io.Writer) error { return render.Kinds(w, schema.Kinds()) })
	}
	e, err := schema.Explain(args[0], o.apiVersion, o.recursive)
	if errors.Is(err, schema.ErrNotFound) {
		return &env.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	if is, err := o.output.encode(o.Env.Out, explanation{render.Version, e}); is {
		return err
	}
	return o.Env.Answer(ctx, func(w io.Writer) error { return render.Explanation(w, e, o.recursive) })
}
