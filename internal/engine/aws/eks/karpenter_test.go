package eks_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim/helmsim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const (
	karpenterExample = "eks-karpenter.yaml"
	karpenterNodes   = "eks-karpenter-us-east-1-karpenter-node"
)

// karpenterTemplate creates a launch template as Karpenter does. clusterTag is the one by which Karpenter finds it; others are its other tags.
func karpenterTemplate(t *testing.T, a *awssim.AWS, name, clusterTag, cluster string, others ...string) {
	t.Helper()
	tags := []ec2types.Tag{{Key: &clusterTag, Value: &cluster}, {Key: aws.String("karpenter.k8s.aws/ec2nodeclass"), Value: aws.String("default")}}
	for _, key := range others {
		tags = append(tags, ec2types.Tag{Key: &key, Value: aws.String("owned")})
	}
	_, err := ec2.NewFromConfig(a.Config()).CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("karpenter.k8s.aws/" + name), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "m5.large"},
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: tags}},
	})
	require.NoError(t, err)
}

// withKarpenter creates the cluster, and then the resources that Karpenter creates for an EC2NodeClass: an instance, launch templates, and an instance
// profile with the role of the nodes.
func withKarpenter(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	enginetest.MustApply(t, m, a)
	enginetest.RequireNoChange(t, m, a)
	x := enginetest.InsiderOf(t, a, m)
	a.Edit(func(s *awssim.State) {
		for id := range s.EC2.Instances {
			x.Machine = id // of the node group
		}
	})
	x.Instance(x.Groups...)
	karpenterTemplate(t, a, "1", kind.KarpenterClusterTag, "eks-karpenter", "kubernetes.io/cluster/eks-karpenter")
	karpenterTemplate(t, a, "2", kind.KarpenterClusterTag, "eks-karpenter") // somebody has removed a tag
	karpenterTemplate(t, a, "3", kind.OldKarpenterClusterTag, "eks-karpenter")
	c := iam.NewFromConfig(a.Config())
	name := aws.String("eks-karpenter_1234567890")
	_, err := c.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{
		InstanceProfileName: name, Path: aws.String("/karpenter/us-east-1/eks-karpenter/"),
		Tags: []types.Tag{{Key: aws.String("kubernetes.io/cluster/eks-karpenter"), Value: aws.String("owned")}},
	})
	require.NoError(t, err)
	_, err = c.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String(karpenterNodes)})
	require.NoError(t, err)
}

// requireOrder requires that the instance is terminated before what it works with is deleted.
func requireOrder(t *testing.T, calls []awssim.Call) {
	t.Helper()
	at := func(operation string) int {
		i := slices.IndexFunc(calls, func(c awssim.Call) bool { return c.Operation == operation && c.Err == "" })
		require.NotEqual(t, -1, i, operation)
		return i
	}
	terminated := at("TerminateInstances")
	for _, operation := range []string{"DeleteRule", "DeleteQueue", "DeleteRole", "RemoveRoleFromInstanceProfile", "DeleteSubnet", "DeleteVpc"} {
		assert.Less(t, terminated, at(operation), operation)
	}
	assert.Less(t, at("DeleteRule"), at("DeleteQueue"))
}

// The annotation creates what Karpenter needs in AWS. A deletion of the cluster leaves nothing of it, and nothing that Karpenter has
// created. The instances of Karpenter are deleted first.
func TestKarpenter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, karpenterExample, nil)
		a := enginetest.Prepared(t, m)
		before := a.Detailed()
		withKarpenter(t, m, a)

		for _, e := range [][2]string{
			{"aws.health", "AWS Health Event"},
			{"aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"},
			{"aws.ec2", "EC2 Instance Rebalance Recommendation"},
			{"aws.ec2", "EC2 Instance State-change Notification"},
			{"aws.ec2", "EC2 Spot Instance Interruption Warning"},
		} {
			assert.Equal(t, 1, a.Publish(e[0], e[1]), "%s reaches the queue", e[1])
		}
		assert.Zero(t, a.Publish("aws.ec2", "EBS Snapshot Notification"))
		a.Edit(func(s *awssim.State) {
			assert.Len(t, s.SQS.Queues["eks-karpenter"].Messages, 5)
			assert.Equal(t, "300", s.SQS.Queues["eks-karpenter"].Attributes["MessageRetentionPeriod"])
			c := enginetest.Plane(s)
			entry := c.Access["arn:aws:iam::"+awssim.Account+":role/clusterawsadm/us-east-1/eks-karpenter/"+karpenterNodes]
			require.NotNil(t, entry)
			assert.Equal(t, "EC2_LINUX", entry.Type)
			for _, p := range c.PodIdentities {
				assert.Equal(t, "kube-system/karpenter", p.Namespace+"/"+p.ServiceAccount)
				assert.True(t, strings.HasSuffix(p.RoleARN, "/eks-karpenter-us-east-1-karpenter"), p.RoleARN)
			}
			discovered := 0
			for _, n := range s.EC2.Subnets {
				if n.Tags["karpenter.sh/discovery"] == "eks-karpenter" {
					discovered++
					assert.Equal(t, "1", n.Tags["kubernetes.io/role/internal-elb"], "nodes are in private subnets")
				}
			}
			assert.Equal(t, 3, discovered)
		})

		n := len(a.Calls())
		enginetest.MustDeleteAll(t, m, a)
		requireOrder(t, enginetest.Since(a, n))
		assert.Equal(t, before, a.Detailed())
	})
}

