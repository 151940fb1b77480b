package permission

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// actions lists the actions of all kinds that are in one of the statements.
func actions(of ...kind.Statement) []string {
	return collect(of, func(k *kind.Any) []string { return k.Actions })
}

// looks lists the actions of the same kinds that only look.
func looks(of ...kind.Statement) []string {
	return collect(of, func(k *kind.Any) []string { return k.Looks })
}

func collect(of []kind.Statement, get func(*kind.Any) []string) (out []string) {
	for _, k := range aws.Kinds() {
		if slices.Contains(of, k.Statement) {
			out = append(out, get(k)...)
		}
	}
	return sorted(out)
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// look allows the questions that AWS cannot have limited to a resource: those of
// the kinds, and what else has to be known of an account.
func look() Statement {
	// what is left of any kind is looked for in every deletion
	kinds := looks("", kind.Network, kind.Machines, kind.Pools, kind.LaunchTemplates, kind.LoadBalancers, kind.Parameters, kind.Secrets, kind.Buckets)
	return allow("Look", anywhere(), sorted(append(kinds,
		"ec2:DescribeAvailabilityZones", "ec2:DescribeInstanceAttribute", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
		"ec2:DescribeKeyPairs", "ec2:DescribePlacementGroups", "ec2:DescribeRegions", "ec2:DescribeTags", "ec2:GetConsoleOutput",
		"iam:GetInstanceProfile", "servicequotas:GetServiceQuota",
	))...)
}

// machines are what is launched, and what is deleted with it: volumes of claims,
// and the load balancers of Services, which for others than EKS are among the
// cluster's own.
func machines(k Kind) []string {
	out := actions(kind.Machines)
	if k == EKS {
		out = append(out, "elasticloadbalancing:DeleteLoadBalancer", "elasticloadbalancing:DeleteTargetGroup")
	}
	return out
}

// keys are what EC2 does with a customer's key on behalf of who launches a
// machine with an encrypted volume ("Amazon EBS encryption", EC2 user guide).
func keys() []string {
	return []string{
		"kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo",
	}
}
