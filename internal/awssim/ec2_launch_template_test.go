package awssim

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// template returns the call for a valid launch template.
func (n *testbed) template(name string) *ec2.CreateLaunchTemplateInput {
	tags := func(kind types.ResourceType) types.LaunchTemplateTagSpecificationRequest {
		return types.LaunchTemplateTagSpecificationRequest{ResourceType: kind, Tags: []types.Tag{{Key: aws.String("Name"), Value: &name}}}
	}
	return &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, TagSpecifications: named(types.ResourceTypeLaunchTemplate, name),
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId:           &n.image,
			InstanceType:      "t3.medium",
			SecurityGroupIds:  []string{n.group},
			UserData:          aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh"))),
			MetadataOptions:   &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: types.LaunchTemplateHttpTokensStateRequired},
			TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{tags(types.ResourceTypeInstance), tags(types.ResourceTypeVolume)},
		},
	}
}

func (n *testbed) newTemplate(name string) string {
	n.t.Helper()
	out, err := n.ec2.CreateLaunchTemplate(n.t.Context(), n.template(name))
	require.NoError(n.t, err)
	return *out.LaunchTemplate.LaunchTemplateId
}

func TestLaunchTemplateChecks(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		n.newTemplate("taken")
		for name, c := range map[string]struct {
			change func(*ec2.CreateLaunchTemplateInput)
			want   string
		}{
			"taken":      {func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateName = aws.String("taken") }, "InvalidLaunchTemplateName.AlreadyExistsException"},
			"short name": {func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateName = aws.String("ab") }, "InvalidLaunchTemplateName.MalformedException"},
			"odd name":   {func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateName = aws.String("a pool") }, "InvalidLaunchTemplateName.MalformedException"},
			"image": {func(r *ec2.CreateLaunchTemplateInput) {
				r.LaunchTemplateData.ImageId = aws.String("ami-00000000000000000")
			}, "InvalidAMIID.NotFound"},
			"type": {func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateData.InstanceType = "m6g.large" }, "InvalidParameterValue"},
			"group": {func(r *ec2.CreateLaunchTemplateInput) {
				r.LaunchTemplateData.SecurityGroupIds = []string{"sg-00000000000000000"}
			}, "InvalidGroup.NotFound"},
			"profile": {func(r *ec2.CreateLaunchTemplateInput) {
				r.LaunchTemplateData.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("none")}
			}, "InvalidParameterValue"},
			"user data": {func(r *ec2.CreateLaunchTemplateInput) {
				r.LaunchTemplateData.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 16385))))
			}, "InvalidParameterValue"},
			"placement": {func(r *ec2.CreateLaunchTemplateInput) {
				r.LaunchTemplateData.Placement = &types.LaunchTemplatePlacementRequest{}
			}, "awssim: CreateLaunchTemplate: parameter *types.RequestLaunchTemplateData Placement is not simulated"},
			"mixed instances": {func(r *ec2.CreateLaunchTemplateInput) { r.LaunchTemplateData.InstanceType = "" }, ""},
		} {
			r := n.template("demo")
			c.change(r)
			_, err := n.ec2.CreateLaunchTemplate(t.Context(), r)
			if c.want == "" {
				require.NoError(t, err, name)
				continue
			}
			assert.Contains(t, code(err), c.want, name)
		}
	})
}

func TestLaunchTemplateVersions(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		ctx, id := t.Context(), n.newTemplate("demo")
		add := func(kind types.InstanceType) {
			data := n.template("").LaunchTemplateData
			data.InstanceType = kind
			_, err := n.ec2.CreateLaunchTemplateVersion(
				ctx,
				&ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: &id, LaunchTemplateData: data, ClientToken: aws.String(string(kind))},
			)
			require.NoError(t, err)
		}
		add("t3.large")
		add("t3.large") // the same token
		add("m5.large")
		kinds := func(versions ...string) (out []string) {
			got, err := n.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: versions})
			require.NoError(t, err)
			for _, v := range got.LaunchTemplateVersions {
				out = append(out, string(v.LaunchTemplateData.InstanceType))
			}
			return out
		}
		assert.Equal(t, []string{"m5.large", "t3.large", "t3.medium"}, kinds())
		assert.Equal(t, []string{"m5.large", "t3.medium"}, kinds("$Default", "$Latest"))
		_, err := n.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: []string{"9"}})
		assert.Equal(t, "InvalidLaunchTemplateId.VersionNotFound", code(err))
		gone, err := n.ec2.DeleteLaunchTemplateVersions(ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: []string{"1", "2", "9"}})
		require.NoError(t, err)
		assert.Len(t, gone.SuccessfullyDeletedLaunchTemplateVersions, 1)
		assert.Len(t, gone.UnsuccessfullyDeletedLaunchTemplateVersions, 2, "neither the default version nor one that is not there")
		_, err = n.ec2.ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateId: &id, DefaultVersion: aws.String("3")})
		require.NoError(t, err)
		assert.Equal(t, []string{"m5.large"}, kinds("$Default", "$Latest"))

		run, err := n.ec2.RunInstances(ctx, &ec2.RunInstancesInput{
			MinCount: aws.Int32(
				1,
			),
			MaxCount:       aws.Int32(1),
			SubnetId:       &n.subnet,
			LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("demo"), Version: aws.String("1")},
		})
		require.NoError(t, err)
		assert.Equal(t, types.InstanceType("t3.medium"), run.Instances[0].InstanceType)
		assert.Equal(t, types.HttpTokensStateRequired, run.Instances[0].MetadataOptions.HttpTokens)
		assert.Equal(t, []types.Tag{{Key: aws.String("Name"), Value: aws.String("demo")}}, run.Instances[0].Tags)

		assert.Contains(t, n.aws.Inventory(), "LaunchTemplate demo")
		seen, err := n.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{Filters: filter("tag:Name", "demo")})
		require.NoError(t, err)
		assert.Equal(t, int64(3), *seen.LaunchTemplates[0].LatestVersionNumber)
		_, err = n.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
		require.NoError(t, err)
		_, err = n.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
		assert.Equal(t, "InvalidLaunchTemplateId.NotFound", code(err))
		_, err = n.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"demo"}})
		assert.Equal(t, "InvalidLaunchTemplateName.NotFoundException", code(err))
	})
}
