package ec2

import (
	"cmp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/ordered"
)

// instanceSeen returns a machine as EC2 describes it.
func instanceSeen(x types.Instance) *InstanceState {
	s := &InstanceState{
		Object: identity.Object{ID: aws.ToString(x.InstanceId), Tags: cloud.FromEC2(x.Tags)}, Type: string(x.InstanceType), Image: aws.ToString(x.ImageId),
		Subnet: aws.ToString(x.SubnetId), VPC: aws.ToString(x.VpcId), Key: aws.ToString(x.KeyName), PrivateIP: aws.ToString(x.PrivateIpAddress), PublicIP: aws.ToString(x.PublicIpAddress),
		PrivateDNS: aws.ToString(x.PrivateDnsName), LaunchedAt: launchedAt(x), Spot: x.InstanceLifecycle == types.InstanceLifecycleTypeSpot,
	}
	if x.State != nil {
		s.Status = string(x.State.Name)
		s.Stopped = x.State.Name == types.InstanceStateNameStopped || x.State.Name == types.InstanceStateNameStopping
	}
	if x.Placement != nil {
		s.Zone = aws.ToString(x.Placement.AvailabilityZone)
	}
	if x.IamInstanceProfile != nil {
		s.Profile = cloud.LastPart(aws.ToString(x.IamInstanceProfile.Arn))
	}
	ordered.By(x.NetworkInterfaces, func(a, b types.InstanceNetworkInterface) int { return int(deviceIndex(a) - deviceIndex(b)) })
	groups := x.SecurityGroups
	if len(x.NetworkInterfaces) > 0 {
		groups = x.NetworkInterfaces[0].Groups // where the instance's own list comes from
	}
	for _, g := range groups {
		s.Groups = append(s.Groups, aws.ToString(g.GroupId))
	}
	for _, n := range x.NetworkInterfaces {
		s.Interfaces = append(s.Interfaces, aws.ToString(n.NetworkInterfaceId))
	}
	if m := x.MetadataOptions; m != nil {
		s.Metadata = Metadata{string(m.HttpEndpoint), cmp.Or(string(m.HttpProtocolIpv6), "disabled"), string(m.HttpTokens), cmp.Or(string(m.InstanceMetadataTags), "disabled"), aws.ToInt32(m.HttpPutResponseHopLimit)}
	}
	return s
}

// launchedAt is when a machine was launched. Its LaunchTime begins anew whenever
// it is started; what it was launched with stays attached.
func launchedAt(x types.Instance) time.Time {
	at := aws.ToTime(x.LaunchTime)
	for _, n := range x.NetworkInterfaces {
		if n.Attachment != nil && n.Attachment.AttachTime != nil && n.Attachment.AttachTime.Before(at) {
			at = *n.Attachment.AttachTime
		}
	}
	return at
}

func deviceIndex(n types.InstanceNetworkInterface) int32 {
	if n.Attachment == nil {
		return 0
	}
	return aws.ToInt32(n.Attachment.DeviceIndex)
}
