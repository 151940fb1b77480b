// Package kubernetes simulates the clusters in the account: machines boot with their user
// data and join, controllers create and delete load balancers and volumes, and API
// servers respond.
package kubernetes

import (
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/secretsmanager"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// Service are the clusters of the account.
type Service struct {
	*core.Account
	Services
	clusters State
}

// State are the clusters by the host names of their API servers.
type State map[string]*kubesim.Cluster

// Services are the AWS services that machines and controllers use.
type Services struct {
	EC2            *ec2.Service
	ELB            *elb.Service
	EKS            *eks.Service
	IAM            *iam.Service
	S3             *s3.Service
	SecretsManager *secretsmanager.Service
	SSM            *ssm.Service
}

// New returns the clusters of an account.
func New(a *core.Account, clusters State, s Services) *Service {
	return &Service{Account: a, Services: s, clusters: clusters}
}

// Settle runs machines and controllers.
func (svc *Service) Settle() {
	svc.settleEKS()
	svc.settleMachines()
	svc.settleControllers()
	svc.EKS.AwaitNodes()
}
