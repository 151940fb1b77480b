package topology

import (
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// bucket adds the bucket from which machines load their Ignition configuration
// (facts B.12). CAPA takes the names of instance profiles as names of roles.
func (b *builder) bucket() {
	spec := b.spec.S3Bucket
	if spec == nil {
		return
	}
	readers := map[string]s3.Reader{}
	if spec.PresignedURLDuration == nil {
		if spec.ControlPlaneIAMInstanceProfile != "" {
			readers["control-plane"] = s3.Reader{Role: spec.ControlPlaneIAMInstanceProfile, Prefixes: []string{"control-plane/*"}}
		}
		for _, role := range spec.NodesIAMInstanceProfiles {
			readers[role] = s3.Reader{Role: role, Prefixes: []string{"node/*", "machine-pool/*"}}
		}
		for i, r := range spec.AdditionalIAMRoles {
			readers[fmt.Sprintf("additional-%d", i)] = s3.Reader{Role: r.Name, Prefixes: []string{r.Prefix}}
		}
	}
	tags := b.tags("bucket", spec.Name, roleNode)
	b.store = graph.Add(b.Graph, "bucket", &s3.Bucket{
		Name: spec.Name, Partition: partition(b.spec, b.m.Region), Account: b.inv.Account, Readers: readers,
		Tags: tags, BestEffort: spec.BestEffortDeleteObjects != nil && *spec.BestEffortDeleteObjects,
	}, b.infra("spec.s3Bucket"))
}

// Values of the role tag of machines.
const (
	roleControlPlane = "control-plane"
	roleNode         = "node"
)

// machineTags are the tags of a machine that go by what it is, not by which.
func (b *builder) machineTags(role string, additional map[string]string) cloud.Tags {
	return cloud.Tags(b.spec.AdditionalTags).With(additional).With(b.cloudProvider(cloud.Owned)).With(cloud.Tags{
		cloud.ClusterTagPrefix + b.m.Name: cloud.Owned, cloud.RoleTag: role,
	})
}
