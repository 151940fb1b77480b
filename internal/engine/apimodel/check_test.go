package apimodel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/apimodel"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Each constraint of the models of AWS is applied to the requests of the SDK.
func TestCheck(t *testing.T) {
	models, err := apimodel.Load()
	require.NoError(t, err)
	group := func(name string) *elb.CreateTargetGroupInput { return &elb.CreateTargetGroupInput{Name: &name} }
	role := func(name string) *iam.CreateRoleInput {
		return &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String("{}")}
	}
	memory := func(least float64) *autoscaling.CreateAutoScalingGroupInput {
		return &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: aws.String("g"), MinSize: aws.Int32(0), MaxSize: aws.Int32(0),
			MixedInstancesPolicy: &autoscalingtypes.MixedInstancesPolicy{LaunchTemplate: &autoscalingtypes.LaunchTemplate{
				Overrides: []autoscalingtypes.LaunchTemplateOverrides{{InstanceRequirements: &autoscalingtypes.InstanceRequirements{
					VCpuCount: &autoscalingtypes.VCpuCountRequest{Min: aws.Int32(1)}, MemoryMiB: &autoscalingtypes.MemoryMiBRequest{Min: aws.Int32(1)},
					MemoryGiBPerVCpu: &autoscalingtypes.MemoryGiBPerVCpuRequest{Min: &least},
				}}},
			}},
		}
	}
	volume := func(kind types.VolumeType) *ec2.RunInstancesInput {
		return &ec2.RunInstancesInput{
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			BlockDeviceMappings: []types.BlockDeviceMapping{{}, {Ebs: &types.EbsBlockDevice{VolumeType: kind}}},
		}
	}
	for name, c := range map[string]struct {
		service, operation string
		in                 any
		want               []string // the beginning of each
	}{
		"nothing wrong":       {"EC2", "RunInstances", volume(types.VolumeTypeGp3), nil},
		"missing":             {"EC2", "RunInstances", &ec2.RunInstancesInput{}, []string{"MaxCount is required", "MinCount is required"}},
		"missing, small name": {"EKS", "CreateAddon", &eks.CreateAddonInput{AddonName: aws.String("vpc-cni")}, []string{"clusterName is required"}},
		"missing below": {
			"Elastic Load Balancing v2", "RegisterTargets",
			&elb.RegisterTargetsInput{TargetGroupArn: aws.String("arn"), Targets: []elbtypes.TargetDescription{{Id: aws.String("i-1")}, {}}},
			[]string{"Targets[1].Id is required"},
		},
		"a new value of an enum": {"EC2", "RunInstances", volume("gp9"), []string{`BlockDeviceMappings[1].Ebs.VolumeType: "gp9" is not one of `}},
		"not known yet":          {"EC2", "RunInstances", volume("of " + plan.Unknown), nil},
		"an entry that is too short": {
			"IAM", "CreateOpenIDConnectProvider",
			&iam.CreateOpenIDConnectProviderInput{Url: aws.String("https://x.example"), ThumbprintList: []string{strings.Repeat("a", 39)}},
			[]string{"ThumbprintList[0] has 39 characters: AWS permits at least 40"},
		},
		"as long as permitted": {"IAM", "CreateRole", role(strings.Repeat("x", 64)), nil},
		"too long":             {"IAM", "CreateRole", role(strings.Repeat("x", 65)), []string{"RoleName has 65 characters: AWS permits at most 64"}},
		"not as the pattern":   {"IAM", "CreateRole", role("a b"), []string{`RoleName: "a b" does not match [\w+=,.@-]+`}},
		"ends as the pattern":  {"IAM", "CreateRole", role("a b\nc"), []string{`RoleName: "a b\nc" does not match`}},
		"characters, not bytes": {
			"EKS", "TagResource", &eks.TagResourceInput{ResourceArn: aws.String("arn"), Tags: map[string]string{"k": strings.Repeat("ä", 256)}}, nil,
		},
		"a value of a map": {
			"EKS", "TagResource", &eks.TagResourceInput{ResourceArn: aws.String("arn"), Tags: map[string]string{"k": strings.Repeat("ä", 257)}},
			[]string{"tags.k has 257 characters: AWS permits at most 256"},
		},
		"too many entries": {
			"EKS", "TagResource", &eks.TagResourceInput{ResourceArn: aws.String("arn"), Tags: many(51)},
			[]string{"tags has 51 entries: AWS permits at most 50"},
		},
		"a small number": {
			"Elastic Load Balancing v2", "CreateTargetGroup", &elb.CreateTargetGroupInput{Name: aws.String("g"), HealthCheckIntervalSeconds: aws.Int32(4)},
			[]string{`HealthCheckIntervalSeconds: "4" is not permitted: AWS permits at least 5`},
		},
		"the smallest number": {
			"Elastic Load Balancing v2", "CreateTargetGroup", &elb.CreateTargetGroupInput{Name: aws.String("g"), HealthCheckIntervalSeconds: aws.Int32(5)}, nil,
		},
		"a fraction": {"Auto Scaling", "CreateAutoScalingGroup", memory(0.5), nil},
		"a negative fraction": {
			"Auto Scaling", "CreateAutoScalingGroup", memory(-0.5),
			[]string{"MixedInstancesPolicy.LaunchTemplate.Overrides[0].InstanceRequirements.MemoryGiBPerVCpu.Min: " +
				`"-0.5" is not permitted: AWS permits at least 0`},
		},
		"an unknown service":   {"S3", "CreateTargetGroup", group("g"), nil},
		"an unknown operation": {"EC2", "CreateTargetGroup", group("g"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range models.Check(c.service, c.operation, c.in) {
				got = append(got, v.String())
				require.Equal(t, strings.Contains(v.What, "is not one of"), v.Unsure, "AWS adds values of enums, and changes nothing else")
			}
			require.Len(t, got, len(c.want), "%q", got)
			for i := range c.want {
				require.True(t, strings.HasPrefix(got[i], c.want[i]), "%s\n%s", got[i], c.want[i])
			}
		})
	}
	require.True(t, models.Knows("EC2", "RunInstances"))
	require.False(t, models.Knows("EC2", "DescribeInstances"), "reads are not checked")
	require.False(t, models.Knows("S3", "CreateBucket"))
}

