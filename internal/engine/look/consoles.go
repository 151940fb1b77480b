package look

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Consoles reads the console output of the machines of the cluster, without secrets: of all, or of those that nodes names.
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
	named := map[string]bool{}
	for _, m := range all {
		names := namesOf(m)
		if len(nodes) > 0 && !slices.ContainsFunc(nodes, func(node string) bool { return slices.Contains(names, node) }) {
			continue
		}
		for _, name := range names {
			named[name] = true
		}
		console, err := diagnose.Console(ctx, v.Cloud, m)
		if cloud.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("console output of %s (%s): %w", shownAs(m), m.ID, err)
		}
		lines := strings.Split(console, "\n")
		out = append(out, cluster.Console{Name: shownAs(m), Machine: m.ID, Lines: lines[:len(lines)-1]}) // the last one may go on
	}
	for _, node := range nodes {
		if !named[node] {
			return nil, fmt.Errorf("cluster %s has no machine %s: it has %s", c.Name, node, text.Several(shown(all)))
		}
	}
	return out, nil
}
