package permission

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// actions lists the actions of all kinds that are in one of the statements.
func actions(of ...kind.Statement) []string {
	return collect(of, func(k *kind.Kind) []string { return k.Actions })
}

// looks lists the actions of the same kinds that only read.
func looks(of ...kind.Statement) []string {
	return collect(of, func(k *kind.Kind) []string { return k.ReadActions })
}

func collect(of []kind.Statement, get func(*kind.Kind) []string) (out []string) {
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

// look allows the calls that only read and that IAM cannot limit to a resource:
// those of the kinds, and those that describe the account.
func (s Scope) look() Statement {
	// every deletion searches for all kinds
	out := looks("", kind.Network, kind.Machines, kind.Pools, kind.LaunchTemplates, kind.LoadBalancers, kind.Parameters, kind.Secrets, kind.Buckets)
	out = append(out,
		"ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations", "ec2:DescribeHosts", "ec2:DescribeNetworkAcls",
		"ec2:DescribeInstanceAttribute", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
		"ec2:DescribeRegions", "ec2:DescribeTags", "ec2:GetConsoleOutput", "servicequotas:GetServiceQuota",
	)
	if s.Kind == SelfManaged {
		out = append(out, searchesForEKS()...)
	} else {
		out = append(out, looksAtEKS()...)
	}
	if s.Kind != EKS {
		out = append(out, "elasticloadbalancing:DescribeAccountLimits") // servicequotas:GetServiceQuota depends on it
	}
	if s.Karpenter != "" {
		out = append(out, countsRules)
	}
	return allow("Describe", anywhere(), sorted(out)...)
}

// countsRules is the action that counts the rules of EventBridge. IAM does not limit it to a resource, as the other actions on rules
// ("Actions, resources, and condition keys for Amazon EventBridge", Service Authorization Reference).
const countsRules = "events:ListRules"

// keys are the actions on a customer managed key that launching a machine with an
// encrypted volume takes ("Amazon EBS encryption", EC2 user guide).
func keys() []string {
	return []string{
		"kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo",
	}
}
