package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// foundVersion is a version that can be used, and what EKS says of it.
type foundVersion struct {
	semver.Version
	eks eks.VersionInfo
}

// readCurrent reads the version of the control plane.
func (u *upgrade) readCurrent(ctx context.Context) error {
	if u.Cluster.Manifest != nil {
		u.out.EKS = u.Cluster.IsEKS()
		u.setCurrent(u.Cluster.Manifest.Version)
	}
	if !u.out.EKS {
		if err := u.readMachines(ctx); err != nil || u.out.Exists || u.Cluster.Manifest != nil {
			return err
		}
	}
	plane, err := u.eksCluster(ctx)
	if plane != nil {
		u.out.EKS, u.out.Exists, u.plane = true, true, plane.Name
		u.setCurrent(plane.Version)
	}
	return err
}

// eksCluster reads the EKS cluster; nil if there is none. Without a manifest, it is also nil if
// the caller may not read EKS clusters.
func (u *upgrade) eksCluster(ctx context.Context) (*eks.ClusterState, error) {
	if u.Cluster.Manifest != nil {
		return eks.ClusterByName(ctx, u.Cloud, u.Cluster.Manifest.KubernetesName())
	}
	found, err := eks.Tagged(ctx, u.Cloud)
	if cloud.Denied(err) {
		return nil, nil
	}
	return found, err
}

// readMachines reads the versions of machines from the names of their images.
func (u *upgrade) readMachines(ctx context.Context) error {
	machines, err := ec2.Instances(ctx, u.Cloud)
	if err != nil {
		return err
	}
	ids := map[string][]string{} // by role
	for _, m := range machines {
		role := m.Tags[cloud.RoleTag]
		ids[role] = append(ids[role], m.Image)
	}
	plane, workers := ids["control-plane"], ids["node"]
	u.out.Exists = len(plane) > 0
	all := slices.Concat(plane, workers)
	slices.Sort(all)
	if u.images, err = ec2.QueriesOf(ctx, u.Cloud, slices.Compact(all)); err != nil {
		return err
	}
	if v := u.lowest(plane); v != nil {
		u.setCurrent(v.String())
	}
	u.oldest = u.lowest(workers)
	return nil
}

// lowest returns the lowest version of images; nil if none is known.
func (u *upgrade) lowest(images []string) (lowest *semver.Version) {
	for _, id := range images {
		if v, err := semver.ParseTolerant(u.images[id].Version); err == nil && (lowest == nil || v.LT(*lowest)) {
			lowest = &v
		}
	}
	return lowest
}

func (u *upgrade) setCurrent(version string) {
	if v, err := semver.ParseTolerant(version); err == nil {
		u.current, u.out.Version = &v, u.text(v)
	}
}

// text is a version as manifests have it: EKS has no patch versions.
func (u *upgrade) text(v semver.Version) string {
	if u.out.EKS {
		return fmt.Sprintf("v%d.%d", v.Major, v.Minor)
	}
	return "v" + v.String()
}

// readVersions reads the versions that can be used.
func (u *upgrade) readVersions(ctx context.Context) (err error) {
	if u.out.EKS {
		err = u.readOffers(ctx)
	} else if u.out.Exists || u.Cluster.Manifest != nil {
		err = u.readImages(ctx)
	}
	if err != nil || u.current == nil {
		return err
	}
	slices.SortFunc(u.found, func(a, b foundVersion) int { return a.Compare(b.Version) })
	for _, v := range u.found {
		step := u.step(v.Version)
		if step == "" || step == cluster.CurrentVersion && !u.out.EKS {
			continue
		}
		u.out.Versions = append(u.out.Versions, cluster.UpgradeVersion{
			Version: u.text(v.Version), Step: step, Status: v.eks.Status,
			ReleaseDate: v.eks.Released, EndOfStandardSupportDate: v.eks.StandardSupportEnds, EndOfExtendedSupportDate: v.eks.ExtendedSupportEnds,
		})
	}
	return nil
}

// step returns how far a version is from the current one; "" if it is older.
func (u *upgrade) step(v semver.Version) cluster.UpgradeStep {
	switch {
	case v.LT(*u.current):
		return ""
	case v.EQ(*u.current):
		return cluster.CurrentVersion
	case v.Major == u.current.Major && v.Minor == u.current.Minor:
		return cluster.NewerPatch
	case v.Major == u.current.Major && v.Minor == u.current.Minor+1:
		return cluster.NextMinor
	}
	return cluster.LaterMinor
}

// readOffers reads the versions that EKS offers. The permission is optional.
func (u *upgrade) readOffers(ctx context.Context) error {
	all, err := eks.Versions(ctx, u.Cloud)
	if cloud.Denied(err) {
		u.Warn("the versions that EKS offers are not known: the caller lacks the IAM action %s", run.DeniedActions(err))
		return nil
	}
	u.out.Known = err == nil
	for _, x := range all {
		if v, err := semver.ParseTolerant(x.Version); err == nil {
			u.found = append(u.found, foundVersion{v, x})
		}
	}
	return err
}

// readInsights reads what EKS has found that the upgrade breaks. The permission is optional.
func (u *upgrade) readInsights(ctx context.Context) (err error) {
	if u.plane == "" {
		return nil
	}
	u.out.Insights, err = eks.UpgradeInsights(ctx, u.Cloud, u.plane, eks.VersionsUpTo(u.out.Version, u.out.Target))
	if cloud.Denied(err) {
		u.Warn("the upgrade insights of EKS are not known: the caller lacks the IAM action %s", run.DeniedActions(err))
		return nil
	}
	return err
}

// readImages reads the versions that have images for all machines.
func (u *upgrade) readImages(ctx context.Context) error {
	queries, err := u.imageQueries(ctx)
	if err != nil {
		return err
	}
	var common []semver.Version
	for i, q := range queries {
		versions, err := q.Versions(ctx, u.Cloud)
		if err != nil {
			return err
		}
		if i == 0 {
			common = versions
		}
		common = slices.DeleteFunc(slices.Clone(common), func(v semver.Version) bool { return !slices.ContainsFunc(versions, v.Equals) })
	}
	for _, v := range common {
		u.found = append(u.found, foundVersion{Version: v})
	}
	if u.out.Known = len(queries) > 0; !u.out.Known {
		u.out.Remarks = append(u.out.Remarks, "the images of the machines do not tell which other versions have images")
	}
	return nil
}

// imageQueries returns the queries for the images of machines: those of the manifest, or else
// for images like those that the machines have.
func (u *upgrade) imageQueries(ctx context.Context) (queries []ec2.ImageQuery, err error) {
	if u.Cluster.Manifest == nil {
		seen := map[string]bool{}
		for _, id := range slices.Sorted(maps.Keys(u.images)) {
			q := u.images[id]
			kind := q.Owner + " " + q.Architecture + " " + strings.Replace(q.Name, q.Version, "", 1)
			if !seen[kind] {
				queries = append(queries, q)
			}
			seen[kind] = true
		}
		return queries, nil
	}
	types := map[string]ec2.InstanceType{}
	if names := run.MissingTypes(u.Cluster.Manifest, topology.Inventory{}); len(names) > 0 {
		if types, err = ec2.InstanceTypes(ctx, u.Cloud, names); err != nil {
			return nil, fmt.Errorf("instance types: %w", err)
		}
	}
	images, err := topology.ImagesOf(u.Cluster.Manifest, types)
	if err != nil {
		return nil, &plan.RefusedError{Reasons: []error{err}}
	}
	return slices.DeleteFunc(images.ByName, func(q ec2.ImageQuery) bool { return !q.NamesVersion() }), nil
}
