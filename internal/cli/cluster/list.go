package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type listOptions struct {
	*flags
	output     formats
	allRegions bool
	watching
}

func newList(f *flags) *cobra.Command {
	o := &listOptions{flags: f}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the clusters of an account, found by their tags",
		Long: `List the clusters of an account, found by their tags.

CONTROL PLANE and WORKERS are numbers of machines that run, as EC2 says, whether or not
they have joined: this command does not ask the clusters. "cluster describe" does.

STATUS says so if a run works on a cluster ("create runs"), was interrupted ("create
interrupted"), or has left resources ("delete unfinished").`,
		Example: `  clusterawsadm cluster list --all-regions
  clusterawsadm cluster list --region eu-west-1 -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.watching.check(o.output.value); err != nil {
				return err
			}
			return o.watch(cmd.Context(), o.flags, o.run)
		},
	}
	o.output.addTo(cmd, "text", "wide", "name", "json", "yaml")
	o.addWatch(cmd)
	cmd.Flags().BoolVar(&o.allRegions, "all-regions", false, "list all regions that are enabled in the account")
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	l, err := o.found(ctx)
	if err != nil {
		return err
	}
	found := l.clusters
	slices.SortFunc(found, func(x, y cluster.Summary) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Region, y.Region))
	})
	if found == nil {
		found = []cluster.Summary{}
	}
	if is, err := o.output.encode(o.Env.Out, clusterList{render.Version, found}); is {
		return err
	}
	switch {
	case len(found) == 0:
		o.Env.Story("%s", o.none(l))
		return nil
	case o.output.value == "name":
		return printNames(o.Env.Out, found, func(c cluster.Summary) string { return c.Name })
	}
	return o.table(found, l.now)
}

// none says where no clusters were found.
func (o *listOptions) none(l listing) string {
	if o.allRegions {
		return "no clusters found in any region"
	}
	return "no clusters found in " + l.region + "; --all-regions looks in all regions"
}

// listing are the clusters of one region, or of all.
type listing struct {
	clusters []cluster.Summary
	region   string    // of the account as it was opened
	now      time.Time // in the account
}

// found lists the clusters. Each region of a simulated account is opened by itself.
func (o *listOptions) found(ctx context.Context) (all listing, err error) {
	if !o.allRegions || !o.Simulate {
		return o.in(ctx, o.Region)
	}
	used, err := o.SimulatedRegions()
	if err != nil {
		return all, err
	}
	for _, region := range used {
		l, err := o.in(ctx, region)
		if err != nil {
			return all, err
		}
		all.clusters = append(all.clusters, l.clusters...)
		if l.now.After(all.now) {
			all.now = l.now
		}
	}
	return all, nil
}

// in opens the account in one region, and lists the clusters there, or in all regions.
func (o *listOptions) in(ctx context.Context, region string) (l listing, err error) {
	s, err := o.open(ctx, region)
	if err != nil {
		return l, err
	}
	defer s.Close(&err)
	found, err := o.find(ctx, s)
	return listing{found, s.target.Config.Region, s.Clock.Now()}, err
}

// clusterList is the JSON output.
type clusterList struct {
	Version  int               `json:"version"`
	Clusters []cluster.Summary `json:"clusters"`
}

// find lists the clusters of one region, or of all in AWS.
func (o *listOptions) find(ctx context.Context, s *session) ([]cluster.Summary, error) {
	if !o.allRegions || s.Simulated() {
		return reconcile.List(ctx, s.target)
	}
	regions, err := reconcile.Regions(ctx, s.target)
	if err != nil {
		return nil, err
	}
	found := make([][]cluster.Summary, len(regions))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, region := range regions {
		t := s.target
		t.Config = t.Config.Copy()
		t.Config.Region = region
		g.Go(func() error {
			return crash.Catch(func() (err error) {
				if found[i], err = reconcile.List(ctx, t); err != nil {
					return fmt.Errorf("%s: %w", region, err)
				}
				return nil
			})
		})
	}
	err = g.Wait()
	return slices.Concat(found...), err
}

func (o *listOptions) table(found []cluster.Summary, now time.Time) error {
	headers := []string{"NAME", "REGION", "TYPE", "VERSION", "CONTROL PLANE", "WORKERS", "STATUS", "AGE"}
	if o.output.value == "wide" {
		headers = append(headers, "RESOURCES", "KINDS")
	}
	rows := make([][]string, len(found))
	for i, c := range found {
		rows[i] = []string{
			c.Name,
			c.Region,
			"kubeadm",
			cmp.Or(c.Version, "-"),
			machines(c.ControlPlane),
			machines(c.Workers),
			render.RunStatus(c.LastRun, cmp.Or(c.Status, "unknown")),
			"-",
		}
		if c.EKS {
			rows[i][2], rows[i][4] = "eks", "eks"
		}
		if c.Since != nil {
			rows[i][7] = render.Age(*c.Since, now)
		}
		if o.output.value == "wide" {
			rows[i] = append(rows[i], kindsOf(c)...)
		}
	}
	headers, rows = render.Fit(o.tableWidth(), headers, rows, "TYPE", "AGE", "VERSION", "WORKERS", "CONTROL PLANE")
	return render.Table(o.Env.Out, headers, rows)
}

// tableWidth is the width that the table may have; 0 for any.
func (o *listOptions) tableWidth() int {
	if o.output.value == "wide" {
		return 0
	}
	return o.Env.OutWidth()
}

// machines prints numbers of machines: "3", or "2/3" if not all of them run.
func machines(m cluster.Machines) string {
	if m.Running == m.All {
		return strconv.Itoa(m.All)
	}
	return fmt.Sprintf("%d/%d", m.Running, m.All)
}

// kindsOf prints how many resources a cluster has, and of which kinds.
func kindsOf(c cluster.Summary) []string {
	total := 0
	kinds := make([]string, 0, len(c.Kinds))
	for _, kind := range slices.Sorted(maps.Keys(c.Kinds)) {
		total += c.Kinds[kind]
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, c.Kinds[kind]))
	}
	return []string{strconv.Itoa(total), strings.Join(kinds, ", ")}
}
