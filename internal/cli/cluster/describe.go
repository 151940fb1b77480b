package cluster

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

type describeOptions struct {
	manifestFlags
	runFlags
	output formats
	full   bool

	detailedExit bool
}

func newDescribe(f *flags) *cobra.Command {
	o := &describeOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:     "describe {-f FILE | NAME}",
		Aliases: []string{"status"},
		Short:   "Show the live state of a cluster as a tree of its resources",
		Long: `Show the live state of a cluster as a tree of its resources, with the API server and
the Nodes. A machine has a check mark when its Node is ready. If the API server does not
answer within five seconds, a machine has a check mark when AWS runs it.

With a manifest, resources that are missing or differ from it are shown as such. With the
name, the cluster is found by its tags.

The exit code is 0 for every state of a cluster, and 1 if there is none of that name. With
--detailed-exitcode it is 2 if a resource is missing, differs, or is not ready.`,
		Example: `  clusterawsadm cluster describe demo
  clusterawsadm cluster describe -f demo.yaml --detailed-exitcode
  clusterawsadm cluster describe demo -o jsonpath='{.nodes[*].name}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && typed(cmd, "wait") {
				return env.Usagef("--wait requires a manifest: use it with -f FILE instead of the name")
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.addManifest(cmd)
	o.output.addTo(cmd, "text", "wide", "name", "json", "yaml")
	o.addWait(cmd)
	cmd.Flags().BoolVar(&o.full, "full", false, "list every machine and Node, and cut no line to the width of the terminal, as -o wide does")
	cmd.Flags().BoolVar(&o.detailedExit, "detailed-exitcode", false, "exit with 2 when a resource is missing, differs, or is not ready")
	return cmd
}

func (o *describeOptions) run(ctx context.Context, args []string) (err error) {
	how := o.runFlags
	how.waits = true
	x, err := o.subject(ctx, args, how)
	if err != nil {
		return err
	}
	defer x.Close(&err)
	c, s := x.cluster, x.session
	status, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 && len(status.Resources) == 0 {
		return o.notFound(c.Name, c.Region)
	}
	if err = o.print(status, len(args) > 0, s.Clock.Now()); err == nil && o.detailedExit && !status.Healthy() {
		err = env.ErrChanges
	}
	return err
}

// description is the JSON output.
type description struct {
	Document int `json:"version"` // of the document
	cluster.Status
	Endpoint string `json:"endpoint,omitempty"` // https://host:port of the API server
}

func described(s cluster.Status) description {
	d := description{Document: render.Version, Status: s}
	if s.Endpoint != "" {
		d.Endpoint = apiURL(s.Endpoint)
	}
	return d
}

// apiURL is the URL of the API server at an endpoint, as all documents have it.
func apiURL(endpoint string) string { return "https://" + endpoint }

// print prints the state of a cluster in the format of the flag.
func (o *describeOptions) print(s cluster.Status, named bool, now time.Time) error {
	if is, err := o.output.encode(o.Env.Out, described(s)); is {
		return err
	}
	if o.output.value == "name" {
		return printNames(o.Env.Out, s.Resources, func(r cluster.ResourceStatus) string { return string(r.Resource) })
	}
	v := render.StatusView{Full: o.full || o.output.value == "wide", Named: named, Style: o.Env.OutStyle(), Now: now}
	if !v.Full {
		v.Width = o.Env.OutWidth()
	}
	return render.Status(o.Env.Out, s, v)
}
