package resource

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/ordered"
)

// instanceSeen returns a machine as EC2 describes it.
func instanceSeen(x types.Instance) *InstanceState {
	s := &InstanceState{
		Object: Object{str(x.InstanceId), cloud.FromEC2(x.Tags)}, Type: string(x.InstanceType), Image: str(x.ImageId),
		Subnet: str(x.SubnetId), VPC: str(x.VpcId), Key: str(x.KeyName), PrivateIP: str(x.PrivateIpAddress), PublicIP: str(x.PublicIpAddress),
		PrivateDNS: str(x.PrivateDnsName), LaunchedAt: launchedAt(x), Spot: x.InstanceLifecycle == types.InstanceLifecycleTypeSpot,
	}
	if x.State != nil {
		s.Status = string(x.State.Name)
		s.Stopped = x.State.Name == types.InstanceStateNameStopped || x.State.Name == types.InstanceStateNameStopping
	}
	if x.Placement != nil {
		s.Zone = str(x.Placement.AvailabilityZone)
	}
	if x.IamInstanceProfile != nil {
		s.Profile = lastPart(str(x.IamInstanceProfile.Arn))
	}
	ordered.By(x.NetworkInterfaces, func(a, b types.InstanceNetworkInterface) int { return int(deviceIndex(a) - deviceIndex(b)) })
	groups := x.SecurityGroups
	if len(x.NetworkInterfaces) > 0 {
		groups = x.NetworkInterfaces[0].Groups // where the instance's own list comes from
	}
	for _, g := range groups {
		s.Groups = append(s.Groups, str(g.GroupId))
	}
	for _, n := range x.NetworkInterfaces {
		s.Interfaces = append(s.Interfaces, str(n.NetworkInterfaceId))
	}
	if m := x.MetadataOptions; m != nil {
		s.Metadata = Metadata{string(m.HttpEndpoint), orElse(string(m.HttpProtocolIpv6), "disabled"), string(m.HttpTokens), orElse(string(m.InstanceMetadataTags), "disabled"), aws.ToInt32(m.HttpPutResponseHopLimit)}
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

func lastPart(arn string) string {
	for i := len(arn) - 1; i >= 0; i-- {
		if arn[i] == '/' {
			return arn[i+1:]
		}
	}
	return arn
}
