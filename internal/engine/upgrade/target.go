package upgrade

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// aim chooses the version to upgrade to: the newest patch of the next minor version, or else of
// the current one, or the given one.
func (u *upgrade) aim(to string) error {
	for _, step := range []cluster.UpgradeStep{cluster.NewerPatch, cluster.NextMinor} {
		if v := u.newest(func(v semver.Version) bool { return u.current != nil && u.step(v) == step }); v != nil {
			u.target, u.out.Target = *v, u.text(*v)
		}
	}
	for i, v := range u.out.Versions {
		u.out.Versions[i].Recommended = v.Version == u.out.Target && v.Step != cluster.CurrentVersion
	}
	if to == "" {
		return nil
	}
	wanted, err := semver.ParseTolerant(to)
	if err == nil {
		wanted = u.complete(wanted, strings.Count(to, ".") > 1)
		err = u.unreachable(wanted)
	}
	if err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	u.target, u.out.Target = wanted, u.text(wanted)
	return nil
}

// newest returns the newest of the versions that can be used and fulfil a condition; nil for
// none.
func (u *upgrade) newest(is func(semver.Version) bool) *semver.Version {
	for _, v := range slices.Backward(u.found) {
		if is(v.Version) {
			return &v.Version
		}
	}
	return nil
}

// complete adds the newest patch with images to a version without one. EKS has no patches.
func (u *upgrade) complete(v semver.Version, patched bool) semver.Version {
	if u.out.EKS {
		v.Patch = 0
	}
	if newest := u.newest(func(x semver.Version) bool { return x.Major == v.Major && x.Minor == v.Minor }); newest != nil && !patched {
		return *newest
	}
	return v
}

// unreachable says why the cluster cannot be upgraded to a version; nil if it can.
func (u *upgrade) unreachable(v semver.Version) error {
	if u.current == nil {
		return errors.New("the version of the cluster is not known")
	}
	switch u.step(v) {
	case "":
		return fmt.Errorf("%s is older than %s: Kubernetes cannot be downgraded", u.text(v), u.out.Version)
	case cluster.CurrentVersion:
		return fmt.Errorf("the cluster has %s already", u.out.Version)
	case cluster.LaterMinor:
		return fmt.Errorf(
			"%s cannot be reached from %s in one step: upgrade by one minor version at a time, first to v%d.%d",
			u.text(v),
			u.out.Version,
			u.current.Major,
			u.current.Minor+1,
		)
	case cluster.NewerPatch, cluster.NextMinor:
	}
	switch {
	case !u.out.Known, u.newest(v.Equals) != nil:
		return nil
	case u.out.EKS:
		return fmt.Errorf("EKS does not offer %s%s", u.text(v), u.reachable())
	}
	return fmt.Errorf("there are no images of %s for all machines%s", u.text(v), u.reachable())
}

// reachable says which versions the cluster can be upgraded to: the newest patch, and the
// newest one of the next minor version.
func (u *upgrade) reachable() string {
	var newest []string
	for _, step := range []cluster.UpgradeStep{cluster.NewerPatch, cluster.NextMinor} {
		if v := u.newest(func(v semver.Version) bool { return u.step(v) == step }); v != nil {
			newest = append(newest, u.text(*v))
		}
	}
	if len(newest) == 0 {
		return ""
	}
	return ": use " + strings.Join(newest, " or ")
}
