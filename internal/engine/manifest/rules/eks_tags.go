package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
)

// checkTagCase rejects tags of which IAM stores one: its keys are not case-sensitive ("Tags for AWS
// Identity and Access Management resources", IAM user guide). Roles and the OIDC provider of a
// cluster have the tags of the cluster, and a Name.
func (c *checks) checkTagCase(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) {
	if !c.cluster.EKS.EnableIAM && !plane.AssociateOIDCProvider {
		return
	}
	const path = "spec.additionalTags"
	first := map[string]string{"name": "Name"}
	for _, key := range slices.Sorted(maps.Keys(plane.AdditionalTags)) {
		other, twice := first[strings.ToLower(key)]
		switch {
		case !twice:
			first[strings.ToLower(key)] = key
		case other == key: // it replaces the name
		case other == "Name" && plane.AdditionalTags["Name"] == "":
			c.fail(c.infra.Problem(path+"."+key, "IAM has one tag for names that differ by case, and the program gives each resource a tag Name", "choose another name"))
		default:
			c.fail(
				c.infra.Problem(
					path+"."+key,
					fmt.Sprintf("the same tag as %s (line %d): IAM has one tag for names that differ by case", other, c.infra.Position(path+"."+other).Line),
					"remove one of them",
				),
			)
		}
	}
}
