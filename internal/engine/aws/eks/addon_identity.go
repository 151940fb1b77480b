package eks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// AddonIdentity gives the pods of an add-on that have a service account the permissions of an IAM role, by a pod identity
// association that the add-on owns ("IAM roles for Amazon EKS add-ons", EKS user guide).
type AddonIdentity struct {
	ServiceAccount string
	Role           *graph.Ref[iam.RoleState]
}

// identityLine is an association as a plan shows and compares it: "aws-node: arn:aws:iam::123456789012:role/cni".
func identityLine(serviceAccount, role string) string { return serviceAccount + ": " + role }

// identityLines are the associations that the manifest sets.
func (a *Addon) identityLines() (lines []string) {
	for _, x := range a.Identities {
		lines = append(lines, identityLine(x.ServiceAccount, x.Role.CloudID()))
	}
	slices.Sort(lines)
	return lines
}

// readIdentities reads the associations that the add-on has, if the manifest sets them.
func (a *Addon) readIdentities(ctx context.Context, c *cloud.Clients, have *AddonState) error {
	if !a.SetsIdentities {
		return nil
	}
	owned, err := AddonIdentities(ctx, c, *have)
	for _, x := range owned {
		have.Identities = append(have.Identities, identityLine(x.ServiceAccount, x.RoleARN))
	}
	slices.Sort(have.Identities)
	return err
}

// identities returns the associations for CreateAddon and UpdateAddon. nil leaves those of the add-on unchanged; an empty
// list deletes them.
func (a *Addon) identities() []types.AddonPodIdentityAssociations {
	if !a.SetsIdentities {
		return nil
	}
	out := []types.AddonPodIdentityAssociations{}
	for _, x := range a.Identities {
		out = append(out, types.AddonPodIdentityAssociations{ServiceAccount: &x.ServiceAccount, RoleArn: aws.String(x.Role.CloudID())})
	}
	return out
}

// AddonIdentities reads the associations that an add-on owns.
func AddonIdentities(ctx context.Context, c *cloud.Clients, s AddonState) (all []PodIdentityState, err error) {
	for _, arn := range s.Associations {
		id := arn[strings.LastIndex(arn, "/")+1:]
		x, err := podIdentity(ctx, c, s.Cluster, id)
		if err != nil {
			return nil, err
		}
		if x != nil {
			all = append(all, *x)
		}
	}
	return all, nil
}

// checkIdentities refuses service accounts that an add-on does not have for pod identities, in a new or changed add-on.
func (a *Addon) checkIdentities(ctx context.Context, c *cloud.Clients, version string) (refusal string, err error) {
	if len(a.Identities) == 0 || version == "" {
		return "", nil
	}
	x, err := describeConfiguration(ctx, c, a.Name, version)
	if err != nil {
		if cloud.Denied(err) {
			err = nil
		}
		return "", err
	}
	for _, want := range a.Identities {
		switch {
		case len(x.accounts) == 0:
			return fmt.Sprintf("%s %s takes no pod identity associations: remove it from the annotation clusterawsadm/addon-pod-identities", a.Name, version), nil
		case !slices.Contains(x.accounts, want.ServiceAccount):
			return fmt.Sprintf(
				"%s %s takes no pod identity association for the service account %s: name %s",
				a.Name,
				version,
				want.ServiceAccount,
				strings.Join(x.accounts, " or "),
			), nil
		}
	}
	return "", nil
}

// identityAccounts lists the service accounts for which an add-on takes associations.
func identityAccounts(out *eks.DescribeAddonConfigurationOutput) (accounts []string) {
	for _, x := range out.PodIdentityConfiguration {
		accounts = append(accounts, aws.ToString(x.ServiceAccount))
	}
	return accounts
}
