package awssim

import (
	"encoding/base64"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
)

const mimeData = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//--\n"

// eksImageFor returns the image that EKS recommends.
func eksImageFor(t *testing.T, a *AWS, path string) string {
	t.Helper()
	out, err := ssm.NewFromConfig(a.Config()).
		GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/" + path + "/recommended/image_id")})
	require.NoError(t, err)
	return *out.Parameter.Value
}

// EKS rejects a launch template with settings of the node group, or of EKS.
func TestNodeTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c, e := eksWithNetwork(t, a, "demo"), ec2.NewFromConfig(a.Config())
		image, n := aws.String(eksImageFor(t, a, "1.33/amazon-linux-2023/x86_64/standard")), 0
		try := func(spoil func(*ec2types.RequestLaunchTemplateData, *eks.CreateNodegroupInput)) error {
			n++
			data, in := &ec2types.RequestLaunchTemplateData{InstanceType: "t3.large"}, group("one")
			in.InstanceTypes = nil
			spoil(data, in)
			if data.UserData != nil {
				data.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte(*data.UserData)))
			}
			lt, err := e.CreateLaunchTemplate(
				t.Context(),
				&ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("nodes-" + string(rune('a'+n))), LaunchTemplateData: data},
			)
			require.NoError(t, err)
			in.LaunchTemplate = &types.LaunchTemplateSpecification{Id: lt.LaunchTemplate.LaunchTemplateId, Version: aws.String("1")}
			_, err = c.CreateNodegroup(t.Context(), in)
			return err
		}
		for why, spoil := range map[string]func(*ec2types.RequestLaunchTemplateData, *eks.CreateNodegroupInput){
			"Disk size must": func(_ *ec2types.RequestLaunchTemplateData, in *eks.CreateNodegroupInput) { in.DiskSize = aws.Int32(30) },
			"Remote access": func(_ *ec2types.RequestLaunchTemplateData, in *eks.CreateNodegroupInput) {
				in.RemoteAccess = &types.RemoteAccessConfig{}
			},
			"Cannot specify instance": func(_ *ec2types.RequestLaunchTemplateData, in *eks.CreateNodegroupInput) {
				in.InstanceTypes = []string{"t3.large"}
			},
			"needs a launch template": func(_ *ec2types.RequestLaunchTemplateData, in *eks.CreateNodegroupInput) {
				in.AmiType = types.AMITypesCustom
			},
			"not a valid instance type": func(d *ec2types.RequestLaunchTemplateData, _ *eks.CreateNodegroupInput) { d.InstanceType = "m6g.large" },
			"IAM instance profile": func(d *ec2types.RequestLaunchTemplateData, _ *eks.CreateNodegroupInput) {
				d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(stockNodes)}
			},
			"Instance market options": func(d *ec2types.RequestLaunchTemplateData, _ *eks.CreateNodegroupInput) {
				d.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeSpot}
			},
			"MIME multipart": func(d *ec2types.RequestLaunchTemplateData, _ *eks.CreateNodegroupInput) {
				d.UserData = aws.String("#!/bin/bash\n")
			},
			"could not join": func(d *ec2types.RequestLaunchTemplateData, _ *eks.CreateNodegroupInput) {
				d.SecurityGroupIds = []string{testGroup}
			},
			"AMI Type other than CUSTOM": func(d *ec2types.RequestLaunchTemplateData, in *eks.CreateNodegroupInput) {
				d.ImageId, in.AmiType = image, types.AMITypesAl2023X8664Standard
			},
			"kubernetes version": func(d *ec2types.RequestLaunchTemplateData, in *eks.CreateNodegroupInput) {
				d.ImageId, in.Version = image, aws.String("1.33")
			},
		} {
			require.ErrorContains(t, try(spoil), why)
		}
		require.NoError(t, try(func(d *ec2types.RequestLaunchTemplateData, _ *eks.CreateNodegroupInput) {
			d.ImageId, d.UserData = image, aws.String("#!/bin/bash\n/etc/eks/bootstrap.sh demo\n")
		}))
		time.Sleep(ekssim.NodeGroupTakes)
		out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")})
		require.NoError(t, err)
		assert.Equal(t, []string{"CUSTOM", *image, ""}, []string{string(out.Nodegroup.AmiType), *out.Nodegroup.ReleaseVersion, aws.ToString(out.Nodegroup.Version)})
		_, err = e.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: out.Nodegroup.LaunchTemplate.Id})
		hasCode(t, err, "DependencyViolation")
	})
}

