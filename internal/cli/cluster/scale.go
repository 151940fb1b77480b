package cluster

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

type scaleOptions struct{ editFlags }

func newScale(f *flags) *cobra.Command {
	o := &scaleOptions{editFlags{manifestFlags: manifestFlags{flags: f}}}
	cmd := &cobra.Command{
		Use:   "scale -f FILE [NAME/]GROUP N",
		Short: "Set the number of machines of a group in its manifest",
		Long: `Set the number of machines of a group in its manifest, and show the plan. Nothing in AWS
is changed: 'cluster create' does that.

GROUP is a MachineDeployment, a MachinePool or the control plane, by its name, which may
leave out the name of the cluster: md-0 for demo-md-0, control-plane. NAME is the cluster,
if the manifest has several. In a topology, the number is set in the Cluster. If N is
outside of the limits of a pool, they are moved, too.

The text stays as it is: comments, order, quotes. A number that comes from a ${VARIABLE},
an anchor or an autoscaler is not edited; the error says where it comes from. The edited
manifest is checked before it is written.`,
		Example: `  clusterawsadm cluster scale -f demo.yaml demo/md-0 5
  clusterawsadm cluster scale -f demo.yaml control-plane 3 --dry-run`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return env.Usagef("name the group and the number of its machines: scale -f FILE GROUP N")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], args[1]) },
	}
	o.addEdit(cmd)
	return cmd
}

func (o *scaleOptions) run(ctx context.Context, group, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 10_000 {
		return env.Usagef("%q is not a number of machines", count)
	}
	name, short, both := strings.Cut(group, "/")
	if !both {
		name, short = "", group
	}
	if name != "" && o.chosen == "" {
		o.chosen = name
	}
	e, m, err := o.newEditor(ctx)
	if err != nil {
		return err
	}
	if name != "" && name != m.Name() && !strings.HasSuffix(o.chosen, "/"+m.Name()) {
		return env.Usagef("the manifest has the cluster %s, not %s", m.Name(), name)
	}
	g, err := groupNamed(m.Groups(), short)
	if err != nil {
		return err
	}
	changes, err := e.resize(g, n, m)
	if err != nil {
		return err
	}
	return e.apply(ctx, changes)
}

// groupNamed returns the group of that name.
func groupNamed(all []cluster.Group, name string) (cluster.Group, error) {
	var names []string
	for _, g := range all {
		if g.Name == name || slices.Contains(g.Aliases, name) {
			if g.Refused != "" {
				return g, env.Usagef("%s: %s", g.Name, g.Refused)
			}
			return g, nil
		}
		if g.Refused == "" {
			names = append(names, g.Name)
		}
	}
	return cluster.Group{}, env.Usagef("there is no group %s: the manifest has %s", name, strings.Join(names, ", "))
}

// resize returns the changes for another number of machines.
func (e *editor) resize(g cluster.Group, n int, m loaded) ([]fieldChange, error) {
	object, err := e.find(g.Object, m)
	if err != nil {
		return nil, err
	}
	changes := []fieldChange{{object: object, path: steps(g.Path), value: strconv.Itoa(n)}}
	if g.Limits == nil {
		return changes, nil
	}
	limits, err := e.find(g.Limits.Object, m)
	if err != nil {
		return nil, err
	}
	if least := g.Limits.Min; least != nil && int(*least) > n {
		changes = append(changes, fieldChange{object: limits, path: steps(g.Limits.MinPath), value: strconv.Itoa(n)})
	}
	if most := g.Limits.Max; most != nil && int(*most) < n {
		changes = append(changes, fieldChange{object: limits, path: steps(g.Limits.MaxPath), value: strconv.Itoa(n)})
	}
	return changes, nil
}

// steps splits the path of a field: spec.list[0].name. The name of an annotation or a label is one step.
func steps(path string) []string {
	path = regexp.MustCompile(`\[(\d+)\]`).ReplaceAllString(path, ".$1")
	for _, of := range []string{"metadata.annotations.", "metadata.labels.", "data.", "stringData."} {
		if before, name, ok := strings.Cut(path, of); ok && (strings.HasPrefix(of, "metadata") || before == "") {
			return append(strings.FieldsFunc(before+of, func(r rune) bool { return r == '.' }), name)
		}
	}
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}
