package run_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	scalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// A plan is refused if a name that must be unique in the account is already in use.
func TestTakenNames(t *testing.T) {
	for _, x := range []struct {
		example, want string
		take          func(t *testing.T, cfg aws.Config, desired plan.Plan)
	}{
		{"machine-pool.yaml", "an Auto Scaling group named machine-pool-mp-0 exists that is not the cluster's: delete it", func(t *testing.T, cfg aws.Config, _ plan.Plan) {
			client := ec2.NewFromConfig(cfg)
			vpc, err := client.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.9.0.0/16")})
			require.NoError(t, err)
			time.Sleep(time.Minute)
			subnet, err := client.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String("10.9.1.0/24")})
			require.NoError(t, err)
			time.Sleep(time.Minute)
			images, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
			require.NoError(t, err)
			image := slices.IndexFunc(images.Images, func(i types.Image) bool { return i.Architecture == types.ArchitectureValuesX8664 })
			template, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String("mine"), LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeT3Large, ImageId: images.Images[image].ImageId},
			})
			require.NoError(t, err)
			time.Sleep(time.Minute)
			_, err = autoscaling.NewFromConfig(cfg).CreateAutoScalingGroup(t.Context(), &autoscaling.CreateAutoScalingGroupInput{
				AutoScalingGroupName: aws.String("machine-pool-mp-0"), MinSize: aws.Int32(0), MaxSize: aws.Int32(0), VPCZoneIdentifier: subnet.Subnet.SubnetId,
				LaunchTemplate: &scalingtypes.LaunchTemplateSpecification{LaunchTemplateId: template.LaunchTemplate.LaunchTemplateId},
			})
			require.NoError(t, err)
		}},
		{"machine-pool.yaml", "a launch template named machine-pool-mp-0 exists (lt-", func(t *testing.T, cfg aws.Config, _ plan.Plan) {
			_, err := ec2.NewFromConfig(cfg).CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String("machine-pool-mp-0"), LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeT3Large},
			})
			require.NoError(t, err)
		}},
		{"quickstart.yaml", "exists in vpc-", func(t *testing.T, cfg aws.Config, p plan.Plan) {
			vpc, err := ec2.NewFromConfig(cfg).CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.9.0.0/16")})
			require.NoError(t, err)
			time.Sleep(time.Minute)
			_, err = elb.NewFromConfig(cfg).CreateTargetGroup(t.Context(), &elb.CreateTargetGroupInput{
				Name: aws.String(enginetest.StepOf(t, p, "target-group/api").Diff[0].Want), VpcId: vpc.Vpc.VpcId, Port: aws.Int32(6443), Protocol: elbtypes.ProtocolEnumTcp,
			})
			require.NoError(t, err)
		}},
		{"eks-karpenter.yaml", "owner", func(t *testing.T, cfg aws.Config, _ plan.Plan) {
			_, err := sqs.NewFromConfig(cfg).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("eks-karpenter")})
			require.NoError(t, err)
		}},
	} {
		t.Run(x.example+" "+x.want, func(t *testing.T) {
			m := enginetest.LoadQuick(t, x.example)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, m)
				x.take(t, a.Process().Config(), enginetest.MustPlan(t, m, a))
				time.Sleep(time.Minute)
				_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, x.want)
			})
		})
	}
}