// EKS takes an image without user data, and adds none. Its own image never joins then; another one may do that by itself.
func TestImagesWithoutUserData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c, e := eksWithNetwork(t, a, "demo"), ec2.NewFromConfig(a.Config())
		of := eksImageFor(t, a, "1.33/amazon-linux-2023/x86_64/standard")
		a.Edit(func(s *State) {
			own := *s.EC2.Images[of]
			own.ID, own.Name = "ami-0123456789abcdef1", "golden-nodes-7"
			s.EC2.Images[own.ID] = &own
		})
		create := func(name, image string) {
			lt, err := e.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: &name, LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "t3.large", ImageId: &image},
			})
			require.NoError(t, err)
			in := group(name)
			in.InstanceTypes, in.LaunchTemplate = nil, &types.LaunchTemplateSpecification{Id: lt.LaunchTemplate.LaunchTemplateId, Version: aws.String("1")}
			_, err = c.CreateNodegroup(t.Context(), in)
			require.NoError(t, err)
		}
		create("own", "ami-0123456789abcdef1")
		create("of-eks", of)
		time.Sleep(ekssim.NodeGroupGivesUp + time.Minute)
		for name, want := range map[string]types.NodegroupStatus{"own": types.NodegroupStatusActive, "of-eks": types.NodegroupStatusCreateFailed} {
			out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: &name})
			require.NoError(t, err)
			require.Equal(t, want, out.Nodegroup.Status, name)
			if want == types.NodegroupStatusCreateFailed {
				require.Equal(t, types.NodegroupIssueCodeNodeCreationFailure, out.Nodegroup.Health.Issues[0].Code)
			}
		}
	})
}

// Another version of the launch template replaces the nodes; it cannot change between an
// own image and one of EKS. The nodes are in an Auto Scaling group that only EKS can
// change.
func TestNodeTemplateVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c, e := eksWithNetwork(t, a, "demo"), ec2.NewFromConfig(a.Config())
		mime := aws.String(base64.StdEncoding.EncodeToString([]byte(mimeData)))
		lt, err := e.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String("nodes"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "t3.large", UserData: mime},
		})
		require.NoError(t, err)
		in := group("one")
		in.InstanceTypes, in.LaunchTemplate = nil, &types.LaunchTemplateSpecification{Id: lt.LaunchTemplate.LaunchTemplateId, Version: aws.String("1")}
		_, err = c.CreateNodegroup(t.Context(), in)
		require.NoError(t, err)
		time.Sleep(ekssim.NodeGroupTakes)
		version := func(data *ec2types.RequestLaunchTemplateData) error {
			v, err := e.CreateLaunchTemplateVersion(
				t.Context(),
				&ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: lt.LaunchTemplate.LaunchTemplateId, LaunchTemplateData: data},
			)
			require.NoError(t, err)
			n := *v.LaunchTemplateVersion.VersionNumber
			_, err = c.UpdateNodegroupVersion(t.Context(), &eks.UpdateNodegroupVersionInput{
				ClusterName: aws.String(
					"demo",
				),
				NodegroupName:  aws.String("one"),
				LaunchTemplate: &types.LaunchTemplateSpecification{Id: lt.LaunchTemplate.LaunchTemplateId, Version: aws.String(string(rune('0' + n)))},
			})
			return err
		}
		require.ErrorContains(
			t,
			version(
				&ec2types.RequestLaunchTemplateData{
					InstanceType: "t3.large",
					ImageId:      aws.String(eksImageFor(t, a, "1.33/amazon-linux-2023/x86_64/standard")),
					UserData:     mime,
				},
			),
			"cannot change between",
		)
		require.NoError(t, version(&ec2types.RequestLaunchTemplateData{InstanceType: "m5.large"}))
		time.Sleep(2 * ekssim.NodeTakes)

		scaling := autoscaling.NewFromConfig(a.Config())
		out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")})
		require.NoError(t, err)
		assert.Equal(t, []string{"ACTIVE", "3"}, []string{string(out.Nodegroup.Status), *out.Nodegroup.LaunchTemplate.Version})
		name := out.Nodegroup.Resources.AutoScalingGroups[0].Name
		groups, err := scaling.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{*name}})
		require.NoError(t, err)
		require.Len(t, groups.AutoScalingGroups[0].Instances, 2)
		for _, i := range groups.AutoScalingGroups[0].Instances {
			assert.Equal(t, "m5.large", *i.InstanceType)
		}
		_, err = scaling.DeleteAutoScalingGroup(t.Context(), &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: name})
		require.ErrorContains(t, err, "not simulated")
	})
}

