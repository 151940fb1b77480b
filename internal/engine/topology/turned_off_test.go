package topology_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// feature is a part of a cluster that is taken from its manifest.
type feature struct {
	name, file string
	on         []string // texts of the example and what is there instead, with the feature
	off        []string // the same, without the feature
}

// load returns the manifest with the feature and that without it.
func (f feature) load(t *testing.T) (on, off *manifest.Cluster) {
	t.Helper()
	o := input.LoadOptions{EKSEnableIAM: true}
	return enginetest.RewrittenWith(t, o, f.file, f.on...), enginetest.RewrittenWith(t, o, f.file, slices.Concat(f.on, f.off)...)
}

// never returns the resources of a cluster that never had the feature, and of the account before.
func (f feature) never(t *testing.T) (before, after []string) {
	t.Helper()
	on, off := f.load(t)
	a := enginetest.Prepared(t, on)
	before = a.Inventory()
	enginetest.MustApply(t, off, a)
	return before, settled(a)
}

func features() []feature {
	const (
		plane    = "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n"
		bucket   = "  s3Bucket:\n    name: cluster-api-provider-aws-demo\n    controlPlaneIAMInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io\n    nodesIAMInstanceProfiles: [nodes.cluster-api-provider-aws.sigs.k8s.io]\n"
		eksPlane = "  region: us-east-1\n"
		identity = `  oidcIdentityProviderConfig:
    identityProviderConfigName: company
    issuerUrl: ${OIDC_ISSUER:=https://login.example.com}
    clientId: kubernetes
    usernameClaim: email
    usernamePrefix: "company:"
    groupsClaim: groups
    groupsPrefix: "company:"
    requiredClaims:
      department: engineering
    tags:
      owner: identity-team
`
		entries = `  accessEntries:
  - principalARN: arn:aws:iam::${AWS_ACCOUNT_ID:=123456789012}:role/pipeline
    username: pipeline
    kubernetesGroups: [deployers]
`
	)
	return []feature{
		{
			"secondary load balancer",
			"bastion.yaml",
			nil,
			[]string{"  secondaryControlPlaneLoadBalancer:\n    name: bastion-internal-api\n    loadBalancerType: nlb\n    scheme: internal\n", ""},
		},
		{
			"additional listeners",
			"bastion.yaml",
			nil,
			[]string{
				"    additionalListeners:\n    - port: 8132\n      healthCheck:\n        protocol: HTTP\n        port: \"8134\"\n        path: /healthz\n        intervalSeconds: 10\n",
				"",
			},
		},
		{"other port of a listener", "bastion.yaml", nil, []string{"    - port: 8132\n", "    - port: 8140\n"}},
		{"other health check of a listener", "bastion.yaml", nil, []string{"protocol: HTTP\n", "protocol: TCP\n", "        path: /healthz\n", ""}},
		{"bastion", "bastion.yaml", nil, []string{"    enabled: true\n", "    enabled: false\n"}},
		{
			"own security group",
			"byo-vpc.yaml",
			[]string{"    securityGroupOverrides:\n      node: sg-0aaaaaaaaaaaaaaa1\n", "    securityGroupOverrides: {}\n"},
			[]string{"    securityGroupOverrides: {}\n", "    securityGroupOverrides:\n      node: sg-0aaaaaaaaaaaaaaa2\n"},
		},
		{"bucket", enginetest.Quickstart, []string{plane, plane + bucket}, []string{bucket, ""}},
		{"bastion of EKS", "eks.yaml", []string{eksPlane, eksPlane + "  bastion:\n    enabled: true\n"}, []string{"    enabled: true\n", "    enabled: false\n"}},
		{"OIDC provider", "eks-iam.yaml", nil, []string{"  associateOIDCProvider: true\n", ""}},
		{"identity provider", "eks-iam.yaml", nil, []string{identity, ""}},
		{"name of the identity provider", "eks-iam.yaml", nil, []string{"identityProviderConfigName: company", "identityProviderConfigName: other"}},
		{"access entries", "eks-iam.yaml", nil, []string{entries, ""}},
		{
			"name of a node group",
			"eks-iam.yaml",
			nil,
			[]string{"  amiType: AL2023_x86_64_STANDARD\n", "  amiType: AL2023_x86_64_STANDARD\n  eksNodegroupName: other\n"},
		},
		{
			"Fargate profile",
			"eks-fargate.yaml",
			[]string{eksPlane, eksPlane + "  accessConfig:\n    authenticationMode: api\n"},
			[]string{"  name: eks-fargate-default\nspec:\n", "  name: eks-fargate-default\nspec:\n  profileName: other\n"},
		},
		{"pool", "machine-pool.yaml", nil, []string{"machine-pool-mp-0", "machine-pool-mp-1"}},
		{
			"a subnet",
			"listed-subnets.yaml",
			[]string{"        id: nodes-b", "        id: nodes-a"},
			[]string{"    - id: nodes-b\n      availabilityZone: us-east-1b\n      cidrBlock: 10.20.32.0/20\n", ""},
		},
		{"subnets of a zone", "listed-subnets.yaml", []string{"        id: nodes-b", "        id: nodes-a"}, []string{
			"    - id: public-b\n      availabilityZone: us-east-1b\n      cidrBlock: 10.20.1.0/24\n      isPublic: true\n", "",
			"    - id: nodes-b\n      availabilityZone: us-east-1b\n      cidrBlock: 10.20.32.0/20\n", "",
		}},
		{"edge zone", "local-zone.yaml", []string{"        id: edge-private", "        id: private-a"}, []string{
			"    - id: edge-public\n      availabilityZone: us-east-1-bos-1a\n      cidrBlock: 10.20.32.0/24\n      isPublic: true\n", "",
			"    - id: edge-private\n      availabilityZone: us-east-1-bos-1a\n      cidrBlock: 10.20.33.0/24\n", "",
		}},
		{"pool of Ignition", "flatcar-pool.yaml", nil, []string{"flatcar-pool-mp-0", "flatcar-pool-mp-1"}},
		{"Auto Mode", "eks-auto.yaml", nil, []string{
			"clusterawsadm/auto-mode: general-purpose, system", `clusterawsadm/auto-mode: "false"`, "    clusterawsadm/auto-mode-role: AmazonEKSAutoNodeRole\n", "",
		}},
		{
			"Karpenter",
			"eks-karpenter.yaml",
			nil,
			[]string{"    clusterawsadm/karpenter: kube-system/karpenter\n", "    clusterawsadm/deletion-protection: \"false\"\n"},
		},
		{"flow log", "flow-logs.yaml", nil, []string{
			"    clusterawsadm/flow-logs: /vpc/flow-logs\n    clusterawsadm/flow-logs-role: arn:aws:iam::123456789012:role/flow-logs\n" +
				"    clusterawsadm/flow-logs-traffic: REJECT # or ACCEPT; ALL without it\n", "    clusterawsadm/flow-logs: none\n",
		}},
	}
}

