// Package permission is what the engine may do in AWS: the policy document of
// somebody who runs "clusterawsadm cluster …". Its tests hold it against the
// calls in the code, one by one, in both directions.
package permission

import (
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Scope narrows a policy down. Its zero value covers every cluster that a
// manifest can describe.
type Scope struct {
	Partition  string // that of the region when empty
	Region     string // the only one that is acted in; "" for all
	Kind       Kind
	Roles      []string // that machines may be given, as names or patterns; empty: those of the bootstrap stack
	Assume     []string // ARNs of the roles that the manifest's identities name
	Buckets    []string // of boot data; nil: any, empty: none
	Prefixes   []string // of the names of boot data (spec.cloudInit.secretPrefix), beside the usual one
	Keys       []string // ARNs of KMS keys that volumes and secrets are encrypted with
	EKSRoles   []string // that EKS is given, as names or patterns; empty: those of the bootstrap stack
	AddonRoles []string // ARNs of the roles of add-ons' service accounts
	MadeRoles  []string // that are made for the cluster; empty: none
	NoPools    bool     // there are no Auto Scaling groups
	Templates  bool     // node groups of EKS have launch templates or hooks
	Backups    []string // buckets with backups, and those from which machines load restored snapshots
	BackupKeys []string // KMS keys that backups are encrypted with: IDs, ARNs, aliases
	FlowLogs   []string // ARNs of the roles with which AWS writes flow logs to log groups
	LogBuckets bool     // a flow log goes to a bucket
	Karpenter  string   // name of the EKS cluster with Karpenter's queue and rule; "": it has none
	PodRoles   []string // ARNs of the roles of pod identity associations
	Unused     []string // actions for parts that the cluster does not have
}

// Kind is who runs the control plane.
type Kind string

// The kinds.
const (
	Any         Kind = ""
	SelfManaged Kind = "self-managed"
	EKS         Kind = "eks"
)

// Document is an IAM policy document.
type Document plan.PolicyDocument

// Statement is a statement of a policy document. All of ours allow.
type Statement = plan.PolicyStatement

// stockRoles matches the roles that "bootstrap iam create-cloudformation-stack"
// makes for machines.
const stockRoles = "*.cluster-api-provider-aws.sigs.k8s.io"

// Policy returns the document for that scope.
func Policy(s Scope) Document {
	if s.Partition == "" {
		s.Partition = manifest.PartitionOf(s.Region)
	}
	statements := []Statement{
		s.look(),
		s.manage(),
		allow("Parameters", s.parameters(), actions(kind.Parameters)...),
		allow("BootDataInSecrets", s.secrets(), actions(kind.Secrets)...),
		s.passRole(),
		s.serviceRoles(),
	}
	if s.Kind != EKS { // a warning is given if machines can read the keys of the cluster
		statements = append(statements, allow("ReadRolesOfMachines", s.roles(s.Roles, stockRoles), "iam:ListAttachedRolePolicies"))
	}
	if s.Kind != EKS && (s.Buckets == nil || len(s.Buckets) > 0) { // the policy of the bucket names the roles, which have to exist
		last := &statements[len(statements)-1]
		last.Action = append([]string{"iam:GetRole"}, last.Action...)
		statements = append(statements, allow("BootDataInBuckets", s.buckets(), actions(kind.Buckets)...))
	}
	if s.Kind != SelfManaged {
		statements = append(statements, s.imagesOfEKS(), s.passRoleToEKS(), s.manageProviders())
	}
	if len(s.MadeRoles) > 0 {
		statements = append(statements, s.manageRoles())
	}
	if len(s.Assume) > 0 {
		statements = append(statements, allow("AssumeRolesOfIdentities", s.Assume, "sts:AssumeRole"))
	}
	if len(s.Keys) > 0 {
		statements = append(statements, allow("EncryptWithKeys", s.Keys, keys()...))
	}
	if len(s.PodRoles) > 0 {
		statements = append(statements, s.passRoleToPods())
	}
	if s.Karpenter != "" {
		statements = append(statements, s.karpenter()...)
	}
	for i, x := range statements {
		statements[i].Action = slices.DeleteFunc(slices.Clone(x.Action), func(action string) bool { return slices.Contains(s.Unused, action) })
	}
	return Document{Version: "2012-10-17", Statement: slices.Concat(statements, s.flowLogs(), s.backups())}
}

// flowLogs allows what a flow log needs beside the actions of EC2: passing a role, or the delivery to
// a bucket ("Publish flow logs to CloudWatch Logs" and "… to Amazon S3", Amazon VPC User Guide).
func (s Scope) flowLogs() (out []Statement) {
	if len(s.FlowLogs) > 0 {
		x := allow("FlowLogRoles", s.FlowLogs, "iam:PassRole")
		x.Condition = map[string]map[string][]string{"StringEquals": {"iam:PassedToService": {"vpc-flow-logs.amazonaws.com"}}}
		out = append(out, x)
	}
	if s.LogBuckets {
		out = append(out, allow("FlowLogBuckets", anywhere(), "logs:CreateLogDelivery", "logs:DeleteLogDelivery"))
	}
	return out
}

// ForBackups returns the statements that backups in S3 and keys of KMS need beside a policy.
func ForBackups(s Scope) []Statement {
	if s.Partition == "" {
		s.Partition = manifest.PartitionOf(s.Region)
	}
	return s.backups()
}

// backups allows storing and loading backups, and the snapshot that a machine loads in a restore.
func (s Scope) backups() (out []Statement) {
	if len(s.Backups) > 0 {
		with := s
		with.Buckets = s.Backups
		out = append(out, allow("Backups", with.buckets(), "s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject"))
	}
	if len(s.BackupKeys) > 0 {
		keys := make([]string, len(s.BackupKeys))
		for i, k := range s.BackupKeys {
			keys[i] = s.key(k)
		}
		out = append(out, allow("EncryptBackups", sorted(keys), "kms:Decrypt", "kms:Encrypt"))
	}
	return out
}

func allow(sid string, resources []string, actions ...string) Statement {
	return Statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resources}
}

