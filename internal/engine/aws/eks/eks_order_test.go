package eks_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// calledAt returns when an operation was called first.
func calledAt(t *testing.T, calls []awssim.Call, operation string) time.Time {
	t.Helper()
	i := slices.IndexFunc(calls, func(c awssim.Call) bool { return c.Operation == operation && c.Err == "" })
	require.GreaterOrEqual(t, i, 0, operation)
	return calls[i].At
}

// remarked returns a plan and its remarks.
func remarked(t *testing.T, m *manifest.Cluster, a *awssim.AWS) (p plan.Plan, remarks string) {
	t.Helper()
	p, err := run.Open(m, cluster.Target{Config: a.Process().Config(), Owner: "test", Warn: func(text string) { remarks += text + "\n" }}).Plan(t.Context())
	require.NoError(t, err)
	return p, remarks
}

// renamed is the example with another image type and another name of its node group, as the
// advice of a plan says.
func renamed(t *testing.T) (before, after *manifest.Cluster) {
	t.Helper()
	before, after = enginetest.Load(t, enginetest.EKSSmall, nil), enginetest.Load(t, enginetest.EKSSmall, nil)
	kind := expinfrav1.ManagedMachineAMIType("BOTTLEROCKET_x86_64")
	after.Pools[0].Managed.Spec.AMIType = &kind
	return before, after
}

// A node group that gets another name is created before the old one is deleted. If EKS cannot
// create it, the old one stays with its nodes, and the next run goes on.
func TestNodeGroupIsCreatedBeforeTheOldOneIsDeleted(t *testing.T) {
	for name, fault := range map[string]string{"works": "", "fails first": "NodeCreationFailure: Instances failed to join the kubernetes cluster"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, after := renamed(t)
				old := before.Pools[0].Managed.Spec.EKSNodegroupName
				a := enginetest.Prepared(t, before)
				enginetest.MustApply(t, before, a)
				enginetest.RequireRefused(t, after, a, plan.ID("node-group/"+old), "amiType")
				after.Pools[0].Managed.Spec.EKSNodegroupName = "pool-b"
				if fault != "" {
					a.Edit(func(s *awssim.State) { s.EKS.Faults.CreateNodeGroup = fault })
					_, err := enginetest.Open(after, a.Process()).Apply(t.Context(), cluster.Options{})
					require.ErrorContains(t, err, fault)
					a.Edit(func(s *awssim.State) {
						require.Len(t, enginetest.Plane(s).NodeGroups[old].Instances, 2)
						require.Zero(t, enginetest.Plane(s).NodeGroups[old].Deleted)
						s.EKS.Faults = ekssim.Faults{}
					})
				}
				calls := len(a.Calls())
				enginetest.MustApply(t, after, a)
				made, gone := calledAt(t, enginetest.Since(a, calls), "CreateNodegroup"), time.Time{}
				for _, c := range enginetest.Since(a, calls) {
					if c.Operation == "DeleteNodegroup" && c.Err == "" {
						gone = c.At // the last one: the first deletes the group that EKS could not create
					}
				}
				require.GreaterOrEqual(t, gone.Sub(made), awssim.EKSNodeGroupTakes)
				enginetest.RequireNoChange(t, after, a)
				a.Edit(func(s *awssim.State) { require.Len(t, enginetest.Plane(s).NodeGroups, 1) })
				enginetest.MustDelete(t, after, a)
			})
		})
	}
}

