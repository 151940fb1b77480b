package conformance

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/require"
)

func (s *suite) groups() {
	create := func(name string) (string, error) {
		out, err := s.ec2.CreateSecurityGroup(s.ctx, &ec2.CreateSecurityGroupInput{
			VpcId: &s.vpc, GroupName: &name, Description: aws.String("Conformance"), TagSpecifications: tagged("security-group", name),
		})
		if err != nil {
			return "", err
		}
		return *out.GroupId, nil
	}
	one, err := create("one")
	s.see("security group: create", err)
	s.need(err)
	s.group = one
	s.settle()
	_, err = create("one")
	s.see("security group: create again", err)
	two, err := create("two")
	s.need(err)
	s.settle()
	seen, err := s.ec2.DescribeSecurityGroups(s.ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{one}})
	s.need(err)
	s.see("security group: describe", err, len(seen.SecurityGroups[0].IpPermissions), len(seen.SecurityGroups[0].IpPermissionsEgress))

	https := types.IpPermission{
		IpProtocol: aws.String("tcp"), FromPort: aws.Int32(6443), ToPort: aws.Int32(6443),
		IpRanges: []types.IpRange{{CidrIp: aws.String("0.0.0.0/0"), Description: aws.String("Kubernetes API")}},
	}
	allow := func(p types.IpPermission) error {
		_, err := s.ec2.AuthorizeSecurityGroupIngress(s.ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &one, IpPermissions: []types.IpPermission{p}})
		return err
	}
	s.see("rule: allow", allow(https))
	s.see("rule: allow again", allow(https))
	s.see("rule: allow from another group", allow(types.IpPermission{IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &two}}}))
	s.see(
		"rule: allow from a group that is not there",
		allow(types.IpPermission{IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: aws.String("sg-0123456789abcdef0")}}}),
	)
	s.see("rule: allow IP in IP", allow(types.IpPermission{IpProtocol: aws.String("4"), IpRanges: []types.IpRange{{CidrIp: aws.String("10.0.0.0/16")}}}))
	seen, err = s.ec2.DescribeSecurityGroups(s.ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{one}})
	s.need(err)
	s.see("rule: describe", err, len(seen.SecurityGroups[0].IpPermissions))
	_, err = s.ec2.DeleteSecurityGroup(s.ctx, &ec2.DeleteSecurityGroupInput{GroupId: &two})
	s.see("security group: delete one that a rule names", err)
	revoke := &ec2.RevokeSecurityGroupIngressInput{GroupId: &one, IpPermissions: []types.IpPermission{https}}
	_, err = s.ec2.RevokeSecurityGroupIngress(s.ctx, revoke)
	s.see("rule: revoke", err)
	_, err = s.ec2.RevokeSecurityGroupIngress(s.ctx, revoke)
	s.see("rule: revoke again", err)
	_, err = s.ec2.RevokeSecurityGroupIngress(s.ctx, &ec2.RevokeSecurityGroupIngressInput{GroupId: &one, IpPermissions: []types.IpPermission{
		{IpProtocol: aws.String("-1"), UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &two}}},
	}})
	s.see("rule: revoke the one that named the other group", err)
	_, err = s.ec2.DeleteSecurityGroup(s.ctx, &ec2.DeleteSecurityGroupInput{GroupId: aws.String("sg-0123456789abcdef0")})
	s.see("security group: delete one that is not there", err)
}

func (s *suite) tags() {
	_, err := s.ec2.CreateTags(
		s.ctx,
		&ec2.CreateTagsInput{Resources: []string{s.vpc, s.subnet, s.group}, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("red")}}},
	)
	s.see("tags: create", err)
	_, err = s.ec2.CreateTags(
		s.ctx,
		&ec2.CreateTagsInput{Resources: []string{"vpc-0123456789abcdef0"}, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("red")}}},
	)
	s.see("tags: create on what is not there", err)
	out, err := s.ec2.DescribeTags(s.ctx, &ec2.DescribeTagsInput{Filters: filter("key", "team")})
	s.need(err)
	kinds := map[types.ResourceType]int{}
	for _, t := range out.Tags {
		kinds[t.ResourceType]++
	}
	s.see("tags: describe", err, kinds)
	address, err := s.ec2.AllocateAddress(s.ctx, &ec2.AllocateAddressInput{Domain: types.DomainTypeVpc, TagSpecifications: tagged("elastic-ip", "of-type")})
	s.need(err)
	s.settle()
	out, err = s.ec2.DescribeTags(s.ctx, &ec2.DescribeTagsInput{Filters: filter("value", "of-type")})
	s.need(err)
	s.see("tags: the type of an elastic IP", err, out.Tags[0].ResourceType)
	_, err = s.ec2.ReleaseAddress(s.ctx, &ec2.ReleaseAddressInput{AllocationId: address.AllocationId})
	s.need(err)
	out, err = s.ec2.DescribeTags(s.ctx, &ec2.DescribeTagsInput{Filters: filter("value", "of-type")})
	s.need(err)
	s.see("tags: of an elastic IP that is gone", err, len(out.Tags))
	_, err = s.ec2.DeleteTags(s.ctx, &ec2.DeleteTagsInput{Resources: []string{s.vpc, s.subnet, s.group}, Tags: []types.Tag{{Key: aws.String("team")}}})
	s.see("tags: delete", err)
	out, err = s.ec2.DescribeTags(s.ctx, &ec2.DescribeTagsInput{Filters: filter("key", "team")})
	s.need(err)
	s.see("tags: then", err, len(out.Tags))
}

