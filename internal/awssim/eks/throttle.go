package eks

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// limits are assumed: EKS answers ThrottlingException (EKS API reference), and its quotas name no rates. 150 machines that
// call DescribeCluster as they boot exceed the limit (awslabs/amazon-eks-ami, pull request 218), and so do many calls of
// CreateNodegroup (eksctl-io/eksctl issue 7876).
func limits() core.Limits {
	return core.Limits{
		Code: "ThrottlingException",
		Of:   core.ReadsAndWrites(core.TokenBucket{Each: true, Size: 40, Refill: 10}, core.TokenBucket{Each: true, Size: 10, Refill: 2}),
	}
}
