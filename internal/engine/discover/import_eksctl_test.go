package discover_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/upgrade"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// eksctlGroup replaces the node groups of an EKS cluster by one as eksctl makes them: with a
// launch template (eksctl's pkg/cfn/builder/testdata/launch_template/standard.json), and with
// several instance types if there is more than one. It returns the ID of the template.
func eksctlGroup(t *testing.T, a *awssim.AWS, instanceTypes ...string) string {
	t.Helper()
	return eksctlGroupOf(t, a, "", instanceTypes...)
}

// eksctlGroupOf is eksctlGroup with an image in the launch template; "" for none.
func eksctlGroupOf(t *testing.T, a *awssim.AWS, image string, instanceTypes ...string) string {
	t.Helper()
	var cluster, role, group string
	var subnets []string
	a.Edit(func(s *awssim.State) {
		c := enginetest.Plane(s)
		cluster, group = c.Name, c.Group
		for _, g := range c.NodeGroups {
			role, subnets = g.RoleARN, g.Subnets
		}
		clear(c.NodeGroups)
	})
	tags := []ec2types.Tag{
		{Key: aws.String("Name"), Value: aws.String("shop-standard-Node")},
		{Key: aws.String("alpha.eksctl.io/nodegroup-name"), Value: aws.String("standard")},
		{Key: aws.String("alpha.eksctl.io/nodegroup-type"), Value: aws.String("managed")},
	}
	kind, own, data := ekstypes.AMITypesAl2023X8664Standard, (*string)(nil), (*string)(nil)
	if image != "" {
		script := "#!/bin/bash\n/etc/eks/bootstrap.sh " + cluster + "\n"
		kind, own, data = "", &image, aws.String(base64.StdEncoding.EncodeToString([]byte(script)))
	}
	template, err := ec2.NewFromConfig(a.Config()).CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("eksctl-shop-nodegroup-standard"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId:  own,
			UserData: data,
			BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{
				{DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{
					Iops: aws.Int32(3000), Throughput: aws.Int32(125), VolumeSize: aws.Int32(80), VolumeType: ec2types.VolumeTypeGp3,
				}},
			},
			MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
				HttpPutResponseHopLimit: aws.Int32(2),
				HttpTokens:              ec2types.LaunchTemplateHttpTokensStateRequired,
			},
			SecurityGroupIds: []string{group},
			TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{
				{ResourceType: ec2types.ResourceTypeInstance, Tags: tags}, {ResourceType: ec2types.ResourceTypeVolume, Tags: tags},
			},
		},
	})
	require.NoError(t, err)
	_, err = awseks.NewFromConfig(a.Config()).CreateNodegroup(t.Context(), &awseks.CreateNodegroupInput{
		ClusterName: &cluster, NodegroupName: aws.String("standard"), NodeRole: &role, Subnets: subnets, AmiType: kind,
		InstanceTypes: instanceTypes, Labels: map[string]string{"alpha.eksctl.io/cluster-name": "shop", "alpha.eksctl.io/nodegroup-name": "standard"},
		ScalingConfig:  &ekstypes.NodegroupScalingConfig{DesiredSize: aws.Int32(2), MinSize: aws.Int32(2), MaxSize: aws.Int32(2)},
		LaunchTemplate: &ekstypes.LaunchTemplateSpecification{Id: template.LaunchTemplate.LaunchTemplateId},
		Tags:           map[string]string{"alpha.eksctl.io/nodegroup-name": "standard", "alpha.eksctl.io/nodegroup-type": "managed"},
	})
	require.NoError(t, err)
	time.Sleep(10 * time.Minute) // until the nodes have joined
	return *template.LaunchTemplate.LaunchTemplateId
}

// importsGroup imports the cluster with a node group of eksctl, and adopts it: nothing changes. The
// manifest contains the texts, and no launch template. open prepares work with a manifest.
func importsGroup(t *testing.T, a *awssim.AWS, m *manifest.Cluster, texts ...string) (text string, open func(string) *run.Cluster) {
	t.Helper()
	target := cluster.Target{Config: a.Process().Config(), Owner: "test"}
	i, err := adopt.Import(t.Context(), m.KubernetesName(), target, cluster.ImportOptions{})
	require.NoError(t, err)
	require.Empty(t, i.LeftOut)
	require.Empty(t, i.Differences, "%s", i.Manifest)
	require.Empty(t, i.Templates)
	text = string(i.Manifest)
	for _, x := range texts {
		require.Contains(t, text, x)
	}
	require.NotContains(t, text, "awsLaunchTemplate")
	_, err = i.Adopt(t.Context(), cluster.Options{})
	require.NoError(t, err)
	open = func(text string) *run.Cluster {
		m, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: []byte(text)}}, input.LoadOptions{})
		require.NoError(t, err)
		return run.Open(m, target)
	}
	p, err := open(text).Plan(t.Context())
	require.NoError(t, err)
	require.True(t, p.Empty(), "%v", p.Steps)
	return text, open
}