func (s *suite) machines() {
	images, err := s.ec2.DescribeImages(
		s.ctx,
		&ec2.DescribeImagesInput{
			Owners:  []string{"819546954734"},
			Filters: append(filter("name", "capa-ami-ubuntu-24.04-?1.34.2-*"), filter("architecture", "x86_64")...),
		},
	)
	s.need(err)
	require.NotEmpty(s.t, images.Images)
	s.image = *images.Images[0].ImageId
	s.see("image: describe", err, images.Images[0].State, *images.Images[0].RootDeviceName)
	offered, err := s.ec2.DescribeInstanceTypes(s.ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"t3.large"}})
	s.need(err)
	s.see("instance type: describe", err, *offered.InstanceTypes[0].VCpuInfo.DefaultVCpus, offered.InstanceTypes[0].ProcessorInfo.SupportedArchitectures)

	in := func() *ec2.RunInstancesInput {
		return &ec2.RunInstancesInput{
			ImageId: &s.image, InstanceType: "t3.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1), TagSpecifications: tagged("instance", "demo"),
			NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: &s.subnet, Groups: []string{s.group}}},
		}
	}
	for _, wrong := range []struct {
		question string
		spoil    func(*ec2.RunInstancesInput)
	}{
		{"of an image that is not there", func(i *ec2.RunInstancesInput) { i.ImageId = aws.String("ami-0123456789abcdef0") }},
		{"with a key pair that is not there", func(i *ec2.RunInstancesInput) { i.KeyName = aws.String("nobody") }},
		{"of a type that is not there", func(i *ec2.RunInstancesInput) { i.InstanceType = "t99.large" }},
		{"in a subnet that is not there", func(i *ec2.RunInstancesInput) {
			i.NetworkInterfaces[0].SubnetId = aws.String("subnet-0123456789abcdef0")
		}},
		{"in a group that is not there", func(i *ec2.RunInstancesInput) {
			i.NetworkInterfaces[0].Groups = []string{"sg-0123456789abcdef0"}
		}},
		{"with a profile that is not there", func(i *ec2.RunInstancesInput) {
			i.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String("nobody")}
		}},
	} {
		i := in()
		wrong.spoil(i)
		out, err := s.ec2.RunInstances(s.ctx, i)
		s.see("instance: run "+wrong.question, err)
		if err == nil {
			_, err = s.ec2.TerminateInstances(s.ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{*out.Instances[0].InstanceId}})
			s.need(err)
		}
	}
	s.life(in())
}

func (s *suite) life(in *ec2.RunInstancesInput) {
	in.ClientToken = aws.String("just-once")
	in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")}
	made, err := s.ec2.RunInstances(s.ctx, in)
	s.need(err)
	id := *made.Instances[0].InstanceId
	s.see("instance: run", err, made.Instances[0].State.Name, names(made.Instances[0].Tags))
	again, err := s.ec2.RunInstances(s.ctx, in)
	s.need(err)
	s.see("instance: run again with the same token", err, "the same:", *again.Instances[0].InstanceId == id)
	s.settle()
	state := func() types.Instance {
		out, err := s.ec2.DescribeInstances(s.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
		s.need(err)
		return out.Reservations[0].Instances[0]
	}
	x := state()
	s.see("instance: after a while", nil, x.State.Name, *x.SubnetId == s.subnet, x.PrivateIpAddress != nil)
	s.see("instance: its security groups", nil, len(x.SecurityGroups))
	s.see("instance: its interface", nil, len(x.NetworkInterfaces), len(x.NetworkInterfaces[0].Groups), *x.NetworkInterfaces[0].Attachment.DeleteOnTermination)
	group := s.group
	s.deleteGroup("security group: delete under an instance")
	s.deleteSubnet("subnet: delete under an instance")
	_, err = s.ec2.StopInstances(s.ctx, &ec2.StopInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
	s.see("instance: stop one that is not there", err)
	_, err = s.ec2.StartInstances(s.ctx, &ec2.StartInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
	s.see("instance: start one that is not there", err)
	running, err := s.ec2.StartInstances(s.ctx, &ec2.StartInstancesInput{InstanceIds: []string{id}})
	s.need(err)
	s.see("instance: start one that runs", err, running.StartingInstances[0].CurrentState.Name)
	_, err = s.ec2.TerminateInstances(s.ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
	s.see("instance: terminate one that is not there", err)
	out, err := s.ec2.TerminateInstances(s.ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id, *again.Instances[0].InstanceId}})
	s.need(err)
	s.see("instance: terminate", err, out.TerminatingInstances[0].CurrentState.Name)
	s.settle()
	s.see("instance: and later", nil, state().State.Name)
	left, err := s.ec2.DescribeNetworkInterfaces(s.ctx, &ec2.DescribeNetworkInterfacesInput{Filters: filter("group-id", group)})
	s.need(err)
	s.see("instance: interfaces that it leaves behind", err, len(left.NetworkInterfaces))
	_, err = s.ec2.DescribeInstances(s.ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
	s.see("instance: describe one that is not there", err)
}

// deleteGroup tries to delete the security group, and creates it again if that succeeds.
func (s *suite) deleteGroup(question string) {
	s.t.Helper()
	_, err := s.ec2.DeleteSecurityGroup(s.ctx, &ec2.DeleteSecurityGroupInput{GroupId: &s.group})
	s.see(question, err)
	if err != nil {
		return
	}
	out, err := s.ec2.CreateSecurityGroup(
		s.ctx,
		&ec2.CreateSecurityGroupInput{VpcId: &s.vpc, GroupName: aws.String("one"), Description: aws.String("Conformance")},
	)
	s.need(err)
	s.group = *out.GroupId
}
