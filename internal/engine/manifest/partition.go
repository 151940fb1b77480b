package manifest

import "strings"

// Partition returns the AWS partition of the cluster, the second part of its ARNs:
// spec.partition of AWSCluster or AWSManagedControlPlane, or else the partition of the
// region.
func (c *Cluster) Partition() string {
	if c.EKS != nil && c.EKS.ControlPlane.Spec.Partition != "" {
		return c.EKS.ControlPlane.Spec.Partition
	}
	if p := c.Infra.Spec.Partition; p != "" {
		return p
	}
	return PartitionOf(c.Region)
}

// PartitionOf returns the partition of a region, by the prefixes in the SDKs'
// partitions.json.
func PartitionOf(region string) string {
	for _, p := range []struct{ prefix, partition string }{
		{"cn-", "aws-cn"},
		{"us-gov-", "aws-us-gov"},
		{"us-iso-", "aws-iso"},
		{"us-isob-", "aws-iso-b"},
		{"eu-isoe-", "aws-iso-e"},
		{"us-isof-", "aws-iso-f"},
		{"eusc-", "aws-eusc"},
	} {
		if strings.HasPrefix(region, p.prefix) {
			return p.partition
		}
	}
	return "aws"
}
