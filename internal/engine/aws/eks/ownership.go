package eks

import (
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ownedByName reports whether a part of the cluster has the tag of the cluster, or the one by
// which CAPA knows add-ons, access entries and Fargate profiles
// (infrav1.ClusterAWSCloudProviderTagKey).
func ownedByName(o identity.Object, c *cloud.Clients) bool {
	return o.IsOwned(c) || o.Tags[cloud.CloudProviderTagPrefix+c.Cluster] == cloud.Owned
}

// notOwned is the difference of a part that the manifest has and somebody else has made: a run
// neither changes nor deletes it.
func notOwned() (d plan.Diff) {
	d.Fixed("owner", "somebody else", "this cluster")
	d.Advise("it exists without the tags of the cluster: remove it from the manifest, or take it over with 'clusterawsadm cluster import NAME --adopt'")
	return d
}
