package eks

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Check implements graph.Checked: EKS refuses keys that it cannot use, versions of Kubernetes that it
// does not offer, and upgrades for which it has an insight with an error. Without the permission to read
// versions or insights, they are not checked.
func (k *Cluster) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if refusal, err = kms.Refusal(ctx, c, k.Key); refusal != "" || err != nil {
		return text.Prefixed("encryptionConfig.provider: ", refusal), err
	}
	if k.Version == "" {
		return "", nil
	}
	for _, check := range []func(context.Context, *cloud.Clients) (string, error){k.checkVersion, k.checkInsights} {
		if refusal, err = check(ctx, c); refusal != "" || err != nil && !cloud.Denied(err) {
			return refusal, err
		}
	}
	return "", nil
}

// Addresses implements ec2.AddressUser: "Subnet requirements for clusters" and "Update existing cluster to new
// Kubernetes version" in the EKS user guide.
func (k *Cluster) Addresses(s plan.Step) ec2.AddressUse {
	const creates, upgrades = 6, 5
	switch {
	case s.Action == plan.Create:
		return ec2.AddressUse{Subnets: k.Subnets, Each: creates}
	case s.Action == plan.Update && s.Diff.Has("version"):
		return ec2.AddressUse{Subnets: k.Subnets, Each: upgrades}
	}
	return ec2.AddressUse{}
}

func (k *Cluster) checkVersion(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	offered, err := Versions(ctx, c)
	if err != nil || len(offered) == 0 {
		return "", err
	}
	var names []string
	for _, v := range offered {
		if v.Version == k.Version {
			return "", nil
		}
		names = append(names, "v"+v.Version)
	}
	return fmt.Sprintf("EKS does not offer Kubernetes %s: use one of %s", k.Version, strings.Join(names, ", ")), nil
}

func (k *Cluster) checkInsights(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	have, err := ClusterByName(ctx, c, k.Name)
	if have == nil || err != nil || k.ForceUpgrade {
		return "", err
	}
	insights, err := UpgradeInsights(ctx, c, k.Name, VersionsUpTo(have.Version, k.Version))
	var errors []string
	for _, i := range insights {
		if i.Status == string(types.InsightStatusValueError) {
			errors = append(errors, describe(i))
		}
	}
	if len(errors) == 0 {
		return "", err
	}
	return fmt.Sprintf(
		"EKS refuses the upgrade because of its insights: %s. EKS looks again once a day; the annotation clusterawsadm/force-update: \"true\" of the AWSManagedControlPlane upgrades all the same",
		strings.Join(errors, "; "),
	), nil
}

// VersionsUpTo lists the versions of an upgrade: after from, up to to.
func VersionsUpTo(from, to string) (versions []string) {
	for v := minor(from) + 1; v <= minor(to); v++ {
		versions = append(versions, fmt.Sprintf("1.%d", v))
	}
	return versions
}
