package iam

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/podrole"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// inlinePolicy returns the inline policy of a role that has the name of the role, as canonical JSON; "" if there is none.
func inlinePolicy(ctx context.Context, c *cloud.Clients, role string) (string, error) {
	return cloud.Remember(ctx, c, "inline policy of role "+role, func(ctx context.Context) (string, error) {
		out, err := c.IAM.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &role, PolicyName: &role})
		if err != nil {
			return "", cloud.IgnoreNotFound(err)
		}
		document, err := url.QueryUnescape(aws.ToString(out.PolicyDocument)) // RFC 3986, as of the trust policy
		return text.CanonicalJSON(document), err
	})
}

// inlineNames lists the inline policies of a role.
func inlineNames(ctx context.Context, c *cloud.Clients, role string) ([]string, error) {
	p := iam.NewListRolePoliciesPaginator(c.IAM, &iam.ListRolePoliciesInput{RoleName: &role})
	return cloud.Pages(ctx, p, func(o *iam.ListRolePoliciesOutput) []string { return o.PolicyNames })
}

// deleteInline deletes the inline policies of a role.
func deleteInline(ctx context.Context, c *cloud.Clients, role string) error {
	names, err := inlineNames(ctx, c, role)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := c.IAM.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &role, PolicyName: &name}); cloud.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// leaveProfiles removes a role from instance profiles, and deletes those that a controller in the cluster has made for it, as Karpenter
// does for the role of an EC2NodeClass: they have the same cloud provider tag.
func leaveProfiles(ctx context.Context, c *cloud.Clients, role RoleState) error {
	p := iam.NewListInstanceProfilesForRolePaginator(c.IAM, &iam.ListInstanceProfilesForRoleInput{RoleName: &role.Name})
	names, err := cloud.Pages(ctx, p, func(o *iam.ListInstanceProfilesForRoleOutput) (names []string) {
		for _, x := range o.InstanceProfiles {
			names = append(names, aws.ToString(x.InstanceProfileName))
		}
		return names
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		has, err := c.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name}) // a listing has no tags
		if err != nil {
			return err
		}
		_, err = c.IAM.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: &role.Name})
		if cloud.IgnoreNotFound(err) != nil {
			return err
		}
		if !slices.ContainsFunc(has.InstanceProfile.Tags, func(t types.Tag) bool { return role.hasClusterTag(t) }) {
			continue
		}
		if _, err := c.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name}); cloud.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// hasClusterTag reports whether a tag is the cloud provider tag of the cluster that owns the role.
func (s RoleState) hasClusterTag(t types.Tag) bool {
	key := aws.ToString(t.Key)
	return strings.HasPrefix(key, cloud.CloudProviderTagPrefix) && aws.ToString(t.Value) == cloud.Owned && s.Tags[key] == cloud.Owned
}

// KarpenterClusters lists the names of the EKS clusters for whose Karpenter a run has made roles: those of the cluster.
func KarpenterClusters(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	roles, err := ownedRoles(ctx, c, kind.Owner{})
	for _, r := range roles {
		_, rest, _ := strings.Cut(r.ID, ":role"+podrole.Root+c.Region+"/")
		if cluster, _, is := strings.Cut(rest, "/"); is && podrole.IsKarpenter(r.ID, cluster, c.Region) {
			names = append(names, cluster)
		}
	}
	return names, err
}
