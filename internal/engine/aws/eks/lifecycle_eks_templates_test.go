package eks_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

const (
	eksTemplates  = "eks-templates.yaml"
	webGroup      = "default_eks-templates-web"
	batchGroup    = "default_eks-templates-batch"
	webTemplate   = "launch-template/eks-templates-eks-templates-web"
	batchTemplate = "launch-template/eks-templates-eks-templates-batch"
)

// A changed launch template gets a new version, and the node group is updated to it: all
// its nodes are replaced, and the plan says so.
func TestNodeTemplateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, eksTemplates, nil)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		var before []string
		a.Edit(func(s *awssim.State) { before = slices.Clone(enginetest.Plane(s).NodeGroups[webGroup].Instances) })

		web := m.Pools[0].Managed.Spec.AWSLaunchTemplate
		web.RootVolume.Size = 70
		step := enginetest.StepOf(t, enginetest.MustPlan(t, m, a), "node-group/"+webGroup)
		require.Len(t, step.Diff, 1)
		require.Equal(t, []string{"launchTemplate.version", "1", "2"}, []string{step.Diff[0].Field, step.Diff[0].Have, step.Diff[0].Want})
		applied(t, m, a, "update "+webTemplate, "update node-group/"+webGroup)
		for size := range int64(4) { // old versions are deleted
			web.RootVolume.Size = 80 + size
			applied(t, m, a, "update "+webTemplate, "update node-group/"+webGroup)
		}
		a.Edit(func(s *awssim.State) {
			g := enginetest.Plane(s).NodeGroups[webGroup]
			require.Equal(t, "6", g.TemplateVersion)
			require.Len(t, g.Instances, 2)
			for _, id := range g.Instances {
				require.NotContains(t, before, id)
				require.Equal(t, g.Scaling, s.EC2.Instances[id].Tags["aws:autoscaling:groupName"])
				require.Equal(t, "owned", s.EC2.Instances[id].Tags["sigs.k8s.io/cluster-api-provider-aws/cluster/eks-templates"])
			}
			require.ElementsMatch(t, []string{"1", "5", "6"}, slices.Collect(maps.Keys(s.EC2.LaunchTemplates[g.Template].Versions)))
		})

		// A change between an image of the template and one of EKS is a conflict.
		custom, kind := expinfrav1.Custom, infrav1.AmazonLinux2023
		m.Pools[0].Managed.Spec.AMIType, web.AMI.EKSOptimizedLookupType = &custom, &kind
		enginetest.RequireRefused(t, m, a, "node-group/"+webGroup, "amiType")
	})
}

// An upgrade includes the nodes: with an image of EKS by its version, otherwise by
// another image in the template.
func TestNodeTemplateUpgrades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Rewritten(t, eksTemplates, "version: v1.34\n", "version: v1.33\n", "version: v1.34.0", "version: v1.33.0")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		m = enginetest.Load(t, eksTemplates, nil)
		m.Pools[0].Object.Spec.Template.Spec.Version = "v1.34.0"
		applied(t, m, a, "update eks-cluster", "update node-group/"+webGroup, "update "+batchTemplate, "update node-group/"+batchGroup)
		a.Edit(func(s *awssim.State) {
			for name, image := range map[string]string{webGroup: "al2023-x86_64-standard-1.34-", batchGroup: "al2023-arm64-standard-1.34-"} {
				for _, id := range enginetest.Plane(s).NodeGroups[name].Instances {
					require.Contains(t, s.EC2.Images[s.EC2.Instances[id].Image].Name, image)
				}
			}
		})
		enginetest.MustDelete(t, m, a)
	})
}

// Lifecycle hooks are added, changed and deleted, and EKS's own stay.
func TestNodeGroupHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, eksTemplates, nil)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		spec := &m.Pools[0].Managed.Spec
		hooks := func() (out map[string]int32) {
			out = map[string]int32{}
			a.Edit(func(s *awssim.State) {
				for name, h := range s.AutoScaling.Groups[enginetest.Plane(s).NodeGroups[webGroup].Scaling].Hooks {
					out[name] = h.Heartbeat
				}
			})
			return out
		}
		require.Equal(t, map[string]int32{"Launch-LC-Hook": 1800, "Terminate-LC-Hook": 1800, "drain": 300}, hooks())
		spec.AWSLifecycleHooks[0].HeartbeatTimeout = &metav1.Duration{Duration: time.Minute}
		spec.AWSLifecycleHooks = append(
			spec.AWSLifecycleHooks,
			expinfrav1.AWSLifecycleHook{Name: "warm", LifecycleTransition: expinfrav1.LifecycleHookTransitionInstanceLaunching},
		)
		applied(t, m, a, "update node-group/"+webGroup)
		require.Equal(t, map[string]int32{"Launch-LC-Hook": 1800, "Terminate-LC-Hook": 1800, "drain": 60, "warm": 3600}, hooks())
		spec.AWSLifecycleHooks = nil
		applied(t, m, a, "update node-group/"+webGroup)
		require.Equal(t, map[string]int32{"Launch-LC-Hook": 1800, "Terminate-LC-Hook": 1800}, hooks())
	})
}

// A node group that is not in the manifest any more is deleted before its launch
// template, also if somebody else has deleted the group already.
func TestNodeTemplateIsRetired(t *testing.T) {
	for name, half := range map[string]bool{"whole": false, "half gone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Load(t, eksTemplates, nil)
				a := enginetest.Prepared(t, m)
				before := a.Inventory()
				enginetest.MustApply(t, m, a)
				want := []string{"delete node-group/" + batchGroup, "delete retired/launch-template/eks-templates-eks-templates-batch"}
				if half {
					want = want[1:]
					_, err := eks.NewFromConfig(a.Config()).DeleteNodegroup(t.Context(), &eks.DeleteNodegroupInput{
						ClusterName: aws.String("default_eks-templates"), NodegroupName: aws.String(batchGroup),
					})
					require.NoError(t, err)
					time.Sleep(2 * awssim.EKSNodeGroupDeletes)
				}
				m.Pools = m.Pools[:1]
				applied(t, m, a, want...)
				a.Edit(func(s *awssim.State) { require.Len(t, s.EC2.LaunchTemplates, 1) })
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}
