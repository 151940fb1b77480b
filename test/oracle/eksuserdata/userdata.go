// Package oracle lets out what CAPA renders for machines of EKS clusters, which
// is in an internal package there. The controllers around it cannot be linked:
// they need a package that Cluster API 1.14 has no more. What Go goes by is the
// path of the importing package, hence the name of this module.
package oracle

import (
	"sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/internal/userdata"
)

// What is rendered from.
type (
	NodeInput    = userdata.NodeInput
	NodeadmInput = userdata.NodeadmInput
)

// EKSConfig renders the user data of an EKSConfig.
func EKSConfig(in *NodeInput) ([]byte, error) { return userdata.NewNode(in) }

// NodeadmConfig renders the user data of a NodeadmConfig.
func NodeadmConfig(in *NodeadmInput) ([]byte, error) { return userdata.NewNodeadmUserdata(in) }
