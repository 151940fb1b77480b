package eks_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

const (
	keyARN           = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	version          = "  version: v1.34\n"
	controlPlaneRole = "eks-controlplane.cluster-api-provider-aws.sigs.k8s.io"
)

// edited is a case: an edit of an example, a change of the account, and what the plan says of it.
type edited struct {
	file string
	edit []string
	have func(s *awssim.State)
	want string // a pattern of the refusal; "": it is created
}

func (e edited) try(t *testing.T) {
	t.Helper()
	enginetest.TryEdited(t, e.file, e.edit, e.have, e.want)
}

// What a manifest names exists and can be used, or the plan says so at its line.
func TestNamedThingsAreLookedUp(t *testing.T) {
	entry := func(arn string) []string {
		return []string{version, version + "  accessConfig: {authenticationMode: api}\n  accessEntries:\n  - principalARN: " + arn + "\n"}
	}
	policies := func(name string) []string { // the second of two
		const policy = "    - {policyARN: 'arn:aws:eks::aws:cluster-access-policy/%s', accessScope: {type: cluster}}\n"
		text := entry("arn:aws:iam::999999999999:role/ops")
		text[1] += "    accessPolicies:\n" + fmt.Sprintf(policy, "AmazonEKSViewPolicy") + fmt.Sprintf(policy, name)
		return text
	}
	secrets := []string{version, version + "  encryptionConfig: {provider: '" + keyARN + "', resources: [secrets]}\n"}
	key := func(k awssim.Key) func(*awssim.State) { return func(s *awssim.State) { s.KMS.Keys[keyARN] = &k } }
	for name, c := range map[string]edited{
		"a role": {
			enginetest.EKSSmall, entry("arn:aws:iam::123456789012:role/nope"), nil,
			`access-entry/\S+ \(eks.yaml:48 AWSManagedControlPlane/eks spec.accessEntries\[0\].principalARN\): there is no role nope in this account`,
		},
		"a user": {enginetest.EKSSmall, entry("arn:aws:iam::123456789012:user/ada"), nil, `there is no user ada in this account`},
		"a role with a path": {enginetest.EKSSmall, entry("arn:aws:iam::123456789012:role/ops"), func(s *awssim.State) {
			s.IAM.Roles["ops"] = &awssim.Role{Name: "ops", Path: "/teams/"}
		}, `the ARN of the role ops is arn:aws:iam::123456789012:role/teams/ops`},
		"a policy with a wrong name": {
			enginetest.EKSSmall, policies("AmazonEKSClusterAdmin"), nil,
			`AWSManagedControlPlane/eks spec.accessEntries\[0\].accessPolicies\[1\].policyARN\): EKS has no access policy \S+/AmazonEKSClusterAdmin: did you mean AmazonEKSClusterAdminPolicy\?`,
		},
		"a policy of IAM": {enginetest.EKSSmall, policies("ReadOnlyAccess"), nil, `EKS has no access policy \S+/ReadOnlyAccess: 'aws eks list-access-policies' lists all`},
		"access policies": {enginetest.EKSSmall, policies("AmazonEKSEditPolicy"), nil, ""},
		"another account": {enginetest.EKSSmall, entry("arn:aws:iam::999999999999:role/ops"), nil, ""},
		"no key": {
			enginetest.EKSSmall, secrets, nil,
			`eks-cluster \(eks.yaml:46 AWSManagedControlPlane/eks spec.encryptionConfig.provider\): encryptionConfig.provider: the KMS key \S+ does not exist`,
		},
		"a key": {enginetest.EKSSmall, secrets, key(awssim.Key{}), ""},
		"a disabled key": {
			enginetest.EKSSmall, secrets, key(awssim.Key{State: kmstypes.KeyStateDisabled}),
			`the KMS key \S+ is disabled: enable it \(aws kms enable-key --key-id ` + keyARN + `\)`,
		},
		"a key for signatures": {enginetest.EKSSmall, secrets, key(awssim.Key{Usage: kmstypes.KeyUsageTypeSignVerify}), `is for SIGN_VERIFY, not for encryption`},
		"AWS's own key for Secrets": {
			enginetest.EKSSmall,
			[]string{version, version + "  encryptionConfig: {provider: 'arn:aws:kms:us-east-1:123456789012:alias/aws/eks', resources: [secrets]}\n"},
			nil,
			`spec.encryptionConfig.provider\): encryptionConfig.provider: \S+ is a key that AWS manages`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.try(t)
		})
	}
}

