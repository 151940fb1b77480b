package eks

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// addonEntry is an add-on that EKS offers.
type addonEntry struct {
	name, kind, owner string
	deployment        bool // it has pods that need nodes; otherwise it is only a DaemonSet
	versions          []addonVersion
}

// addonVersion is a version of an add-on, with the compatible versions of Kubernetes, and
// those for which it is the default.
type addonVersion struct {
	version  string
	from, to string // versions of Kubernetes
	// defaultOf are the versions of Kubernetes for which CreateAddon uses it if the call
	// has no version.
	defaultOf []string
}

func (v addonVersion) runsOn(kubernetes string) bool {
	return v.from <= kubernetes && kubernetes <= v.to
}

func (e *addonEntry) publisher() string {
	if e.owner == "community" {
		return "eks"
	}
	return e.owner
}

// catalogued returns an add-on, or nil.
func catalogued(name string) *addonEntry {
	all := addonCatalogue()
	if i := slices.IndexFunc(all, func(e addonEntry) bool { return e.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// AddonNames lists the names of the add-ons that EKS offers.
func AddonNames() []string {
	return core.Each(addonCatalogue(), func(d addonEntry) string { return d.name })
}

// addonCatalogue returns the add-ons that EKS offers, sorted by name, each with its
// newest version first. The versions have the format of AWS. Their compatibility is
// invented, but has the variants of AWS: one version for each version of Kubernetes
// (kube-proxy), several for all, some that end, some that begin.
func addonCatalogue() []addonEntry {
	all := SupportedVersions()
	until := func(last string) []string { return all[:slices.Index(all, last)+1] }
	since := func(first string) []string { return all[slices.Index(all, first):] }
	steady := func(version string) []addonVersion { return []addonVersion{{version, "1.30", "1.35", all}} }
	return []addonEntry{
		{"amazon-cloudwatch-observability", "observability", "aws", true, steady("v4.5.0-eksbuild.1")},
		{"aws-ebs-csi-driver", "storage", "aws", true, []addonVersion{
			{"v1.51.0-eksbuild.1", "1.30", "1.35", since("1.32")},
			{"v1.44.0-eksbuild.1", "1.30", "1.34", until("1.31")},
		}},
		{"aws-efs-csi-driver", "storage", "aws", true, steady("v2.1.13-eksbuild.1")},
		{"aws-mountpoint-s3-csi-driver", "storage", "aws", true, []addonVersion{
			{"v2.0.0-eksbuild.1", "1.30", "1.35", since("1.30")},
			{"v1.15.0-eksbuild.1", "1.30", "1.33", nil},
		}},
		{"coredns", "networking", "aws", true, []addonVersion{
			{"v1.12.4-eksbuild.1", "1.33", "1.35", since("1.33")},
			{"v1.12.3-eksbuild.1", "1.33", "1.34", nil},
			{"v1.11.4-eksbuild.24", "1.30", "1.34", []string{"1.31", "1.32"}},
			{"v1.11.4-eksbuild.2", "1.30", "1.33", until("1.30")},
		}},
		{"eks-node-monitoring-agent", "observability", "aws", false, steady("v1.4.1-eksbuild.1")},
		{"eks-pod-identity-agent", "security", "aws", false, []addonVersion{
			{"v1.3.9-eksbuild.3", "1.30", "1.35", all},
			{"v1.3.8-eksbuild.2", "1.30", "1.34", nil},
		}},
		{"kube-proxy", "networking", "aws", false, []addonVersion{
			{"v1.35.0-eksbuild.2", "1.35", "1.35", []string{"1.35"}},
			{"v1.34.1-eksbuild.2", "1.34", "1.34", nil},
			{"v1.34.0-eksbuild.2", "1.34", "1.34", []string{"1.34"}},
			{"v1.33.3-eksbuild.4", "1.33", "1.33", nil},
			{"v1.33.0-eksbuild.2", "1.33", "1.33", []string{"1.33"}},
			{"v1.32.6-eksbuild.12", "1.32", "1.32", []string{"1.32"}},
			{"v1.31.10-eksbuild.12", "1.31", "1.31", []string{"1.31"}},
			{"v1.30.14-eksbuild.8", "1.30", "1.30", []string{"1.30"}},
		}},
		{"metrics-server", "observability", "community", true, steady("v0.8.0-eksbuild.2")},
		{"snapshot-controller", "storage", "aws", true, steady("v8.3.0-eksbuild.1")},
		{"vpc-cni", "networking", "aws", false, []addonVersion{
			{"v1.20.4-eksbuild.1", "1.30", "1.35", since("1.34")},
			{"v1.19.5-eksbuild.1", "1.30", "1.34", until("1.33")},
		}},
	}
}
