package ec2

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// TemplateContent is the content of a version of a launch template.
type TemplateContent struct {
	ID, Name     string
	Version      string
	Spec         expinfrav1.AWSLaunchTemplate // from which it could have been made, without image and security groups
	Image        string                       // ID; "" if EKS selects the AMI
	Groups       []string                     // IDs of security groups
	UserData     []byte                       // may contain secrets
	InstanceTags cloud.Tags                   // of the instances that it launches

	OfCAPA        bool // CAPA has made the version
	KeepsMachines bool // machines of earlier versions are up to date
}

// TemplateContentOf reads a version of a launch template: a number, or $Latest.
func TemplateContentOf(ctx context.Context, c *cloud.Clients, id, version string) (t TemplateContent, err error) {
	out, err := c.EC2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: []string{version}})
	if err != nil {
		return t, err
	}
	at := slices.IndexFunc(out.LaunchTemplateVersions, func(v types.LaunchTemplateVersion) bool { return v.LaunchTemplateData != nil })
	if at < 0 {
		return t, fmt.Errorf("launch template %s has no version %s", id, version)
	}
	data := out.LaunchTemplateVersions[at].LaunchTemplateData
	t = TemplateContent{
		ID: id, Name: aws.ToString(out.LaunchTemplateVersions[at].LaunchTemplateName),
		Version: fmt.Sprint(aws.ToInt64(out.LaunchTemplateVersions[at].VersionNumber)),
		Spec:    templateSpec(data), Image: aws.ToString(data.ImageId), Groups: data.SecurityGroupIds, InstanceTags: cloud.Tags{},
	}
	for _, tags := range data.TagSpecifications {
		if tags.ResourceType == types.ResourceTypeInstance {
			t.InstanceTags = cloud.FromEC2(tags.Tags)
		}
	}
	t.OfCAPA = isHashOfCAPA(t.InstanceTags[BootHashTag])
	t.KeepsMachines = t.OfCAPA || aws.ToString(out.LaunchTemplateVersions[at].VersionDescription) == keepsMachines
	root := eksRootDevice
	if t.Image != "" {
		image, err := ImageByID(t.Image)(ctx, c)
		if err != nil {
			return t, err
		}
		root = image.RootDevice
	}
	t.Spec.RootVolume, t.Spec.NonRootVolumes = templateSpecVolumes(data.BlockDeviceMappings, root)
	t.UserData, err = base64.StdEncoding.DecodeString(aws.ToString(data.UserData))
	return t, err
}

// templateSpec returns the spec of launch template data, without volumes.
func templateSpec(data *types.ResponseLaunchTemplateData) expinfrav1.AWSLaunchTemplate {
	s := expinfrav1.AWSLaunchTemplate{InstanceType: string(data.InstanceType)}
	if p := data.IamInstanceProfile; p != nil {
		s.IamInstanceProfile = aws.ToString(p.Name)
	}
	if key := aws.ToString(data.KeyName); key != "" {
		s.SSHKeyName = &key
	}
	if o := data.MetadataOptions; o != nil {
		s.InstanceMetadataOptions = &infrav1.InstanceMetadataOptions{
			HTTPEndpoint: infrav1.InstanceMetadataState(o.HttpEndpoint), HTTPTokens: infrav1.HTTPTokensState(o.HttpTokens),
			HTTPPutResponseHopLimit: int64(aws.ToInt32(o.HttpPutResponseHopLimit)), InstanceMetadataTags: infrav1.InstanceMetadataState(o.InstanceMetadataTags),
		}
		if o.HttpProtocolIpv6 == types.LaunchTemplateInstanceMetadataProtocolIpv6Enabled {
			s.InstanceMetadataOptions.HTTPProtocolIPv6 = infrav1.InstanceMetadataEndpointStateEnabled
		}
	}
	if o := data.EnclaveOptions; o != nil {
		s.EnclaveOptions = &infrav1.EnclaveOptions{Enabled: o.Enabled}
	}
	if n := data.PrivateDnsNameOptions; n != nil {
		kind := string(n.HostnameType)
		s.PrivateDNSName = &infrav1.PrivateDNSName{
			HostnameType:                    &kind,
			EnableResourceNameDNSARecord:    n.EnableResourceNameDnsARecord,
			EnableResourceNameDNSAAAARecord: n.EnableResourceNameDnsAAAARecord,
		}
	}
	templateSpecMarket(data, &s)
	return s
}

// templateSpecMarket sets the purchase option and the capacity reservation.
func templateSpecMarket(data *types.ResponseLaunchTemplateData, s *expinfrav1.AWSLaunchTemplate) {
	if o := data.InstanceMarketOptions; o != nil {
		switch o.MarketType { //nolint:exhaustive // on-demand is the default, and no manifest has the others
		case types.MarketTypeCapacityBlock:
			s.MarketType = infrav1.MarketTypeCapacityBlock
		case types.MarketTypeSpot:
			s.SpotMarketOptions = &infrav1.SpotMarketOptions{}
			if o.SpotOptions != nil {
				s.SpotMarketOptions.MaxPrice = o.SpotOptions.MaxPrice
			}
		}
	}
	if r := data.CapacityReservationSpecification; r != nil {
		if t := r.CapacityReservationTarget; t != nil {
			s.CapacityReservationID = t.CapacityReservationId
		}
		s.CapacityReservationPreference = reservationPreference(r.CapacityReservationPreference)
	}
}

// templateSpecVolumes returns the volumes of block device mappings. root is the device of the
// root volume.
func templateSpecVolumes(all []types.LaunchTemplateBlockDeviceMapping, root string) (first *infrav1.Volume, others []infrav1.Volume) {
	for _, d := range all {
		if d.Ebs == nil {
			continue
		}
		v := infrav1.Volume{
			DeviceName: aws.ToString(
				d.DeviceName,
			),
			Type:          infrav1.VolumeType(d.Ebs.VolumeType),
			Size:          int64(aws.ToInt32(d.Ebs.VolumeSize)),
			IOPS:          int64(aws.ToInt32(d.Ebs.Iops)),
			EncryptionKey: aws.ToString(d.Ebs.KmsKeyId),
		}
		if aws.ToBool(d.Ebs.Encrypted) {
			v.Encrypted = d.Ebs.Encrypted
		}
		if t := aws.ToInt32(d.Ebs.Throughput); t > 0 {
			v.Throughput = aws.Int64(int64(t))
		}
		if v.DeviceName == root {
			v.DeviceName, first = "", &v
		} else {
			others = append(others, v)
		}
	}
	return first, others
}
