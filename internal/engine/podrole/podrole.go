// Package podrole names the IAM roles that a run creates for the pods of an EKS cluster. The manifest side uses the
// names to create roles, and the AWS side to find them.
package podrole

import (
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// Root is the beginning of the path of these roles, in all regions.
const Root = "/clusterawsadm/"

// The purposes of the roles for Karpenter: that of its controller, and that of the nodes that it launches.
const (
	Karpenter     = "karpenter"
	KarpenterNode = "karpenter-node"
)

// longestName is the number of characters that IAM allows in the name of a role.
const longestName = 64

// Path is the path of the roles of a cluster. It contains the region, because the names of roles are unique in an account,
// and clusters in other regions may have the same name.
func Path(cluster, region string) string { return Root + region + "/" + cluster + "/" }

// Name is the name of a role for a purpose.
func Name(cluster, region, purpose string) string {
	return text.Shortened(cluster+"-"+region+"-"+purpose, longestName)
}

// IsKarpenter reports whether an ARN is that of the role for Karpenter's controller.
func IsKarpenter(arn, cluster, region string) bool {
	return strings.HasSuffix(arn, ":role"+Path(cluster, region)+Name(cluster, region, Karpenter))
}
