package eks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Check implements graph.Checked: EKS refuses keys that it cannot use, versions of Kubernetes that it
// does not offer, and upgrades for which it has an insight with an error. Without the permission to read
// versions or insights, they are not checked. EKS makes a grant for a key with the credentials of the caller (kms:CreateGrant), which the
// policies of AWS managed keys permit to no principal of the account ("AWS managed keys", KMS developer guide;
// https://github.com/kubernetes-sigs/cluster-api-provider-aws/issues/2432).
func (k *Cluster) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if strings.Contains(k.Key, ":alias/aws/") {
		return "encryptionConfig.provider: " + k.Key + " is a key that AWS manages, with which nobody may create the grant that EKS needs: name a key of yours", nil
	}
	if refusal, err = kms.Refusal(ctx, c, k.Key); refusal != "" || err != nil {
		return text.Prefixed("encryptionConfig.provider: ", refusal), err
	}
	if refusal = k.checkPublicBlocks(); refusal != "" {
		return refusal, nil
	}
	if refusal, err = k.checkZones(ctx, c); refusal != "" || err != nil {
		return refusal, err
	}
	if refusal, err = k.checkAutoMode(ctx, c); refusal != "" || err != nil {
		return refusal, err
	}
	if k.Version == "" {
		return "", nil
	}
	for _, check := range []func(context.Context, *cloud.Clients) (string, error){k.CheckVersion, k.checkInsights} {
		if refusal, err = check(ctx, c); refusal != "" || err != nil && !cloud.Denied(err) {
			return refusal, err
		}
	}
	return "", nil
}

// Doubts implements graph.Doubted: nodes do not register in a VPC without DNS ("View Amazon EKS networking requirements for VPC and subnets",
// EKS user guide). The options of DHCP may name other DNS servers.
func (k *Cluster) Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error) {
	vpc, off, err := ec2.WithoutDNS(ctx, c, k.Subnets)
	if len(off) == 0 || err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf(
		"the VPC %s has %s off, which EKS requires: nodes do not register: turn it on (aws ec2 modify-vpc-attribute)",
		vpc,
		strings.Join(off, " and "),
	)}, nil
}

// checkPublicBlocks counts the blocks of the manifest with the addresses of the NAT gateways, of which some may not exist yet.
func (k *Cluster) checkPublicBlocks() string {
	n := 0
	for _, block := range k.PublicBlocks() {
		if block != plan.Unknown {
			n++
		}
	}
	for _, a := range k.NATAddresses {
		if _, known := a.Found(); !known {
			n++
		}
	}
	if n <= k.MostPublicBlocks {
		return ""
	}
	return fmt.Sprintf(
		"with the addresses of the NAT gateways, %d blocks may use the public endpoint, and EKS takes %d: combine some of endpointAccess.publicCIDRs",
		n,
		k.MostPublicBlocks,
	)
}

// checkZones looks at the zones of the subnets of a new cluster: at least two, and none of those without control planes ("Subnet
// requirements for clusters", EKS user guide).
func (k *Cluster) checkZones(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if len(k.Zones) > 0 {
		return "", nil
	}
	zones := map[string]bool{}
	for _, s := range k.Subnets {
		if state, ok := s.Found(); ok {
			zones[state.Zone] = true
		} else if desired, ok := s.Desired().(*ec2.Subnet); ok {
			zones[desired.Zone] = true
		}
	}
	const least = 2
	if len(zones) < least {
		if len(zones) == 0 {
			return "EKS needs subnets in at least two availability zones, and the cluster has none: list them in spec.network.subnets", nil
		}
		return "EKS needs subnets in at least two availability zones, and these are in " + strings.Join(slices.Sorted(maps.Keys(zones)), ", "), nil
	}
	if !slices.Contains([]string{"us-east-1", "us-west-1", "ca-central-1"}, c.Region) { // those of ZonesWithout
		return "", nil
	}
	usable, err := cloud.Remember(ctx, c, "zones with control planes of EKS", func(ctx context.Context) ([]string, error) {
		return ec2.Zones(ctx, c, ZonesWithout()...)
	})
	for zone := range zones {
		if err == nil && !slices.Contains(usable, zone) {
			return fmt.Sprintf("EKS places no control plane in the zone %s: use subnets in other zones, such as %s", zone, strings.Join(usable, ", ")), nil
		}
	}
	return "", err
}

// Addresses implements ec2.AddressUser: "Subnet requirements for clusters" and "Update existing cluster to new
// Kubernetes version" in the EKS user guide.
func (k *Cluster) Addresses(s plan.Step, _ graph.State) ec2.AddressUse {
	const creates, upgrades = 6, 5
	switch {
	case s.Action == plan.Create:
		return ec2.AddressUse{Subnets: k.Subnets, Each: creates}
	case s.Action == plan.Update && s.Diff.Has("version"):
		return ec2.AddressUse{Subnets: k.Subnets, Each: upgrades}
	}
	return ec2.AddressUse{}
}

// offered reports whether EKS offers the version of Kubernetes. Without the permission to ask it is taken to be offered.
func (k *Cluster) offered(ctx context.Context, c *cloud.Clients) (bool, error) {
	all, err := Versions(ctx, c)
	return len(all) == 0 || slices.ContainsFunc(all, func(v VersionInfo) bool { return v.Version == k.Version }), err
}

// CheckVersion refuses a version of Kubernetes that EKS does not offer.
func (k *Cluster) CheckVersion(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	offered, err := Versions(ctx, c)
	if err != nil || len(offered) == 0 {
		return "", err
	}
	var names []string
	for _, v := range offered {
		if v.Version == k.Version {
			return k.checkSupport(ctx, c, v)
		}
		names = append(names, "v"+v.Version)
	}
	return fmt.Sprintf("version: EKS does not offer Kubernetes %s: use one of %s", k.Version, strings.Join(names, ", ")), nil
}

// checkSupport refuses the upgrade policy standard for a version whose standard support has ended ("Disable EKS extended
// support", EKS user guide).
func (k *Cluster) checkSupport(ctx context.Context, c *cloud.Clients, v VersionInfo) (refusal string, err error) {
	if k.Support != string(types.SupportTypeStandard) || v.Status != string(types.VersionStatusExtendedSupport) {
		return "", nil
	}
	have, err := ClusterByName(ctx, c, k.Name)
	if err != nil || have != nil && (have.Support == "" || have.Support == k.Support) {
		return "", err
	}
	return fmt.Sprintf(
		"the upgrade policy standard needs a version in standard support, and that of Kubernetes %s has ended: set upgradePolicy: extended, or upgrade",
		k.Version,
	), nil
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
