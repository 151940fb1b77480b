package eks

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Kinds lists the kinds of this package, one line each: the cluster comes before
// its parts, since it tells the name by which they are listed.
func Kinds() []*kind.Any {
	return []*kind.Any{
		clusterKind(),
		nodeGroupKind(),
		fargateProfileKind(),
		addonKind(),
		accessEntryKind(),
		identityProviderKind(),
		oidcProviderKind(),
	}
}

// setTags sets tags on a thing of EKS and returns its object as it is then.
func setTags(ctx context.Context, c *cloud.Clients, have identity.Object, tags cloud.Tags) (identity.Object, error) {
	have.Tags = have.Tags.With(tags)
	_, err := c.EKS.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &have.ID, Tags: tags})
	return have, err
}

// idList writes IDs down; it is unknown until all of them are there.
func idList(ids []string) string {
	if slices.Contains(ids, graph.Unknown) {
		return graph.Unknown
	}
	return sortedList(ids)
}

func sortedList(list []string) string { return strings.Join(slices.Sorted(slices.Values(list)), ",") }

func pairs(m map[string]string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return out
}

// retryable has a call repeated that EKS refuses since something is still on
// its way: a role that IAM has not told everybody of, a thing of the same
// name that goes, another one of which there may be only one at a time, an
// update of the cluster.
func retryable(err error) error {
	busy := cloud.Is(err, "InvalidRequestException") && strings.Contains(strings.ToLower(err.Error()), "active")
	role := cloud.Is(err, "InvalidParameterException", "InvalidRequestException") && strings.Contains(strings.ToLower(err.Error()), "role")
	if role {
		return graph.NotShown(err)
	}
	if busy || cloud.Is(err, "ResourceInUseException") {
		return graph.NotYet(err)
	}
	return err
}