// TestTurnedOff creates clusters with a feature, and takes the feature from the manifest: the cluster is the same then as one that
// never had it.
func TestTurnedOff(t *testing.T) {
	for _, f := range features() {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, want := f.never(t)
				on, off := f.load(t)
				a := enginetest.Prepared(t, on)
				enginetest.MustApply(t, on, a)
				t.Log(enginetest.Done(enginetest.MustPlan(t, off, a)))
				enginetest.MustApply(t, off, a)
				enginetest.RequireNoChange(t, off, a)
				requireSame(t, want, settled(a))
				enginetest.MustDeleteAll(t, off, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}

// TestTurnedOffMayDie kills the run that takes a feature from a cluster, and completes it with the next one. Without a sweep, it kills each once.
func TestTurnedOffMayDie(t *testing.T) {
	for i, f := range features() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var want []string
			synctest.Test(t, func(t *testing.T) { _, want = f.never(t) })
			first, stride := 25+5*(i%12), 1000
			if enginetest.Sweeping() {
				first, stride = enginetest.First(7, 0), enginetest.Stride(7)
			}
			for n, over := first, false; !over; n += stride {
				synctest.Test(t, func(t *testing.T) {
					on, off := f.load(t)
					a := enginetest.Prepared(t, on)
					enginetest.MustApply(t, on, a)
					p := a.Process()
					err := enginetest.Spoilt(t, p, n, awssim.KillAfter, func(ctx context.Context) error {
						_, err := enginetest.Open(off, p).Apply(ctx, cluster.Options{})
						return err
					})
					over = err == nil && p.Calls() < n
					enginetest.MustApply(t, off, a)
					enginetest.RequireNoChange(t, off, a)
					requireSame(t, want, settled(a), fmt.Sprintf("call %d", n))
				})
			}
		})
	}
}

