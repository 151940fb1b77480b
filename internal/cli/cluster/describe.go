package cluster

import (
	"context"
	"fmt"
	"io"
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
	watching

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

If the manifest has several clusters, all of them are shown; --cluster chooses one.

The exit code is 0 for every state of a cluster, and 1 if there is none of that name. With
--detailed-exitcode it is 2 if a resource is missing, differs, or is not ready.`,
		Example: `  clusterawsadm cluster describe demo
  clusterawsadm cluster describe -f demo.yaml --detailed-exitcode
  clusterawsadm cluster describe demo --watch
  clusterawsadm cluster describe demo -o jsonpath='{.nodes[*].name}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && typed(cmd, "wait") {
				return env.Usagef("--wait requires a manifest: use it with -f FILE instead of the name")
			}
			if err := o.check(o.output.value); err != nil {
				return err
			}
			return o.watch(cmd.Context(), o.flags, func(ctx context.Context) error { return o.run(ctx, args) })
		},
	}
	o.addManifest(cmd)
	o.output.addTo(cmd, "text", "wide", "name", "json", "yaml")
	o.addWatch(cmd)
	o.addWait(cmd)
	cmd.Flags().BoolVar(&o.full, "full", false, "list every machine and Node, and cut no line to the width of the terminal, as -o wide does")
	cmd.Flags().BoolVar(&o.detailedExit, "detailed-exitcode", false, "exit with 2 when a resource is missing, differs, or is not ready")
	return cmd
}

func (o *describeOptions) run(ctx context.Context, args []string) (err error) {
	how := o.runFlags
	how.waits = true
	x, all, err := o.subjects(ctx, args, how)
	if len(all) > 1 {
		return o.several(ctx, all, how)
	}
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
	if err = o.print(ctx, status, len(args) > 0, s.Clock.Now()); err == nil && o.detailedExit && !status.Healthy() {
		err = env.ErrChanges
	}
	return err
}

// several shows several clusters.
func (o *describeOptions) several(ctx context.Context, all []*member, how runFlags) (err error) {
	f := o.newFleet(all)
	if err := f.open(ctx, how); err != nil {
		return err
	}
	defer f.close(&err)
	states := make([]cluster.Status, len(all))
	f.each(func(i int, m *member) (err error) {
		states[i], err = m.cluster.Status(ctx)
		return err
	})
	unhealthy := false
	for i, m := range all {
		unhealthy = unhealthy || m.err == nil && !states[i].Healthy()
	}
	is, err := o.output.encode(o.Env.Out, f.documents(ctx, func(i int, m *member) any {
		if m.err != nil {
			return nil
		}
		return described(states[i])
	}))
	for i, m := range all {
		if is || err != nil || m.err != nil {
			continue
		}
		if o.output.value != "name" && i > 0 {
			_, _ = fmt.Fprintln(o.Env.Out)
		}
		err = o.print(ctx, states[i], false, m.Clock.Now())
	}
	if err != nil {
		return err
	}
	return f.end(unhealthy && o.detailedExit)
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
func (o *describeOptions) print(ctx context.Context, s cluster.Status, named bool, now time.Time) error {
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
	return o.Env.Paged(ctx, func(w io.Writer) error { return render.Status(w, s, v) })
}
