package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// tenancyIn returns the tenancy of machines in existing subnets that set none: that of the VPC ("Change the tenancy of a VPC", EC2 user guide).
func tenancyIn(ctx context.Context, c *cloud.Clients, subnets ...*graph.Ref[SubnetState]) (types.Tenancy, error) {
	for _, s := range subnets {
		vpc := vpcOf(s)
		if vpc == "" || s.Desired() != nil { // the VPCs of runs have the tenancy default
			continue
		}
		all, err := VPCs(ctx, c)
		if at := slices.IndexFunc(all, func(v types.Vpc) bool { return aws.ToString(v.VpcId) == vpc }); at >= 0 {
			return all[at].InstanceTenancy, err
		}
		return "", err
	}
	return "", nil
}

// tenancy returns the tenancy that the machine has.
func (i *Instance) tenancy(ctx context.Context, c *cloud.Clients) (types.Tenancy, error) {
	if own := types.Tenancy(i.Spec.Tenancy); own != "" && own != types.TenancyDefault {
		return own, nil
	}
	return tenancyIn(ctx, c, i.Subnet)
}

// checkTenancy refuses a machine that cannot be a Dedicated Instance in a VPC whose machines are: a machine with the tenancy default is one there,
// too.
func (i *Instance) checkTenancy(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if !neverDedicated(i.Spec.InstanceType) || i.Spec.Tenancy == string(types.TenancyHost) {
		return "", nil
	}
	tenancy, err := tenancyIn(ctx, c, i.Subnet)
	if tenancy != types.TenancyDedicated || err != nil {
		return "", err
	}
	return notDedicated(i.Spec.InstanceType, vpcOf(i.Subnet)), nil
}

// CheckTenancy returns the reason why a group cannot launch machines in existing subnets, or "". names are their types; none: that of the template.
func (t *LaunchTemplate) CheckTenancy(
	ctx context.Context, c *cloud.Clients, names []string, subnets []*graph.Ref[SubnetState],
) (refusal string, err error) {
	if len(names) == 0 && t != nil {
		names = []string{t.machine().Spec.InstanceType}
	}
	at := slices.IndexFunc(names, neverDedicated)
	if at < 0 {
		return "", nil
	}
	tenancy, err := tenancyIn(ctx, c, subnets...)
	if tenancy != types.TenancyDedicated || err != nil {
		return "", err
	}
	return notDedicated(names[at], vpcOf(subnets[0])), nil
}

// neverDedicated reports whether an instance type is of a family that cannot be Dedicated Instances ("Supported purchasing options for T
// instances" in "Burstable performance instances", EC2 user guide).
func neverDedicated(name string) bool {
	family, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"t2", "t3a", "t4g"}, family)
}

func notDedicated(name, vpc string) string {
	family, _, _ := strings.Cut(name, ".")
	return fmt.Sprintf(
		"instanceType %s: the VPC %s has the tenancy dedicated, and %s instances cannot be Dedicated Instances: use another type, such as t3.large or m6i.large",
		name, vpc, family,
	)
}
