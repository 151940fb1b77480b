package cluster

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type graphOptions struct {
	manifestFlags
	output  choice
	full    bool
	summary bool
}

func newGraph(f *flags) *cobra.Command {
	o := &graphOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "graph -f FILE",
		Short: "Draw the graph of the resources of a cluster",
		Long: `Draw the resources of a cluster and their dependencies. Only the manifest is read;
AWS is not called. GitHub renders Mermaid in Markdown; DOT is the language of
Graphviz.`,
		Example: `  clusterawsadm cluster graph -f demo.yaml -o svg > demo.svg`,
		Args:    manifestOnly,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addManifest(cmd)
	output(cmd, &o.output, "text", "mermaid", "dot", "svg", "json", "yaml")
	cmd.Flags().BoolVar(&o.summary, "summary", false, "draw one box for each kind of resource")
	cmd.Flags().BoolVar(&o.full, "full", false, "draw every machine, and also the arrows that follow from others")
	return cmd
}

func (o *graphOptions) run(ctx context.Context) error {
	m, err := o.load(ctx)
	if err != nil {
		return err
	}
	// With what create waits for, Nodes and add-ons belong to the graph.
	g, err := reconcile.Open(m.Manifest, cluster.Target{Wait: m.MostWait()}).Graph()
	if err != nil {
		return err
	}
	p := render.NewPicture(fmt.Sprintf("%s in %s", m.Name(), m.Region()), g, o.full)
	if o.summary {
		p = p.Summary()
	}
	switch o.output.value {
	case "mermaid":
		return p.Mermaid(o.Env.Out)
	case "dot":
		return p.DOT(o.Env.Out)
	case "svg":
		return p.SVG(o.Env.Out)
	case "text":
		return o.Env.Answer(ctx, func(w io.Writer) error { return p.Outline(w, o.Env.OutStyle()) })
	}
	return render.Encode(o.Env.Out, render.Format(o.output.value), p)
}
