package conformance

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// nodeGroups sends queries about the node groups of the cluster and their tags.
func (s *suite) nodeGroups(role, cluster string, subnets ...string) {
	demo, one := aws.String("demo"), aws.String("one")
	describe := func(question string) {
		out, err := s.eks.DescribeNodegroup(s.ctx, &eks.DescribeNodegroupInput{ClusterName: demo, NodegroupName: one})
		if err != nil {
			s.see(question, err)
			return
		}
		g := out.Nodegroup
		s.see(question, nil, g.Status, g.AmiType, g.CapacityType, g.InstanceTypes, *g.ScalingConfig.MinSize, *g.ScalingConfig.DesiredSize, *g.ScalingConfig.MaxSize,
			g.Labels["a"], g.Tags["team"], g.Resources != nil && len(g.Resources.AutoScalingGroups) == 1, g.LaunchTemplate != nil)
	}
	create := func(change func(*eks.CreateNodegroupInput)) error {
		in := &eks.CreateNodegroupInput{
			ClusterName: demo, NodegroupName: one, NodeRole: &role, Subnets: subnets, AmiType: types.AMITypesAl2023X8664Standard, InstanceTypes: []string{"t3.large"},
			ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(1), DesiredSize: aws.Int32(1), MaxSize: aws.Int32(2)},
			Labels:        map[string]string{"a": "b"}, Tags: map[string]string{"team": "nodes"},
		}
		change(in)
		_, err := s.eks.CreateNodegroup(s.ctx, in)
		return err
	}
	remove := func() error {
		_, err := s.eks.DeleteNodegroup(s.ctx, &eks.DeleteNodegroupInput{ClusterName: demo, NodegroupName: one})
		s.settle()
		return err
	}
	wrong := func(question string, change func(*eks.CreateNodegroupInput)) {
		err := create(change)
		s.see(question, err)
		if err == nil {
			s.settle()
			s.need(remove())
		}
	}
	describe("node group: describe one that is not there")
	wrong("node group: create in a cluster that is not there", func(in *eks.CreateNodegroupInput) { in.ClusterName = aws.String("nobody") })
	wrong("node group: create with more wanted than allowed", func(in *eks.CreateNodegroupInput) { in.ScalingConfig.DesiredSize = aws.Int32(3) })
	wrong(
		"node group: create with a role that is not there",
		func(in *eks.CreateNodegroupInput) { in.NodeRole = aws.String("arn:aws:iam::123456789012:role/nobody") },
	)
	s.templatesOfNodes(wrong)
	s.see("node group: create", create(func(*eks.CreateNodegroupInput) {}))
	s.see("node group: create again", create(func(*eks.CreateNodegroupInput) {}))
	s.settle()
	describe("node group: describe")
	list, err := s.eks.ListNodegroups(s.ctx, &eks.ListNodegroupsInput{ClusterName: demo})
	s.need(err)
	s.see("node group: list", err, list.Nodegroups)
	_, err = s.eks.UpdateNodegroupConfig(s.ctx, &eks.UpdateNodegroupConfigInput{
		ClusterName: demo, NodegroupName: one, ScalingConfig: &types.NodegroupScalingConfig{DesiredSize: aws.Int32(2)},
	})
	s.see("node group: update its size", err)
	s.settle()
	describe("node group: describe when updated")
	_, err = s.eks.DeleteCluster(s.ctx, &eks.DeleteClusterInput{Name: demo})
	s.see("EKS cluster: delete with a node group", err)
	s.see("node group: delete", remove())
	s.see("node group: delete again", remove())
	left, err := s.ec2.DescribeNetworkInterfaces(s.ctx, &ec2.DescribeNetworkInterfacesInput{Filters: filter("tag:cluster.k8s.amazonaws.com/name", "demo")})
	s.need(err)
	s.see("node group: network interfaces that it leaves behind", err, len(left.NetworkInterfaces) <= 1) // the CNI may leave an interface behind
	for _, n := range left.NetworkInterfaces {
		_, err := s.ec2.DeleteNetworkInterface(s.ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: n.NetworkInterfaceId})
		s.need(err)
	}
	s.tagsOfEKS(cluster)
}

// templatesOfNodes creates node groups with invalid launch templates.
func (s *suite) templatesOfNodes(wrong func(string, func(*eks.CreateNodegroupInput))) {
	lt, err := s.ec2.CreateLaunchTemplate(s.ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("nodes-of-eks"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: ec2types.InstanceTypeT3Large},
	})
	s.need(err)
	spec := &types.LaunchTemplateSpecification{Id: lt.LaunchTemplate.LaunchTemplateId, Version: aws.String("1")}
	wrong("node group: create with two types of instances", func(in *eks.CreateNodegroupInput) { in.LaunchTemplate = spec })
	wrong("node group: create with a template and a disk", func(in *eks.CreateNodegroupInput) {
		in.LaunchTemplate, in.InstanceTypes, in.DiskSize = spec, nil, aws.Int32(30)
	})
	wrong("node group: create with a template and remote access", func(in *eks.CreateNodegroupInput) {
		in.LaunchTemplate, in.InstanceTypes, in.RemoteAccess = spec, nil, &types.RemoteAccessConfig{}
	})
	_, err = s.ec2.DeleteLaunchTemplate(s.ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: lt.LaunchTemplate.LaunchTemplateId})
	s.need(err)
}

// tagsOfEKS sends queries about tags of EKS, and about the parameter with its image.
func (s *suite) tagsOfEKS(cluster string) {
	_, err := s.eks.TagResource(s.ctx, &eks.TagResourceInput{ResourceArn: &cluster, Tags: map[string]string{"team": "green", "more": "yes"}})
	s.see("EKS tags: add", err)
	_, err = s.eks.UntagResource(s.ctx, &eks.UntagResourceInput{ResourceArn: &cluster, TagKeys: []string{"more", "nothing"}})
	s.see("EKS tags: remove", err)
	tags, err := s.eks.ListTagsForResource(s.ctx, &eks.ListTagsForResourceInput{ResourceArn: &cluster})
	s.see("EKS tags: list", err, tags != nil && len(tags.Tags) == 1 && tags.Tags["team"] == "green")
	_, err = s.eks.TagResource(s.ctx, &eks.TagResourceInput{ResourceArn: aws.String(cluster + "-nobody"), Tags: map[string]string{"team": "green"}})
	s.see("EKS tags: of a cluster that is not there", err)
	get := func(version string) error {
		_, err := s.ssm.GetParameter(
			s.ctx,
			&ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2023/x86_64/standard/recommended/image_id")},
		)
		return err
	}
	s.see("parameter: the image of EKS", get("1.33"))
	s.see("parameter: the image of a version that is not there", get("9.99"))
}
