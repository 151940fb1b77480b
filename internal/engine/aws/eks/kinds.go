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
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Kinds lists the kinds of this package. The cluster is first, because its name is needed
// to list its parts.
func Kinds() []*kind.Kind {
	return []*kind.Kind{
		clusterKind(),
		nodeGroupKind(),
		fargateProfileKind(),
		addonKind(),
		accessEntryKind(),
		podIdentityKind(),
		authenticationKind(),
		identityProviderKind(),
		oidcProviderKind(),
	}
}

// setTags sets tags on an EKS resource.
func setTags(ctx context.Context, c *cloud.Clients, arn string, tags cloud.Tags) error {
	_, err := c.EKS.TagResource(ctx, &eks.TagResourceInput{ResourceArn: &arn, Tags: tags})
	return err
}

// changeTags makes the changes of tags that d lists, and returns the EKS resource with its new tags.
func changeTags(ctx context.Context, c *cloud.Clients, have identity.Object, want cloud.Tags, d plan.Diff) (_ identity.Object, err error) {
	have.Tags, err = identity.ChangeTags(have.Tags, want, d, func() error { return setTags(ctx, c, have.ID, want) }, func(keys []string) error {
		_, err := c.EKS.UntagResource(ctx, &eks.UntagResourceInput{ResourceArn: &have.ID, TagKeys: keys})
		return err
	})
	return have, err
}

// idList joins IDs; it returns graph.Unknown if one of them is unknown.
func idList(ids []string) string {
	if slices.Contains(ids, plan.Unknown) {
		return plan.Unknown
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
