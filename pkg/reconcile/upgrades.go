package reconcile

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
)

// Upgrades returns the versions that the cluster can be upgraded to. With a manifest, it also
// returns how to upgrade to one of them: to is "v1.34.2" or "v1.34"; "" is the newest patch of
// the next minor version, or else of the current one. It changes nothing. If the cluster cannot
// be upgraded to that version, the error is a RefusedError.
func (c *Cluster) Upgrades(ctx context.Context, to string) (cluster.Upgrades, error) {
	u := &upgrade{run: c.begin(cluster.Options{}), out: cluster.Upgrades{Name: c.Name, Region: c.Region, Versions: []cluster.UpgradeVersion{}}}
	u.cloud.Snapshot()
	looking := cloud.InSnapshot(cloud.ReadOnly(ctx))
	err := u.readCurrent(looking)
	if err == nil {
		err = u.readVersions(looking)
	}
	if err == nil {
		err = u.aim(to)
	}
	if err == nil && c.loaded != nil && u.out.Target != "" {
		err = u.how(ctx, looking)
	}
	return u.out, err
}

// upgrade finds out how a cluster can be upgraded.
type upgrade struct {
	*run
	out     cluster.Upgrades
	current *semver.Version           // nil if it is not known
	target  semver.Version            // if out.Target is set
	oldest  *semver.Version           // of the workers that exist; nil if it is not known
	images  map[string]ec2.ImageQuery // of the machines that exist, by ID
	found   []foundVersion            // that can be used
}
