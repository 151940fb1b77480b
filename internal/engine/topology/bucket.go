package topology

import (
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// addBucket adds the bucket from which machines load their Ignition configuration. As in
// CAPA, its policy uses the names of instance profiles as names of roles.
func addBucket(g *graph.Graph, in inputs) *graph.Ref[s3.BucketState] {
	spec := in.spec.S3Bucket
	if spec == nil {
		return nil
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
	tags := in.tags("bucket", "", RoleNode)
	delete(tags, "Name") // CAPA sets none
	return graph.Add(g, "bucket", &s3.Bucket{
		Name: spec.Name, Partition: in.m.Partition(), Account: in.inv.Account, Readers: readers,
		Tags: tags, BestEffort: spec.BestEffortDeleteObjects != nil && *spec.BestEffortDeleteObjects,
	}, in.infra("spec.s3Bucket"))
}