// All EKS resources can be tagged and untagged by ARN; for a resource that does not exist
// the error code is specific.
func TestEKSTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := furnished(Options{})
		c := eksWithNetwork(t, a, "demo")
		_, err := c.CreateNodegroup(t.Context(), group("one"))
		require.NoError(t, err)
		found, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("one")})
		require.NoError(t, err)
		cluster, err := c.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
		require.NoError(t, err)
		for arn, before := range map[string]map[string]string{*cluster.Cluster.Arn: {"team": "red"}, *found.Nodegroup.NodegroupArn: {}} {
			_, err = c.TagResource(t.Context(), &eks.TagResourceInput{ResourceArn: &arn, Tags: map[string]string{"a": "1", "b": "2"}})
			require.NoError(t, err)
			_, err = c.TagResource(t.Context(), &eks.TagResourceInput{ResourceArn: &arn, Tags: map[string]string{"b": "3"}})
			require.NoError(t, err)
			_, err = c.UntagResource(t.Context(), &eks.UntagResourceInput{ResourceArn: &arn, TagKeys: []string{"a", "not there"}})
			require.NoError(t, err)
			tags, err := c.ListTagsForResource(t.Context(), &eks.ListTagsForResourceInput{ResourceArn: &arn})
			require.NoError(t, err)
			before["b"] = "3"
			assert.Equal(t, before, tags.Tags)
			_, err = c.TagResource(t.Context(), &eks.TagResourceInput{ResourceArn: &arn, Tags: map[string]string{"aws:mine": "1"}})
			hasCode(t, err, "BadRequestException")
		}
		nobody := aws.String(*cluster.Cluster.Arn + "-not-there")
		_, err = c.TagResource(t.Context(), &eks.TagResourceInput{ResourceArn: nobody, Tags: map[string]string{"a": "1"}})
		hasCode(t, err, "NotFoundException")
		_, err = c.ListTagsForResource(t.Context(), &eks.ListTagsForResourceInput{ResourceArn: nobody})
		hasCode(t, err, "NotFoundException")
	})
}

// The public parameters of AWS contain existing images of the right architecture; nobody
// can write them.
func TestPublicParameters(t *testing.T) {
	a := New(Options{})
	c := ssm.NewFromConfig(a.Config())
	for name, architecture := range map[string]string{
		"eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id": "x86_64",
		"eks/optimized-ami/1.34/amazon-linux-2023/arm64/standard/recommended/image_id":  "arm64",
		"eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id":              "arm64",
		"bottlerocket/aws-k8s-1.34/x86_64/latest/image_id":                              "x86_64",
		"bottlerocket/aws-k8s-1.34-nvidia/x86_64/latest/image_id":                       "x86_64",
		"bottlerocket/aws-k8s-1.34/arm64/latest/image_id":                               "arm64",
	} {
		out, err := c.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/aws/service/" + name)})
		require.NoError(t, err, name)
		assert.Equal(t, "String", string(out.Parameter.Type))
		images, err := ec2.NewFromConfig(a.Config()).DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{*out.Parameter.Value}})
		require.NoError(t, err)
		assert.Equal(t, architecture, string(images.Images[0].Architecture), name)
	}
	for _, name := range []string{
		"eks/optimized-ami/1.34/amazon-linux-2/recommended/image_id", "eks/optimized-ami/1.34/amazon-linux-2023/x86_64/none/recommended/image_id",
		"eks/optimized-ami/9.99/amazon-linux-2023/x86_64/standard/recommended/image_id", "bottlerocket/aws-k8s-9.99/x86_64/latest/image_id",
	} {
		_, err := c.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/aws/service/" + name)})
		hasCode(t, err, "ParameterNotFound")
	}
	_, err := c.PutParameter(t.Context(), &ssm.PutParameterInput{Name: aws.String("/aws/service/mine"), Value: aws.String("1"), Type: "String"})
	hasCode(t, err, "ValidationException")
}
