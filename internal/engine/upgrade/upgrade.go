// Package upgrade finds the versions of Kubernetes that a cluster can be upgraded to, what to edit in its
// manifest, and what a run with the edited manifest replaces. It only reads.
package upgrade

import (
	"context"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Text is the text of a manifest, and how it was read.
type Text struct {
	Sources []input.Source
	Options input.LoadOptions
}

// Find returns the versions that the cluster can be upgraded to. With a manifest, it also
// returns how to upgrade to one of them: to is "v1.34.2" or "v1.34"; "" is the newest patch of
// the next minor version, or else of the current one. It changes nothing. If the cluster cannot
// be upgraded to that version, the error is a RefusedError.
func Find(ctx context.Context, c *run.Cluster, from *Text, to string) (cluster.Upgrades, error) {
	u := &upgrade{Session: run.Begin(c, nil), from: from, out: cluster.Upgrades{Name: c.Name, Region: c.Region, Versions: []cluster.UpgradeVersion{}}}
	u.Cloud.Snapshot()
	looking := cloud.InSnapshot(cloud.ReadOnly(ctx))
	err := u.readCurrent(looking)
	if err == nil {
		err = u.readVersions(looking)
	}
	if err == nil {
		err = u.aim(to)
	}
	if err == nil && u.out.Target != "" {
		err = u.readInsights(looking)
	}
	if err == nil && from != nil && u.out.Target != "" {
		err = u.how(ctx, looking)
	}
	return u.out, err
}

// upgrade finds out how a cluster can be upgraded.
type upgrade struct {
	*run.Session
	from    *Text // nil: the cluster was opened by name
	out     cluster.Upgrades
	current *semver.Version           // nil if it is not known
	plane   string                    // name of the EKS cluster that exists
	target  semver.Version            // if out.Target is set
	oldest  *semver.Version           // of the workers that exist; nil if it is not known
	images  map[string]ec2.ImageQuery // of the machines that exist, by ID
	found   []foundVersion            // that can be used
}
