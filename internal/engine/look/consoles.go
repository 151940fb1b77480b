package look

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Consoles reads the console output of all machines of the cluster, or of those in nodes. Secrets are removed.
func Consoles(ctx context.Context, c *run.Cluster, nodes ...string) (out []cluster.Console, err error) {
	v := newView(c)
	ctx = cloud.InSnapshot(cloud.ReadOnly(ctx))
	all, err := v.machines(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, cluster.ErrNotFound
	}
	for _, node := range nodes {
		if len(named(all, node)) == 0 {
			return nil, v.noMachine(node, all)
		}
	}
	for _, m := range all {
		if len(nodes) > 0 && !slices.ContainsFunc(nodes, func(node string) bool { return slices.Contains(namesOf(m), node) }) {
			continue
		}
		console, err := diagnose.Console(ctx, v.Cloud, m)
		if cloud.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("console output of %s (%s): %w", shownAs(m), m.ID, err)
		}
		lines := strings.Split(console, "\n")
		out = append(out, cluster.Console{Name: shownAs(m), Machine: m.ID, Lines: lines[:len(lines)-1]}) // the last one may go on
	}
	return out, nil
}
