package eks

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// CreationTag is the tag of an EKS cluster with the settings that CreateCluster takes, that no other call changes, and that
// EKS does not return: "creator-admin=true self-managed-addons=false". A cluster that another tool has made does not have it.
const CreationTag = "clusterawsadm/created-with"

const (
	noteCreatorAdmin  = "creator-admin"
	noteSelfManaged   = "self-managed-addons"
	fieldCreatorAdmin = "accessConfig.bootstrapClusterCreatorAdminPermissions"
	fieldSelfManaged  = "bootstrapSelfManagedAddons"
)

// creatorIsAdmin returns the setting; true is the default of EKS.
func (e *Cluster) creatorIsAdmin() bool { return e.CreatorIsAdmin == nil || *e.CreatorIsAdmin }

// creationTags are the tags of a new cluster.
func (e *Cluster) creationTags() cloud.Tags {
	return e.Tags.With(cloud.Tags{CreationTag: fmt.Sprintf("%s=%v %s=%v", noteCreatorAdmin, e.creatorIsAdmin(), noteSelfManaged, !e.SkipSelfManagedAddons)})
}

// createdWith returns a setting that a run has noted when it created the cluster.
func (s ClusterState) createdWith(name string) (value, noted bool) {
	for _, word := range strings.Fields(s.Tags[CreationTag]) {
		if text, ok := strings.CutPrefix(word, name+"="); ok {
			value, err := strconv.ParseBool(text)
			return value, err == nil
		}
	}
	return false, false
}

// WithoutSelfManagedAddons reports whether it is known that EKS has installed neither VPC CNI nor CoreDNS nor kube-proxy.
func (s ClusterState) WithoutSelfManagedAddons() bool {
	with, noted := s.createdWith(noteSelfManaged)
	return noted && !with
}

// diffCreation compares the settings that EKS takes at the creation only.
func (e *Cluster) diffCreation(have *ClusterState, d *plan.Diff) {
	if have.ID == "" {
		if e.SkipSelfManagedAddons {
			d.Set(fieldSelfManaged, "", false)
		}
		if !e.creatorIsAdmin() {
			d.Set(fieldCreatorAdmin, "", false)
		}
		return
	}
	if with, noted := have.createdWith(noteSelfManaged); noted && with == e.SkipSelfManagedAddons {
		d.Fixed(fieldSelfManaged, with, !with)
		d.Advise(
			fmt.Sprintf(
				"EKS installs the VPC CNI, CoreDNS and kube-proxy only when it creates a cluster: set %s: %v again; spec.addons and vpcCni.disable change what is installed",
				fieldSelfManaged,
				with,
			),
		)
	}
	if with, noted := have.createdWith(noteCreatorAdmin); noted && with != e.creatorIsAdmin() {
		d.Fixed(fieldCreatorAdmin, with, !with)
		d.Advise(
			fmt.Sprintf(
				"EKS makes the creator an administrator only when it creates a cluster: set %v again; spec.accessEntries adds administrators, and aws eks delete-access-entry removes the creator",
				with,
			),
		)
	}
}
