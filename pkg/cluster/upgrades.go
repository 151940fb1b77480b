package cluster

import (
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Upgrades says which versions of Kubernetes a cluster can be upgraded to, and how.
type Upgrades struct {
	Name   string `json:"name"`
	Region string `json:"region"`
	EKS    bool   `json:"eks"`    // EKS runs the control plane
	Exists bool   `json:"exists"` // the control plane exists
	// Version is that of the control plane, or that of the manifest as long as the control
	// plane does not exist: "v1.33.0", or "v1.33" in EKS; "" if it is not known.
	Version string `json:"kubernetes,omitempty"`
	// Versions are those that can be used: of a self-managed cluster those with images for all
	// its machines. In EKS the current one is among them. The oldest is the first.
	Versions []UpgradeVersion `json:"versions"`
	Known    bool             `json:"versionsKnown"` // Versions could be read

	// What follows is of the upgrade to one version, the recommended one unless another is asked
	// for.

	Target string        `json:"target,omitempty"` // "": there is nothing to upgrade to
	Edits  []VersionEdit `json:"edits,omitempty"`  // of the manifest
	// Replaces are the machines that Apply replaces with the edited manifest, by group.
	Replaces []ReplacedMachines `json:"replaces,omitempty"`
	// Updates are the other resources that Apply upgrades with it. EKS replaces the nodes of a
	// node group, and Auto Scaling the machines of a group.
	Updates []plan.ID `json:"updates,omitempty"`
	Remarks []string  `json:"remarks,omitempty"` // what else to do, and what is not known
	// Insights are what EKS has found in the cluster that the upgrade breaks.
	Insights []UpgradeInsight `json:"insights,omitempty"`
	// Refusals are the reasons for which Apply is refused with the edited manifest.
	Refusals []string `json:"refusals,omitempty"`
}

// Refused returns the refusals as a RefusedError; nil if there are none.
func (u Upgrades) Refused() error { return plan.RefusalFor(u.Refusals) }

// UpgradeVersion is a version of Kubernetes. Status and dates are those of EKS, as
// DescribeClusterVersions returns them.
type UpgradeVersion struct {
	Version     string      `json:"kubernetes"`
	Step        UpgradeStep `json:"step"`
	Recommended bool        `json:"recommended,omitempty"`

	Status                   string     `json:"versionStatus,omitempty"` // STANDARD_SUPPORT, EXTENDED_SUPPORT
	ReleaseDate              *time.Time `json:"releaseDate,omitempty"`
	EndOfStandardSupportDate *time.Time `json:"endOfStandardSupportDate,omitempty"`
	EndOfExtendedSupportDate *time.Time `json:"endOfExtendedSupportDate,omitempty"`
}

// UpgradeStep says how far a version is from that of the cluster.
type UpgradeStep string

// The steps.
const (
	CurrentVersion UpgradeStep = "current"
	NewerPatch     UpgradeStep = "patch" // of the same minor version
	NextMinor      UpgradeStep = "minor" // of the next minor version
	LaterMinor     UpgradeStep = "later" // after the next minor version: Kubernetes is upgraded by one at a time
)

// VersionEdit is a change of one field of the manifest.
type VersionEdit struct {
	At     string `json:"at"`     // "demo.yaml:50"
	Object string `json:"object"` // "KubeadmControlPlane/demo-control-plane"
	Path   string `json:"path"`   // "spec.version"
	Old    string `json:"old"`
	New    string `json:"new"`
	// Written is the text in the manifest if it is not the value: "${KUBERNETES_VERSION}".
	Written string `json:"written,omitempty"`
}

// UpgradeInsight is an upgrade insight of EKS (DescribeInsight).
type UpgradeInsight struct {
	Name    string   `json:"name"`
	Version string   `json:"kubernetes"`
	Status  string   `json:"status"` // ERROR: EKS refuses the upgrade without force; or WARNING
	Reason  string   `json:"reason,omitempty"`
	Advice  string   `json:"advice,omitempty"`
	Uses    []string `json:"uses,omitempty"` // removed APIs, with the clients that use them
}

// ReplacedMachines are the machines of a group that are replaced.
type ReplacedMachines struct {
	Group    string `json:"group"` // "demo-md-0"
	Machines int    `json:"machines"`
}