func anywhere() []string { return []string{"*"} }

// manage allows the changes that have no narrower resource. It is one statement, because
// IAM counts the characters of a policy.
func (s Scope) manage() Statement {
	of := []kind.Statement{kind.Network, kind.Machines}
	if !s.NoPools {
		of = append(of, kind.Pools)
	}
	if !s.NoPools || s.Templates {
		of = append(of, kind.LaunchTemplates)
	}
	if s.Kind != EKS {
		of = append(of, kind.LoadBalancers)
	}
	if s.Kind != SelfManaged {
		of = append(of, kind.EKS)
	}
	changes := actions(of...)
	if s.Kind == EKS { // deletion removes the load balancers of Services
		changes = sorted(append(changes, "elasticloadbalancing:DeleteLoadBalancer", "elasticloadbalancing:DeleteTargetGroup"))
	}
	x := allow("Manage", anywhere(), changes...)
	if s.Region != "" {
		x.Condition = map[string]map[string][]string{"StringEquals": {"aws:RequestedRegion": {s.Region}}}
	}
	return x
}

// arn makes the ARN of something of this account, of any region unless the
// scope has one.
func (s Scope) arn(service, resource string) string {
	region := "*"
	if s.Region != "" {
		region = s.Region
	}
	return "arn:" + s.Partition + ":" + service + ":" + region + ":*:" + resource
}

// parameters returns the ARNs of the parameters with the lock and the keys of a cluster, and
// of those with boot data. Boot data has the names that Cluster API Provider AWS uses.
func (s Scope) parameters() []string {
	out := []string{s.arn("ssm", "parameter"+keptParameters+"*"), s.arn("ssm", "parameter/cluster.x-k8s.io/*")}
	for _, p := range s.Prefixes {
		out = append(out, s.arn("ssm", "parameter/"+strings.TrimPrefix(boot.Prefix(boot.ParameterStore, p, ""), "/")+"/*"))
	}
	return out
}

// keptParameters is the path of the parameters with the locks and keys of clusters.
const keptParameters = "/clusterawsadm/"

// secrets returns the ARNs of the secrets with boot data.
func (s Scope) secrets() []string {
	out := []string{s.arn("secretsmanager", "secret:aws.cluster.x-k8s.io/*")}
	for _, p := range s.Prefixes {
		out = append(out, s.arn("secretsmanager", "secret:"+p+"-*"))
	}
	return out
}

func (s Scope) buckets() []string {
	if s.Buckets == nil {
		return []string{"arn:" + s.Partition + ":s3:::*"}
	}
	var out []string
	for _, b := range s.Buckets {
		out = append(out, "arn:"+s.Partition+":s3:::"+b, "arn:"+s.Partition+":s3:::"+b+"/*")
	}
	return out
}

// roles returns the ARNs of roles, or that of the usual ones.
func (s Scope) roles(names []string, usual string) []string {
	if len(names) == 0 {
		names = []string{usual}
	}
	arns := make([]string, len(names))
	for i, n := range names {
		arns[i] = "arn:" + s.Partition + ":iam::*:role/" + n
	}
	return arns
}

// passRole allows passing roles to machines and to lifecycle hooks.
func (s Scope) passRole() Statement {
	to := []string{"ec2.amazonaws.com"}
	if s.Partition != "aws" { // EC2 has another name in China
		to = append(to, "ec2.amazonaws.com.cn")
	}
	if !s.NoPools || s.Templates {
		to = append(to, "autoscaling.amazonaws.com")
	}
	x := allow("MachineRoles", s.roles(s.Roles, stockRoles), "iam:PassRole")
	x.Condition = map[string]map[string][]string{"StringEquals": {"iam:PassedToService": to}}
	return x
}

// serviceRoles allows creating the service-linked roles: AWS creates one with the
// first load balancer, Auto Scaling group, spot instance or EKS cluster of an
// account.
func (s Scope) serviceRoles() Statement {
	names := []string{"spot.amazonaws.com"}
	if s.Kind != EKS {
		names = append(names, "elasticloadbalancing.amazonaws.com")
	}
	if s.Kind != SelfManaged {
		names = append(names, "eks.amazonaws.com", "eks-nodegroup.amazonaws.com", "eks-fargate.amazonaws.com")
	}
	if !s.NoPools {
		names = append(names, "autoscaling.amazonaws.com")
	}
	x := allow("ServiceLinkedRoles", []string{"arn:" + s.Partition + ":iam::*:role/aws-service-role/*"}, "iam:CreateServiceLinkedRole")
	x.Condition = map[string]map[string][]string{"StringEquals": {"iam:AWSServiceName": names}}
	return x
}
