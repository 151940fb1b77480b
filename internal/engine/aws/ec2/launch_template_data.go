package ec2

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// templateData converts the machine to launch template data, without subnet, user data
// and tags.
func (i *Instance) templateData(image ImageState) (*types.RequestLaunchTemplateData, error) {
	in := &ec2.RunInstancesInput{}
	i.market(in)
	i.options(in)
	volumes, err := i.volumes(image)
	if err != nil {
		return nil, err
	}
	m := i.metadata()
	out := &types.RequestLaunchTemplateData{
		InstanceType: types.InstanceType(i.Spec.InstanceType), SecurityGroupIds: i.groups(),
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint: types.LaunchTemplateInstanceMetadataEndpointState(m.Endpoint), HttpTokens: types.LaunchTemplateHttpTokensState(m.Tokens),
			HttpPutResponseHopLimit: &m.HopLimit, InstanceMetadataTags: types.LaunchTemplateInstanceMetadataTagsState(m.Tags),
		},
		BlockDeviceMappings: templateVolumes(volumes),
	}
	if m.IPv6 == "enabled" { // CAPA does not set it in launch templates
		out.MetadataOptions.HttpProtocolIpv6 = types.LaunchTemplateInstanceMetadataProtocolIpv6Enabled
	}
	if image.ID != "" {
		out.ImageId = &image.ID
	}
	if i.Key != "" {
		out.KeyName = &i.Key
	}
	if p := i.Spec.IAMInstanceProfile; p != "" {
		out.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &p}
	}
	if o := in.InstanceMarketOptions; o != nil {
		out.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: o.MarketType}
		if s := o.SpotOptions; s != nil {
			out.InstanceMarketOptions.SpotOptions = &types.LaunchTemplateSpotMarketOptionsRequest{
				InstanceInterruptionBehavior: s.InstanceInterruptionBehavior, SpotInstanceType: s.SpotInstanceType, MaxPrice: s.MaxPrice,
			}
		}
	}
	if r := in.CapacityReservationSpecification; r != nil {
		out.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: r.CapacityReservationPreference, CapacityReservationTarget: r.CapacityReservationTarget,
		}
	}
	if n := in.PrivateDnsNameOptions; n != nil {
		out.PrivateDnsNameOptions = &types.LaunchTemplatePrivateDnsNameOptionsRequest{
			EnableResourceNameDnsAAAARecord: n.EnableResourceNameDnsAAAARecord,
			EnableResourceNameDnsARecord:    n.EnableResourceNameDnsARecord,
			HostnameType:                    n.HostnameType,
		}
	}
	return out, nil
}

func templateVolumes(volumes []types.BlockDeviceMapping) (out []types.LaunchTemplateBlockDeviceMappingRequest) {
	for _, v := range volumes {
		out = append(out, types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: v.DeviceName, Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
			DeleteOnTermination: v.Ebs.DeleteOnTermination, VolumeType: v.Ebs.VolumeType, VolumeSize: v.Ebs.VolumeSize, Iops: v.Ebs.Iops,
			Throughput: v.Ebs.Throughput, Encrypted: v.Ebs.Encrypted, KmsKeyId: v.Ebs.KmsKeyId,
		}})
	}
	return out
}

// parameterTexts returns the parameters of launch template data as text, by name. It
// makes requests and responses comparable, which have different types with the same
// fields.
func parameterTexts(data any) map[string]string {
	out := map[string]string{}
	v := reflect.ValueOf(data)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() || name == "UserData" || name == "TagSpecifications" {
			continue // compared separately; user data is also secret
		}
		if s := valueText(v.Field(i)); s != "" {
			out[lowerFirst(name)] = s
		}
	}
	return out
}

func lowerFirst(name string) string {
	return string(unicode.ToLower(rune(name[0]))) + name[1:]
}

// valueText returns a value of the SDK as text; "" if nothing is set in it.
func valueText(v reflect.Value) string {
	switch v.Kind() { //nolint:exhaustive // the rest are plain values
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return valueText(v.Elem())
	case reflect.Slice:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, valueText(v.Index(i)))
		}
		slices.Sort(parts)
		return strings.Join(parts, "; ")
	case reflect.Struct:
		return structText(v)
	case reflect.String:
		return v.String()
	}
	return fmt.Sprint(v.Interface())
}

// defaultText returns the default of a field; "" if it has none.
func defaultText(field string) string {
	switch field {
	case "Encrypted":
		return "false"
	case "HttpProtocolIpv6":
		return string(types.LaunchTemplateInstanceMetadataProtocolIpv6Disabled)
	case "InstanceInterruptionBehavior":
		return string(types.InstanceInterruptionBehaviorTerminate)
	case "SpotInstanceType":
		return string(types.SpotInstanceTypeOneTime)
	}
	return ""
}

// structText omits fields that AWS adds to responses: the state of a setting, and the
// defaults of Encrypted and HttpProtocolIpv6. It also omits the defaults of spot instances,
// which launch templates of CAPA do not have.
func structText(v reflect.Value) string {
	var parts []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		s := ""
		if f.IsExported() && f.Name != "State" {
			s = valueText(v.Field(i))
		}
		if s != "" && s != defaultText(f.Name) {
			parts = append(parts, lowerFirst(f.Name)+" "+s)
		}
	}
	return strings.Join(parts, ", ")
}
