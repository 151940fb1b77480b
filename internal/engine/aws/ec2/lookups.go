package ec2

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Named is the state of something that is known by its name.
type Named string

// CloudID implements graph.State.
func (n Named) CloudID() string { return string(n) }

// KeyPairByName looks up a key pair. All names in use are asked for at once.
func KeyPairByName(name string, all []string) graph.Lookup[Named] {
	return func(ctx context.Context, c *cloud.Clients) (*Named, error) {
		out, err := cloud.Remember(ctx, c, "key pairs", func(ctx context.Context) (*ec2.DescribeKeyPairsOutput, error) {
			return c.EC2.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{Filters: []types.Filter{cloud.Filter("key-name", all...)}})
		})
		if err != nil {
			return nil, err
		}
		for _, k := range out.KeyPairs {
			if aws.ToString(k.KeyName) == name {
				n := Named(name)
				return &n, nil
			}
		}
		return nil, fmt.Errorf(`key pair %q does not exist in %s: make it (aws ec2 create-key-pair), name another one in sshKeyName, or set sshKeyName: "" for none`, name, c.Region)
	}
}

// PlacementGroupByName looks up a placement group. Where nobody may ask, or none
// answers (emulators), it is taken to exist.
func PlacementGroupByName(name string) graph.Lookup[Named] {
	return func(ctx context.Context, c *cloud.Clients) (*Named, error) {
		n := Named(name)
		out, err := cloud.Remember(ctx, c, "placement group "+name, func(ctx context.Context) (*ec2.DescribePlacementGroupsOutput, error) {
			return c.EC2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{cloud.Filter("group-name", name)}})
		})
		switch {
		case err != nil && ctx.Err() == nil:
			return &n, nil // AWS says the rest when it launches machines
		case err != nil:
			return nil, err
		}
		for _, g := range out.PlacementGroups {
			if g.State == types.PlacementGroupStateAvailable || g.State == types.PlacementGroupStatePending {
				return &n, nil
			}
		}
		return nil, fmt.Errorf("placement group %q does not exist in %s: make it (aws ec2 create-placement-group), or name another one", name, c.Region)
	}
}

// ProfileByName looks up an instance profile. Where IAM may not be read the
// profile is taken to exist.
func ProfileByName(name string) graph.Lookup[Named] {
	return func(ctx context.Context, c *cloud.Clients) (*Named, error) {
		n := Named(name)
		_, err := InstanceProfile(ctx, c, name)
		switch {
		case cloud.NotFound(err):
			return nil, fmt.Errorf("instance profile %s does not exist: `clusterawsadm bootstrap iam create-cloudformation-stack` makes Cluster API's own", name)
		case cloud.Denied(err):
			return &n, nil
		}
		return &n, err
	}
}

// InstanceProfile looks up an instance profile with its role.
func InstanceProfile(ctx context.Context, c *cloud.Clients, name string) (*iam.GetInstanceProfileOutput, error) {
	return cloud.Remember(ctx, c, "instance profile "+name, func(ctx context.Context) (*iam.GetInstanceProfileOutput, error) {
		return c.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	})
}

// RoleOfProfile returns the ARN of the role of an instance profile; "" where
// there is none, or IAM may not be read.
func RoleOfProfile(ctx context.Context, c *cloud.Clients, name string) (string, error) {
	out, err := InstanceProfile(ctx, c, name)
	switch {
	case cloud.NotFound(err) || cloud.Denied(err):
		return "", nil
	case err != nil:
		return "", err
	}
	for _, r := range out.InstanceProfile.Roles {
		return aws.ToString(r.Arn), nil
	}
	return "", nil
}

// InstanceType is what a cluster has to know of a type of machine.
type InstanceType struct {
	Architecture string   // x86_64 or arm64
	Zones        []string // that offer it; nil when that is not known
	VCPUs        int32
}

// InstanceTypes looks up types of machines, and the zones that offer them.
func InstanceTypes(ctx context.Context, c *cloud.Clients, names []string) (map[string]InstanceType, error) {
	found := map[string]InstanceType{}
	in := &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{cloud.Filter("instance-type", names...)}} // a filter, since an unknown name fails the whole call
	for p := ec2.NewDescribeInstanceTypesPaginator(c.EC2, in); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if cloud.Denied(err) {
			return assumed(names), nil
		}
		if err != nil {
			return nil, err
		}
		for _, t := range page.InstanceTypes {
			found[string(t.InstanceType)] = instanceType(t)
		}
	}
	zones := map[string][]string{}
	offered := &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{cloud.Filter("instance-type", names...)}}
	for p := ec2.NewDescribeInstanceTypeOfferingsPaginator(c.EC2, offered); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if cloud.Denied(err) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		for _, o := range page.InstanceTypeOfferings {
			zones[string(o.InstanceType)] = append(zones[string(o.InstanceType)], aws.ToString(o.Location))
		}
	}
	for _, name := range names {
		t := found[name]
		t.Zones = append([]string{}, slices.Sorted(slices.Values(zones[name]))...)
		found[name] = t
	}
	return found, nil
}