// The example without machines ends with a CoreDNS that runs: its Fargate profile is there before
// its pods.
func TestFargateProfilesBeforeThePodsThatTheySelect(t *testing.T) {
	const file = "eks-fargate.yaml"
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, file, nil)
		a := enginetest.Prepared(t, m)
		began := time.Now()
		enginetest.MustApply(t, m, a)
		took := time.Since(began)
		a.Edit(func(s *awssim.State) {
			c := enginetest.Plane(s)
			system := c.Fargate["default_eks-fargate-system"]
			assert.False(t, c.Addons["coredns"].Born.Before(system.Ready))
			assert.True(t, system.Ready.Before(c.Fargate["default_eks-fargate-default"].Ready))
			assert.True(t, c.Addons["coredns"].OnFargate)
		})
		assert.Less(t, took, 15*time.Minute) // the add-on does not wait for the other profile
		out, err := eks.NewFromConfig(a.Config()).
			DescribeAddon(t.Context(), &eks.DescribeAddonInput{ClusterName: aws.String("default_eks-fargate"), AddonName: aws.String("coredns")})
		require.NoError(t, err)
		require.Equal(t, "ACTIVE", string(out.Addon.Status))
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
	})
}

// A CoreDNS that the profiles do not select is not done: the run says so.
func TestDegradedIsNotDone(t *testing.T) {
	const file = "eks-fargate.yaml"
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, file, nil)
		(*m.EKS.ControlPlane.Spec.Addons)[0].Configuration = ""
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "addon/coredns")
		require.ErrorContains(t, err, "DEGRADED")
	})
}

// Nodes start after the VPC CNI has its settings: they take as many pods as these permit, with
// addresses from the subnets for pods.
func TestNodesStartAfterTheSettingsOfTheVPCCNI(t *testing.T) {
	prefixes := func(m *manifest.Cluster) {
		m.EKS.ControlPlane.Spec.Addons = &[]ekscontrolplanev1.Addon{
			{Name: "vpc-cni", Version: "v1.20.4-eksbuild.1", Configuration: `{"env":{"ENABLE_PREFIX_DELEGATION":"true"}}`},
		}
	}
	for name, c := range map[string]struct {
		file   string
		change func(*manifest.Cluster)
		pods   int
	}{
		"node group, add-on": {enginetest.EKSSmall, func(m *manifest.Cluster) {
			prefixes(m)
			m.EKS.ControlPlane.Spec.BootstrapSelfManagedAddons = false
		}, 110},
		"machines, add-on": {"eks-machines.yaml", prefixes, 110},
		"node group, environment": {enginetest.EKSSmall, func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.VpcCni.Env = []corev1.EnvVar{{Name: "ENABLE_PREFIX_DELEGATION", Value: "true"}}
		}, 110},
		"machines, environment": {"eks-machines.yaml", func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.VpcCni.Env = []corev1.EnvVar{{Name: "ENABLE_PREFIX_DELEGATION", Value: "true"}}
		}, 110},
		"node group, subnets for pods": {enginetest.EKSSmall, func(m *manifest.Cluster) {
			block := "100.64.0.0/16"
			m.EKS.ControlPlane.Spec.SecondaryCidrBlock = &block
			m.Infra.Spec.NetworkSpec.VPC.SecondaryCidrBlocks = []infrav1.VpcCidrBlock{{IPv4CidrBlock: block}}
			m.EKS.ControlPlane.Spec.VpcCni.Env = []corev1.EnvVar{
				{Name: "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", Value: "true"}, {Name: "ENI_CONFIG_LABEL_DEF", Value: "topology.kubernetes.io/zone"},
			}
		}, 17},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, c.file, nil)
				c.change(m)
				a := enginetest.Prepared(t, m)
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				time.Sleep(5 * time.Minute)
				_, err = enginetest.Rolling(m, a.Process()).Plan(t.Context())
				require.NoError(t, err)
				nodes := 0
				a.Edit(func(s *awssim.State) {
					for _, i := range s.EC2.Instances {
						if i.Boot == nil || i.Boot.MaxPods == 0 {
							continue
						}
						nodes++
						assert.Equal(t, c.pods, i.Boot.MaxPods)
						block := s.EC2.Subnets[i.Boot.PodSubnet].CIDR
						assert.Equal(t, strings.Contains(name, "subnets for pods"), strings.HasPrefix(block, "100.64."), block)
					}
				})
				require.Positive(t, nodes)
				enginetest.RequireDone(t, m, a)
			})
		})
	}
}