// A subnet that is not in the manifest any more stays while something uses it, with its NAT gateway, and the plan says what.
func TestUnlistedSubnetsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := feature{file: "listed-subnets.yaml", on: []string{"        id: nodes-b", "        id: nodes-a"}, off: []string{
			"    - id: nodes-b\n      availabilityZone: us-east-1b\n      cidrBlock: 10.20.32.0/20\n", "",
		}}
		_, want := f.never(t)
		on, off := f.load(t)
		a := enginetest.Prepared(t, on)
		enginetest.MustApply(t, on, a)
		var foreign string
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Interfaces {
				if i.Description != "" || foreign != "" {
					continue
				}
				for id, subnet := range s.EC2.Subnets {
					if subnet.Tags["Name"] == "nodes-b" {
						foreign, i.Subnet = i.Subnet, id
					}
				}
			}
		})
		require.NotEmpty(t, foreign)
		told := strings.Join(enginetest.Told(t, off, a), "\n")
		require.Contains(t, told, "(nodes-b) are not in the manifest any more, but i-")
		require.Contains(t, told, "use them: they stay, with their NAT gateways, until a run finds them empty")
		require.Empty(t, enginetest.Done(enginetest.MustPlan(t, off, a)), "neither the subnet nor the rule for the address of its NAT gateway")
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Interfaces {
				if s.EC2.Subnets[i.Subnet].Tags["Name"] == "nodes-b" && i.Description == "" {
					i.Subnet = foreign
				}
			}
		})
		require.Contains(t, enginetest.Done(enginetest.MustPlan(t, off, a)), string(plan.Remove)+" nat-gateway/us-east-1b")
		enginetest.MustApply(t, off, a)
		requireSame(t, want, settled(a))
	})
}

// requireSame compares descriptions of two accounts.
func requireSame(t *testing.T, want, have []string, what ...any) {
	t.Helper()
	assert.Empty(t, enginetest.Without(want, have), what...)
	assert.Empty(t, enginetest.Without(have, want), what...)
}

// settled describes the resources of an account. It leaves out network interfaces of pods, and what stays after a feature was removed: the tag of
// a machine that keeps a join token, the tag by which Karpenter finds subnets, sts:TagSession in the trust policy of a role, and the tag that an access
// entry of EKS's gets before its role is deleted.
func settled(a *awssim.AWS) (out []string) {
	tags := regex.Of(`(clusterawsadm/keeps-join-token|karpenter.sh/discovery)=[^,]+, |,"sts:TagSession"`)
	entry := regex.Of(`^(EKSAccessEntry .* type=(?:EC2|EC2_LINUX|FARGATE_LINUX) .*) tags=\{sigs.k8s.io/cluster-api-provider-aws/cluster/[^,}]+\}$`)
	for _, line := range enginetest.Unnumbered(enginetest.Described(a)) {
		if !strings.HasPrefix(line, "Interface aws-K8S") {
			out = append(out, entry.ReplaceAllString(tags.ReplaceAllString(line, ""), "$1"))
		}
	}
	return out
}

// TestSecondaryBlockIsRemoved takes the subnets for pods from an EKS cluster: the first plan has their deletion, although EKS has interfaces in them, which it
// deletes when a run takes the subnets from the cluster. The block of the VPC stays.
func TestSecondaryBlockIsRemoved(t *testing.T) {
	const region = "  region: us-east-1\n"
	env := "  vpcCni: {env: [{name: AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG, value: \"true\"}, {name: ENI_CONFIG_LABEL_DEF, value: topology.kubernetes.io/zone}]}\n"
	on := enginetest.Rewritten(t, "eks.yaml", region, region+"  secondaryCidrBlock: 100.64.0.0/16\n"+env)
	off := enginetest.Rewritten(t, "eks.yaml", region, region)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, on)
		enginetest.MustApply(t, on, a)
		require.Contains(t, enginetest.Done(enginetest.MustPlan(t, off, a)), string(plan.Remove)+" subnet/secondary/us-east-1a")
		enginetest.MustApply(t, off, a)
		enginetest.RequireNoChange(t, off, a)
		require.NotContains(t, strings.Join(settled(a), "\n"), "secondary-us-east")
		enginetest.MustDelete(t, off, a)
	})
}