func instanceType(t types.InstanceTypeInfo) InstanceType {
	var out InstanceType
	if t.ProcessorInfo != nil {
		for _, a := range t.ProcessorInfo.SupportedArchitectures {
			if out.Architecture == "" && (a == types.ArchitectureTypeX8664 || a == types.ArchitectureTypeArm64) {
				out.Architecture = string(a)
			}
		}
	}
	if t.VCpuInfo != nil && t.VCpuInfo.DefaultVCpus != nil {
		out.VCPUs = *t.VCpuInfo.DefaultVCpus
	}
	return out
}

// assumed is what CAPA assumes where types may not be read.
func assumed(names []string) map[string]InstanceType {
	out := map[string]InstanceType{}
	for _, n := range names {
		out[n] = InstanceType{Architecture: string(types.ArchitectureTypeX8664)}
	}
	return out
}

// Zones lists the Availability Zones of the region that do not require an opt-in
// (DescribeAvailabilityZones, filter opt-in-status), sorted by name.
func Zones(ctx context.Context, c *cloud.Clients) ([]string, error) {
	out, err := c.EC2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{
		Filters: []types.Filter{cloud.Filter("state", "available"), cloud.Filter("opt-in-status", "opt-in-not-required")},
	})
	if err != nil {
		return nil, err
	}
	zones := map[string]bool{}
	for _, z := range out.AvailabilityZones {
		zones[aws.ToString(z.ZoneName)] = true
	}
	return slices.Sorted(maps.Keys(zones)), nil
}

// SubnetByFilters looks up the first subnet that EC2's filters match, in the
// zone if one is given (CAPA: subnet.filters). A subnet of the cluster's VPC
// comes first.
func SubnetByFilters(vpc *graph.Ref[VPCState], filters map[string][]string, zone string) graph.Lookup[SubnetState] {
	return func(ctx context.Context, c *cloud.Clients) (*SubnetState, error) {
		question, ec2Filters := filterList(filters)
		all, err := DescribeSubnets(ctx, c, "subnets "+question, ec2Filters)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(slices.Clone(all), func(s SubnetState) bool { return zone != "" && s.Zone != zone })
		slices.SortStableFunc(all, func(a, b SubnetState) int {
			return cmp.Or(identity.TrueFirst(a.VPC == vpc.CloudID(), b.VPC == vpc.CloudID()), cmp.Compare(a.ID, b.ID))
		})
		if len(all) == 0 {
			return nil, fmt.Errorf("no subnet matches %s%s", question, text.Prefixed(" in ", zone))
		}
		return &all[0], nil
	}
}

// SecurityGroupByFilters looks up the security group that EC2's filters match
// (CAPA: additionalSecurityGroups[].filters).
func SecurityGroupByFilters(vpc *graph.Ref[VPCState], filters map[string][]string) graph.Lookup[SecurityGroupState] {
	return func(ctx context.Context, c *cloud.Clients) (*SecurityGroupState, error) {
		question, ec2Filters := filterList(filters)
		out, err := cloud.Remember(ctx, c, "security groups "+question, func(ctx context.Context) (*ec2.DescribeSecurityGroupsOutput, error) {
			return c.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: ec2Filters})
		})
		if err != nil {
			return nil, err
		}
		for _, g := range out.SecurityGroups {
			if aws.ToString(g.VpcId) == vpc.CloudID() {
				return &SecurityGroupState{Object: identity.Object{ID: aws.ToString(g.GroupId), Tags: cloud.FromEC2(g.Tags)}, VPC: aws.ToString(g.VpcId), Name: aws.ToString(g.GroupName)}, nil
			}
		}
		return nil, fmt.Errorf("no security group of VPC %s matches %s", vpc.CloudID(), question)
	}
}

func filterList(filters map[string][]string) (text string, out []types.Filter) {
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		out = append(out, cloud.Filter(name, filters[name]...))
		text += fmt.Sprintf(" %s=%s", name, strings.Join(filters[name], ","))
	}
	return strings.TrimSpace(text), out
}

// NATAddresses returns the public addresses of the NAT gateways that stand in
// subnets which are somebody else's.
func NATAddresses(ctx context.Context, c *cloud.Clients, subnets []string) (out []string, err error) {
	in := &ec2.DescribeNatGatewaysInput{Filter: []types.Filter{cloud.Filter("subnet-id", subnets...), cloud.Filter("state", "pending", "available")}}
	for p := ec2.NewDescribeNatGatewaysPaginator(c.EC2, in); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range page.NatGateways {
			if ip := natGatewaySeen(n).PublicIP; ip != "" {
				out = append(out, ip)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// keyPairKind declares key pairs, which are existing resources always.
func keyPairKind() *kind.Any {
	return &kind.Any{Name: "key-pair", Area: kind.AreaPrerequisites, Looks: []string{"ec2:DescribeKeyPairs"}}
}

// placementGroupKind declares placement groups, which are existing resources always.
func placementGroupKind() *kind.Any {
	return &kind.Any{Name: "placement-group", Area: kind.AreaPrerequisites, Looks: []string{"ec2:DescribePlacementGroups"}}
}

// instanceProfileKind declares instance profiles, which are existing resources
// always.
func instanceProfileKind() *kind.Any {
	return &kind.Any{Name: "instance-profile", Area: kind.AreaPrerequisites, Looks: []string{"iam:GetInstanceProfile"}}
}
