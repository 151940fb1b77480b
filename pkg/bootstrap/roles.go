package bootstrap

import (
	"slices"
	"strings"

	"github.com/awslabs/goformation/v7/cloudformation/iam"
	bootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/cmd/clusterawsadm/api/bootstrap/v1beta1"
	iamv1 "sigs.k8s.io/cluster-api-provider-aws/v2/iam/api/v1beta1"
)

// The services that assume the roles.
const (
	ec2Service     = "ec2.amazonaws.com"
	eksService     = "eks.amazonaws.com"
	podsService    = "pods.eks.amazonaws.com"
	fargateService = "eks-fargate-pods.amazonaws.com"
)

// addRoles adds the roles of machines. All have the path and the permissions boundary of
// the control plane.
func (c *Config) addRoles(t *Template) {
	cp, controllers, nodes := c.Spec.ControlPlane, c.Spec.ClusterAPIControllers, c.Spec.Nodes
	assumers := []string{ec2Service}
	if !c.Spec.EKS.Disable {
		assumers = append(assumers, podsService)
	}
	t.Resources[controlPlaneRole] = c.role("control-plane", cp.AWSIAMRoleSpec, cp.ExtraPolicyAttachments, ec2Service)
	t.Resources[controllersRole] = c.role("controllers", controllers.AWSIAMRoleSpec, nil, assumers...)
	t.Resources[nodesRole] = c.role("nodes", nodes.AWSIAMRoleSpec, c.nodePolicies(), ec2Service)
}

func (c *Config) role(name string, spec bootstrapv1.AWSIAMRoleSpec, policies []string, assumers ...string) *iam.Role {
	r := &iam.Role{
		RoleName:                 text(c.name(name)),
		Path:                     text(c.Spec.ControlPlane.Path),
		PermissionsBoundary:      text(c.Spec.ControlPlane.PermissionsBoundary),
		AssumeRolePolicyDocument: trust(spec.TrustStatements, assumers...),
		ManagedPolicyArns:        policies,
		Tags:                     tagList(spec.Tags),
	}
	if spec.ExtraStatements != nil {
		r.Policies = []iam.Role_Policy{{PolicyName: c.Spec.StackName, PolicyDocument: document(spec.ExtraStatements...)}}
	}
	return r
}

// nodePolicies returns the AWS managed policies of nodes.
func (c *Config) nodePolicies() []string {
	out := slices.Clone(c.Spec.Nodes.ExtraPolicyAttachments)
	if !c.Spec.EKS.Disable {
		out = append(out, managed(c.Spec.Partition, "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy")...)
	}
	if c.Spec.Nodes.EC2ContainerRegistryReadOnly {
		out = append(out, managed(c.Spec.Partition, "AmazonEC2ContainerRegistryReadOnly")...)
	}
	return out
}

// addEKSRoles adds the roles for EKS, which CAPA finds by constant names.
func (c *Config) addEKSRoles(t *Template) {
	eks := c.Spec.EKS
	add := func(id, name string, spec *bootstrapv1.AWSIAMRoleSpec, policies []string, assumers ...string) {
		if spec.Disable {
			return
		}
		t.Resources[id] = &iam.Role{
			RoleName:                 text(name + iamv1.DefaultNameSuffix),
			AssumeRolePolicyDocument: trust(nil, assumers...),
			ManagedPolicyArns:        append(policies, spec.ExtraPolicyAttachments...),
			Tags:                     tagList(spec.Tags),
		}
	}
	p := c.groupPartition()
	add(eksControlPlaneRole, "eks-controlplane", &eks.DefaultControlPlaneRole,
		managed(c.Spec.Partition, "AmazonEKSClusterPolicy"), eksService)
	add(eksNodegroupRole, "eks-nodegroup", eks.ManagedMachinePool,
		managed(p, "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"), ec2Service, eksService)
	add(eksFargateRole, "eks-fargate", eks.Fargate,
		managed(p, "AmazonEKSFargatePodExecutionRolePolicy"), fargateService)
}

// groupPartition is the partition in the ARNs of the policies of the node group role and
// the Fargate role. For aws-cn, upstream's clusterawsadm uses aws, where these policies
// do not exist, and the stack fails. This is the only difference between this template
// and upstream's.
func (c *Config) groupPartition() string {
	switch p := c.Spec.Partition; {
	case strings.Contains(p, bootstrapv1.PartitionNameUSGov):
		return bootstrapv1.PartitionNameUSGov
	case p == "aws-cn":
		return p
	default:
		return bootstrapv1.DefaultPartitionName
	}
}

// managed returns the ARNs of AWS managed policies.
func managed(partition string, names ...string) []string {
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, "arn:"+partition+":iam::aws:policy/"+name)
	}
	return out
}

// trust returns the trust policy of a role. For pods it includes tags of the session.
func trust(more []iamv1.StatementEntry, services ...string) *iamv1.PolicyDocument {
	actions := iamv1.Actions{"sts:AssumeRole"}
	if slices.Contains(services, podsService) {
		actions = append(actions, "sts:TagSession")
	}
	first := iamv1.StatementEntry{
		Effect: iamv1.EffectAllow, Action: actions,
		Principal: iamv1.Principals{iamv1.PrincipalService: services},
	}
	return document(append([]iamv1.StatementEntry{first}, more...)...)
}