// scalesGroup adds a node to the group of eksctl, which keeps its launch template. It returns the
// manifest with the node.
func scalesGroup(t *testing.T, a *awssim.AWS, template, text string, open func(string) *run.Cluster) (more string) {
	t.Helper()
	more = strings.Replace(strings.Replace(text, "maxSize: 2", "maxSize: 4", 1), "replicas: 2", "replicas: 3", 1)
	require.NotEqual(t, text, more)
	_, err := open(more).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
	require.NoError(t, err)
	a.Edit(func(s *awssim.State) {
		g := enginetest.Plane(s).NodeGroups["standard"]
		require.Equal(t, int32(3), g.Desired)
		require.Equal(t, template, g.Template)
	})
	return more
}

// A node group of eksctl is in the manifest, without its launch template: runs leave the template
// as it is, scale the group and upgrade it. A deletion deletes the group, and not the template.
func TestImportOfEksctl(t *testing.T) {
	enginetest.EachOf(t, []string{"eks-byo-vpc.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		enginetest.Strangers(a)
		template := eksctlGroup(t, a, "m5.xlarge")
		text, open := importsGroup(t, a, m,
			"# Another tool has made the launch template eksctl-shop-nodegroup-standard ("+template+", version 1) of the nodes:\n", "instanceType: m5.xlarge")
		more := scalesGroup(t, a, template, text, open)
		_, err := open(more).Delete(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) {
			require.Empty(t, s.EKS.Clusters)
			require.NotNil(t, s.EC2.LaunchTemplates[template])
			require.Len(t, s.EC2.LaunchTemplates[template].Versions, 1)
		})
	})
}

// The instance types of a node group that has several are in an annotation.
func TestImportOfInstanceTypes(t *testing.T) {
	enginetest.EachOf(t, []string{"eks-byo-vpc.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		enginetest.Strangers(a)
		eksctlGroup(t, a, "m5.large", "m5.xlarge")
		target := cluster.Target{Config: a.Process().Config(), Owner: "test"}
		i, err := adopt.Import(t.Context(), m.KubernetesName(), target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Differences, "%s", i.Manifest)
		require.Contains(t, string(i.Manifest), "clusterawsadm/instance-types: m5.large,m5.xlarge\n")
		require.NotContains(t, string(i.Manifest), "instanceType:")
	})
}

// An import writes the pod identity associations of an add-on as an annotation.
func TestImportOfAddonIdentities(t *testing.T) {
	enginetest.EachOf(t, []string{"eks-byo-vpc.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`
		role, err := iam.NewFromConfig(a.Config()).
			CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: aws.String("cni"), AssumeRolePolicyDocument: aws.String(trust)})
		require.NoError(t, err)
		_, err = awseks.NewFromConfig(a.Config()).CreateAddon(t.Context(), &awseks.CreateAddonInput{
			ClusterName: aws.String(m.KubernetesName()), AddonName: aws.String("vpc-cni"), ResolveConflicts: ekstypes.ResolveConflictsOverwrite,
			PodIdentityAssociations: []ekstypes.AddonPodIdentityAssociations{{ServiceAccount: aws.String("aws-node"), RoleArn: role.Role.Arn}},
		})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		enginetest.Strangers(a)
		i, err := adopt.Import(t.Context(), m.KubernetesName(), cluster.Target{Config: a.Process().Config(), Owner: "test"}, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.Differences, "%s", i.Manifest)
		require.Contains(
			t,
			string(i.Manifest),
			"clusterawsadm/addon-pod-identities: |\n      - addon: vpc-cni\n        roleARN: arn:aws:iam::123456789012:role/cni\n        serviceAccount: aws-node\n",
		)
	})
}

// A node group whose launch template has an image is in the manifest without the template, too. Runs
// scale the group, and do not upgrade its nodes.
func TestImportOfOwnImage(t *testing.T) {
	enginetest.EachOf(t, []string{"eks-byo-vpc.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		enginetest.Strangers(a)
		image := ""
		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Instances {
				image = i.Image // of the nodes
			}
		})
		template := eksctlGroupOf(t, a, image, "m5.xlarge")
		text, open := importsGroup(
			t,
			a,
			m,
			"security groups and metadata options are there.\n# The AMI is there, too: runs do not upgrade the nodes.\nspec:\n  amiType: CUSTOM\n",
		)
		from := &upgrade.Text{Sources: []input.Source{{Name: "imported.yaml", Data: []byte(text)}}}
		found, err := upgrade.Find(t.Context(), open(text), from, "1.35")
		require.NoError(t, err)
		require.Contains(
			t,
			strings.Join(found.Remarks, "\n"),
			"spec.amiType: the AMI is in a launch template of another tool, which decides which version the nodes run: upgrade them there",
		)
		more := scalesGroup(t, a, template, text, open)
		a.Edit(func(s *awssim.State) {
			require.Equal(t, image, enginetest.Plane(s).NodeGroups["standard"].Release)
			delete(enginetest.Plane(s).NodeGroups, "standard")
		})

		_, err = open(more).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.ErrorAs(t, err, new(*plan.RefusedError), "before the first write")
		require.ErrorContains(t, err, "EKS cannot create a node group of amiType CUSTOM without an AMI: set spec.awsLaunchTemplate.ami.id")
		a.Edit(func(s *awssim.State) { require.NotContains(t, enginetest.Plane(s).NodeGroups, "standard") })
	})
}
