package cloudformation

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
)

// BootstrapStack is the name of the stack that a new account has.
const BootstrapStack = "cluster-api-provider-aws-sigs-k8s-io"

// bootstrapAge is the age of that stack.
const bootstrapAge = 30 * 24 * time.Hour

// CreateBootstrapStack creates the stack that most accounts with Cluster API clusters
// have: roles and instance profiles with the names of CAPA's bootstrap stack, as in an
// old release. Policies of its own are omitted.
func (svc *Service) CreateBootstrapStack() {
	began := svc.Now().Add(-bootstrapAge)
	s := svc.newStack(BootstrapStack, strings.Repeat("0", 20), began)
	s.Capabilities = []types.Capability{types.CapabilityCapabilityNamedIam}
	s.Template = svc.bootstrapTemplate()
	t, err := parseTemplate(s.Template)
	if err == nil {
		svc.startCreate(s, t, began)
		svc.Settle()
	}
	if err != nil || s.Status != types.StackStatusCreateComplete {
		panic("awssim: the stack that an account begins with cannot be made") // an error in this file
	}
}

func (svc *Service) bootstrapTemplate() string {
	var b strings.Builder
	b.WriteString("AWSTemplateFormatVersion: \"2010-09-09\"\nResources:\n")
	for i, id := range []string{"ControlPlane", "Controllers", "Nodes"} {
		name := iam.BootstrapProfiles()[i]
		b.WriteString(
			"  AWSIAMInstanceProfile" + id + ":\n    Properties:\n      InstanceProfileName: " + name + "\n      Roles:\n      - Ref: AWSIAMRole" + id + "\n" +
				"    Type: AWS::IAM::InstanceProfile\n",
		)
	}
	for i, id := range []string{"ControlPlane", "Controllers", "Nodes"} {
		b.WriteString(
			"  AWSIAMRole" + id + ":\n    Properties:\n      AssumeRolePolicyDocument:\n        Statement:\n        - Action:\n          - sts:AssumeRole\n" +
				"          Effect: Allow\n          Principal:\n            Service:\n            - ec2.amazonaws.com\n        Version: \"2012-10-17\"\n" +
				"      RoleName: " + iam.BootstrapProfiles()[i] + "\n    Type: AWS::IAM::Role\n",
		)
	}
	if svc.EKSRoles {
		for i, r := range rolesOfEKS() {
			b.WriteString("  " + r.id + ":\n    Properties:\n      AssumeRolePolicyDocument:\n        Statement:\n        - Action:\n          - sts:AssumeRole\n" +
				"          Effect: Allow\n          Principal:\n            Service:\n" + items(12, "", r.services) + "        Version: \"2012-10-17\"\n" +
				"      ManagedPolicyArns:\n" + items(6, "arn:"+svc.Partition()+":iam::aws:policy/", r.policies) +
				"      RoleName: " + iam.BootstrapRolesOfEKS()[i] + "\n    Type: AWS::IAM::Role\n")
		}
	}
	return b.String()
}

// roleOfEKS is a role of EKS in the bootstrap stack.
type roleOfEKS struct {
	id                 string // logical ID, as in CAPA's template
	services, policies []string
}

// rolesOfEKS lists the roles of EKS in the order of iam.BootstrapRolesOfEKS.
func rolesOfEKS() []roleOfEKS {
	return []roleOfEKS{
		{"AWSIAMRoleEKSControlPlane", []string{"eks.amazonaws.com"}, []string{"AmazonEKSClusterPolicy"}},
		{
			"AWSIAMRoleEKSNodegroup",
			[]string{"ec2.amazonaws.com", "eks.amazonaws.com"},
			[]string{"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly"},
		},
		{"AWSIAMRoleEKSFargate", []string{"eks-fargate-pods.amazonaws.com"}, []string{"AmazonEKSFargatePodExecutionRolePolicy"}},
	}
}

// items returns the lines of a list in YAML.
func items(indent int, prefix string, all []string) string {
	var b strings.Builder
	for _, x := range all {
		b.WriteString(strings.Repeat(" ", indent) + "- " + prefix + x + "\n")
	}
	return b.String()
}

// pristine reports whether the stack is the unchanged bootstrap stack.
func (svc *Service) pristine(s *Stack) bool {
	return s.Name == BootstrapStack && s.Status == types.StackStatusCreateComplete && s.Template == svc.bootstrapTemplate()
}
