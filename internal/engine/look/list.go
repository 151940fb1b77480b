package look

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// List finds the clusters of the region of the target by their tags.
func List(ctx context.Context, t cluster.Target) ([]cluster.Summary, error) {
	c, ctx := cloud.New(t.Config, "", run.ClientOptions(t)), cloud.ReadOnly(ctx)
	c.Snapshot()
	ctx = cloud.InSnapshot(ctx)
	all, err := teardown.Clusters(ctx, c)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	overviews, err := discover.Overviews(ctx, c)
	if cloud.Denied(err) && t.Warn != nil { // who may only read tags gets the names
		t.Warn(fmt.Sprintf("version, machines and status of the clusters are not known: %v", err))
	} else if err != nil {
		return nil, err
	}
	var out []cluster.Summary
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if invalid := run.CheckName(name); invalid != nil { // somebody else has set the tag
			if t.Warn != nil {
				t.Warn("not listed: " + invalid.Error())
			}
			continue
		}
		s := cluster.Summary{Name: name, Region: t.Config.Region, Kinds: all[name]}
		if err == nil {
			describe(&s, overviews[name])
		}
		out = append(out, s)
	}
	readRecords(ctx, t, out)
	return out, nil
}

// readRecords adds the last run of each cluster, and whether the cluster is stopped. It adds nothing if the caller may not read
// the record of the run.
func readRecords(ctx context.Context, t cluster.Target, all []cluster.Summary) {
	o := run.ClientOptions(t)
	o.Budget = cloud.NewBudget(o.Clock, o.Parallel)
	var reads crash.Group
	for i := range all {
		s := &all[i]
		reads.Go(func() {
			last, err := cloud.New(t.Config, s.Name, o).LastRun(cloud.ReadOnly(ctx))
			if err != nil || last == nil {
				return
			}
			if s.LastRun = unfinished(last); last.Stopped != nil && s.EKS {
				s.Status = "stopped"
			}
		})
	}
	reads.Wait()
}

// describe adds what is known of a cluster; o is nil if it has no machines.
func describe(s *cluster.Summary, o *discover.Overview) {
	if o == nil {
		o = &discover.Overview{}
	}
	s.EKS, s.Version, s.ControlPlane, s.Workers = o.EKS, o.Version, cluster.Machines(o.ControlPlane), cluster.Machines(o.Workers)
	if !o.Since.IsZero() {
		s.Since = &o.Since
	}
	switch plane := o.ControlPlane; {
	case o.EKS:
		s.Status = strings.ToLower(o.Status)
	case plane.All == 0:
		s.Status = "no control plane"
	case o.Stopped == plane.All:
		s.Status = "stopped"
	case plane.Running < plane.All:
		s.Status = "pending"
	default:
		s.Status = "running"
	}
}

// Regions lists the regions that are enabled in the account.
func Regions(ctx context.Context, t cluster.Target) (names []string, err error) {
	out, err := cloud.New(t.Config, "", run.ClientOptions(t)).EC2.DescribeRegions(ctx, &ec2.DescribeRegionsInput{})
	if err != nil {
		return nil, err
	}
	for _, r := range out.Regions {
		names = append(names, *r.RegionName)
	}
	slices.Sort(names)
	return names, nil
}