// A pod that selects nodes of the NodePool runs on a node that Karpenter launches. A deletion of the cluster lets Karpenter delete the
// node first, and then its instance profile.
func TestKarpenterMakesANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, karpenterExample, nil)
		a := enginetest.Prepared(t, m)
		before := a.Detailed()
		open := func() *run.Cluster {
			p := a.Process()
			return run.Open(m, cluster.Target{
				Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.NodesReady, Helm: &helmsim.Helm{}, AskCluster: true,
			})
		}
		_, err := open().Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			c.Put(time.Now(), kubesim.Object{
				"apiVersion": "v1", "kind": "Pod", "metadata": kubesim.Object{"name": "web", "namespace": "default"},
				"spec": kubesim.Object{"nodeSelector": kubesim.Object{"karpenter.sh/nodepool": "default"}}, "status": kubesim.Object{"phase": "Pending"},
			})
		})
		for range 20 {
			time.Sleep(30 * time.Second)
			a.Edit(func(*awssim.State) {})
		}
		node := ""
		enginetest.Inside(a, func(c *kubesim.Cluster) {
			pod := c.Get("/api/v1/namespaces/default/pods/web")
			assert.Equal(t, "Running", kubesim.Value(pod, "status", "phase"))
			node = kubesim.Value(pod, "spec", "nodeName")
			assert.Equal(t, "default", kubesim.Value(c.Get("/api/v1/nodes/"+node), "metadata", "labels", "karpenter.sh/nodepool"))
			assert.Len(t, c.All("NodeClaim"), 1)
		})
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				assert.Equal(t, i.Tags["karpenter.sh/nodepool"] == "default", i.Boot.Node == node, "%s: Karpenter has made the node of the pod, and no other", i.ID)
			}
		})
		n := len(a.Calls())
		_, err = open().Delete(t.Context(), enginetest.Everything)
		require.NoError(t, err)
		for _, c := range enginetest.Since(a, n) {
			assert.NotEqual(t, "DeleteInstanceProfile", c.Operation, "Karpenter has deleted it, after its last instance")
		}
		assert.Equal(t, before, a.Detailed())
	})
}

// A deletion by name finds what the annotation has created, and what Karpenter has.
func TestKarpenterIsDeletedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, karpenterExample, nil)
		a := enginetest.Prepared(t, m)
		karpenterTemplate(t, a, "other", kind.KarpenterClusterTag, "eks-karpenter-2")
		before := a.Detailed()
		withKarpenter(t, m, a)
		n := len(a.Calls())
		_, err := enginetest.ByName(m.Name, a).Delete(t.Context(), enginetest.Everything)
		require.NoError(t, err)
		requireOrder(t, enginetest.Since(a, n))
		assert.Equal(t, before, a.Detailed())
	})
}

// If the annotation is removed, the next run deletes what it has created.
func TestKarpenterIsRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, karpenterExample, nil)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		without := enginetest.Rewritten(t, karpenterExample, "    clusterawsadm/karpenter: kube-system/karpenter\n", "    example.com/karpenter: none\n")
		enginetest.MustApply(t, without, a)
		enginetest.RequireNoChange(t, without, a)
		a.Edit(func(s *awssim.State) {
			assert.Empty(t, s.EventBridge.Rules)
			assert.Empty(t, enginetest.Plane(s).PodIdentities)
			for name := range s.IAM.Roles {
				assert.NotContains(t, name, "-us-east-1-karpenter")
			}
			for arn := range enginetest.Plane(s).Access {
				assert.NotContains(t, arn, "karpenter-node")
			}
		})
		for _, line := range a.Inventory() {
			assert.NotContains(t, line, "Queue ")
		}
	})
}

// If a queue with the name of the cluster exists and belongs to somebody else, the run stops before it changes anything.
func TestKarpenterTakesNobodysQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, karpenterExample, nil)
		a := enginetest.Prepared(t, m)
		a.Edit(func(s *awssim.State) { s.SQS.Queues["eks-karpenter"] = &awssim.Queue{Name: "eks-karpenter"} })
		text := enginetest.Refused(t, m, a)
		assert.Contains(t, text, "queue/eks-karpenter")
		assert.Contains(t, text, "delete the queue eks-karpenter, or give the cluster another name")
	})
}