// What does not need the VPC CNI does not wait for it: its add-on without settings delays no
// node of a cluster in which EKS has installed the VPC CNI.
func TestNodesDoNotWaitForAnAddonWithoutSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.EKSSmall, nil)
		m.EKS.ControlPlane.Spec.Addons = &[]ekscontrolplanev1.Addon{{Name: "vpc-cni", Version: "v1.20.4-eksbuild.1"}}
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		require.Equal(t, calledAt(t, a.Calls(), "CreateAddon"), calledAt(t, a.Calls(), "CreateNodegroup"))
	})
}

// An add-on that leaves the manifest is deleted with its DaemonSet, and the plan says what that
// means; with preserveOnDelete, the DaemonSet stays.
func TestAddonThatLeavesTheManifest(t *testing.T) {
	for name, preserve := range map[string]bool{"deleted": false, "preserved": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, enginetest.EKSSmall, nil)
				m.EKS.ControlPlane.Spec.Addons = &[]ekscontrolplanev1.Addon{
					{Name: "vpc-cni", Version: "v1.20.4-eksbuild.1"}, {Name: "kube-proxy", Version: "v1.34.0-eksbuild.2"},
				}
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				for i := range *m.EKS.ControlPlane.Spec.Addons { // the wish may come later
					(*m.EKS.ControlPlane.Spec.Addons)[i].PreserveOnDelete = preserve
				}
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				m.EKS.ControlPlane.Spec.Addons = nil
				p, remarks := remarked(t, m, a)
				require.Len(t, enginetest.Steps(p), 2)
				require.Equal(t, !preserve, strings.Contains(remarks, "without its DaemonSet aws-node"), remarks)
				enginetest.MustApply(t, m, a)
				enginetest.Inside(a, func(c *kubesim.Cluster) {
					require.Equal(t, preserve, c.Get(awsNode) != nil)
					require.Equal(t, preserve, c.Get(kubeProxy) != nil)
				})
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
			})
		})
	}
}

// A wish to preserve that is withdrawn has no effect any more.
func TestPreserveIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.EKSSmall, nil)
		m.EKS.ControlPlane.Spec.Addons = &[]ekscontrolplanev1.Addon{{Name: "kube-proxy", Version: "v1.34.0-eksbuild.2", PreserveOnDelete: true}}
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		(*m.EKS.ControlPlane.Spec.Addons)[0].PreserveOnDelete = false
		applied(t, m, a, "update addon/kube-proxy")
		m.EKS.ControlPlane.Spec.Addons = nil
		applied(t, m, a, "delete addon/kube-proxy")
		enginetest.Inside(a, func(c *kubesim.Cluster) { require.Nil(t, c.Get(kubeProxy)) })
	})
}

// CoreDNS stays DEGRADED without nodes. That is done if the manifest has none, and if none can join
// during the run, which does not use the API server and so does not write aws-auth.
func TestAddonsWithoutNodes(t *testing.T) {
	const file = "eks-machines.yaml"
	for name, wait := range map[string]plan.Wait{"no replicas": plan.NodesReady, "infrastructure": plan.Infrastructure} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.Load(t, file, nil)
			m.EKS.ControlPlane.Spec.Addons = &[]ekscontrolplanev1.Addon{{Name: "coredns", Version: "v1.12.4-eksbuild.1"}}
			m.EKS.ControlPlane.Spec.AccessConfig = nil // aws-auth says which machines may join
			if wait == plan.NodesReady {
				m.Pools, m.Deployments[0].Object.Spec.Replicas = nil, new(int32)
			}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				began := time.Now()
				_, err := enginetest.Waiting(m, a.Process(), wait).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				require.Less(t, time.Since(began), 14*time.Minute)
			})
		})
	}
}