// A manifest names something that exists but that AWS does not accept for this use: the plan is refused, with the line of the field.
func TestUnfitThings(t *testing.T) {
	const ec2Only = `{"Service":"ec2.amazonaws.com"}`
	for name, c := range map[string]edited{
		"more memory reserved for a node of EKS than there is": {
			"eks-machines.yaml",
			[]string{"      kubelet:\n        config:\n", "      kubelet:\n        config:\n          kubeReserved: {memory: 9Gi}\n"},
			nil, `instanceType: the kubelet would not start: it reserves 9Gi of memory, and t3.large has 8Gi: reserve less, or use a larger type`,
		},
		"a role of a control plane that EC2 assumes": {
			enginetest.EKSSmall,
			[]string{version, version},
			trust(controlPlaneRole, policyFor(ec2Only, `"sts:AssumeRole"`)),
			`eks-cluster \(eks.yaml:\d+ AWSManagedControlPlane/eks spec\): the trust policy of the role ` + controlPlaneRole + ` does not let eks.amazonaws.com call sts:AssumeRole`,
		},
		"a role of a control plane for both": {
			enginetest.EKSSmall, []string{version, version}, trust(controlPlaneRole, policyFor(`{"Service":["ec2.amazonaws.com","eks.amazonaws.com"]}`, `["sts:AssumeRole","sts:TagSession"]`)), "",
		},
		"a role of nodes that EKS assumes": {
			enginetest.EKSSmall,
			[]string{version, version},
			trust("eks-nodegroup", policyFor(`{"Service":"eks.amazonaws.com"}`, `"sts:AssumeRole"`)),
			`node-group/\S+ \(eks.yaml:\d+ AWSManagedMachinePool/eks-pool-0 spec\): the trust policy of the role eks-nodegroup\S+ does not let ec2.amazonaws.com call sts:AssumeRole`,
		},
		"a role of nodes without policies": {
			enginetest.EKSSmall,
			[]string{version, version},
			policies("eks-nodegroup"),
			`node-group/\S+ \(eks.yaml:\d+ AWSManagedMachinePool/eks-pool-0 spec\): the role eks-nodegroup\S+ has no policy, so that nodes do not join: attach AmazonEKSWorkerNodePolicy`,
		},
		"a role of nodes with a policy of one's own": {enginetest.EKSSmall, []string{version, version}, policies("eks-nodegroup", "arn:aws:iam::123456789012:policy/nodes"), ""},
		"a role of Fargate that EC2 assumes": {
			"eks-fargate.yaml",
			[]string{version, version},
			trust("eks-fargate", policyFor(ec2Only, `"sts:AssumeRole"`)),
			`fargate-profile/\S+ .*: the trust policy of the role eks-fargate\S+ does not let eks-fargate-pods.amazonaws.com call sts:AssumeRole`,
		},
		"a role of pods that does not tag sessions": {
			"eks-addons.yaml",
			[]string{"preserveOnDelete: false", "preserveOnDelete: false"},
			trust("shop-orders", policyFor(`{"Service":"pods.eks.amazonaws.com"}`, `"sts:AssumeRole"`)),
			`pod-identity/shop/orders .*: the trust policy of the role shop-orders does not let pods.eks.amazonaws.com call sts:AssumeRole and sts:TagSession`,
		},
		"a role of pods in another account": {
			"eks-addons.yaml",
			[]string{"arn:aws:iam::${AWS_ACCOUNT_ID:=123456789012}:role/shop-orders", "arn:aws:iam::999999999999:role/shop-orders"},
			nil,
			`role/shop-orders \(eks-addons.yaml:\d+ .*: the role arn:aws:iam::999999999999:role/shop-orders is not in this account \(123456789012\)`,
		},
		"a group of another VPC for SSH": {
			enginetest.EKSSmall,
			[]string{"  instanceType: t3.large\n", "  instanceType: t3.large\n  remoteAccess: {sshKeyName: default, sourceSecurityGroups: [sg-0123456789abcdef9]}\n"},
			groupOf("vpc-9"),
			`spec.remoteAccess.sourceSecurityGroups\[0\]\): the security group sg-0123456789abcdef9 is in the VPC vpc-9, and the run creates another one`,
		},
		"no group for SSH": {
			enginetest.EKSSmall,
			[]string{"  instanceType: t3.large\n", "  instanceType: t3.large\n  remoteAccess: {sshKeyName: default, sourceSecurityGroups: [sg-0123456789abcdef9]}\n"},
			nil,
			`spec.remoteAccess.sourceSecurityGroups\[0\]\): the security group sg-0123456789abcdef9 does not exist`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.try(t)
		})
	}
}

// EKS keeps the key that an alias names when it begins to encrypt. The alias in the manifest is no difference, until it names another key.
func TestAliasOfKeyOfEKS(t *testing.T) {
	const alias, other = "arn:aws:kms:us-east-1:123456789012:alias/secrets", "arn:aws:kms:us-east-1:123456789012:key/99999999-12ab-34cd-56ef-1234567890ab"
	m := enginetest.Rewritten(t, enginetest.EKSSmall, version, version+"  encryptionConfig: {provider: '"+alias+"', resources: [secrets]}\n")
	for name, before := range map[string]*manifest.Cluster{
		"a new cluster": m, "a cluster without": enginetest.LoadQuick(t, enginetest.EKSSmall),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				a.Edit(func(s *awssim.State) {
					s.KMS.Keys[keyARN], s.KMS.Keys[other] = &awssim.Key{}, &awssim.Key{}
					s.KMS.Aliases[alias] = keyARN
				})
				enginetest.MustApply(t, before, a)
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				a.Edit(func(s *awssim.State) { s.KMS.Aliases[alias] = other })
				_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
				assert.ErrorContains(t, err, "cannot change encryptionKey from")
			})
		})
	}
}

// groupOf adds a security group to a VPC.
func groupOf(vpc string) func(*awssim.State) {
	return func(s *awssim.State) {
		s.EC2.SecurityGroups["sg-0123456789abcdef9"] = &awssim.SecurityGroup{
			Thing: awssim.Thing{ID: "sg-0123456789abcdef9", Tags: map[string]string{}},
			Name:  "other",
			VPC:   vpc,
		}
	}
}

// trust sets who may assume the roles with a word in their names.
func trust(word, document string) func(*awssim.State) {
	return func(s *awssim.State) {
		for name, r := range s.IAM.Roles {
			if strings.Contains(name, word) {
				r.Service, r.Trust = "", document
			}
		}
	}
}

// policies are all that a role has.
func policies(word string, arns ...string) func(*awssim.State) {
	return func(s *awssim.State) {
		for name, r := range s.IAM.Roles {
			if strings.Contains(name, word) {
				r.Attached, r.Inline = arns, nil
			}
		}
	}
}

func policyFor(principal, action string) string {
	return `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":` + principal + `,"Action":` + action + `}}`
}