func many(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprint("k", i)] = "v"
	}
	return out
}

// A service keeps the operations that are asked for, with all shapes below their inputs, also of shapes that contain themselves.
// An enum with many values is no constraint.
func TestOnly(t *testing.T) {
	values := make([]string, 101)
	s := &apimodel.Service{
		Operations: map[string]apimodel.Operation{"Make": {Input: apimodel.Member{Shape: "In"}}, "Break": {Input: apimodel.Member{Shape: "Other"}}},
		Shapes: map[string]apimodel.Shape{
			"In":    {Type: "structure", Members: map[string]apimodel.Member{"Trees": {Shape: "Trees"}, "Kind": {Shape: "Kind"}, "Size": {Shape: "Size"}}},
			"Trees": {Type: "list", Item: apimodel.Member{Shape: "Tree"}},
			"Tree":  {Type: "structure", Members: map[string]apimodel.Member{"Below": {Shape: "Trees"}, "Names": {Shape: "Names"}}},
			"Names": {Type: "map", Key: apimodel.Member{Shape: "Key"}, Value: apimodel.Member{Shape: "Value"}},
			"Key":   {Type: "string"},
			"Value": {Type: "string"},
			"Kind":  {Type: "string", Enum: values},
			"Size":  {Type: "string", Enum: values[:100]},
			"Other": {Type: "structure"},
		},
	}
	s.Metadata.ID = "Forest"
	some := s.Only([]string{"Make", "no such operation"})
	require.Equal(t, "Forest", some.Metadata.ID)
	require.Len(t, some.Operations, 1)
	require.Len(t, some.Shapes, len(s.Shapes)-1)
	require.NotContains(t, some.Shapes, "Other")
	require.Empty(t, some.Shapes["Kind"].Enum)
	require.Len(t, some.Shapes["Size"].Enum, 100)
	require.Len(t, s.Shapes["Kind"].Enum, 101, "the given one is not changed")
}
