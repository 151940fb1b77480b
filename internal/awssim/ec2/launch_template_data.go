package ec2

import (
	"reflect"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// checkTemplate looks at the data of a launch template as RunInstances would,
// as far as can be said without a subnet. AWS takes more: it accepts data that
// names what is not there with a warning, and fails when something is launched.
func (svc *Service) checkTemplate(data *types.RequestLaunchTemplateData) error {
	if data == nil {
		return core.Fail("MissingParameter", "the request must contain the parameter LaunchTemplateData")
	}
	if err := core.Only("CreateLaunchTemplate", data, "ImageId", "InstanceType", "KeyName", "UserData", "IamInstanceProfile", "SecurityGroupIds",
		"NetworkInterfaces", "BlockDeviceMappings", "InstanceMarketOptions", "MetadataOptions", "PrivateDnsNameOptions",
		"CapacityReservationSpecification", "CpuOptions", "EnclaveOptions", "TagSpecifications", "DisableApiTermination"); err != nil {
		return err
	}
	in := core.Recast[ec2.RunInstancesInput](data)
	l := &launch{in: &in, model: Instance{Launch: map[string]string{}}}
	checks := []func(*launch) error{svc.checkBasics, svc.checkUserData, svc.checkTemplateGroups, svc.checkMarket, svc.checkMetadata, svc.checkTemplateTags}
	switch {
	case in.ImageId != nil && in.InstanceType != "":
		checks = slices.Insert(checks, 0, svc.checkImage)
		checks = append(checks, svc.checkDisks)
	case in.ImageId != nil:
		if _, ok := svc.state.Images[*in.ImageId]; !ok {
			return (*Image)(nil).kind().notFound(*in.ImageId)
		}
	case in.InstanceType != "":
		if _, ok := typeNamed(string(in.InstanceType)); !ok {
			return core.Fail("InvalidParameterValue", "invalid value '%s' for InstanceType", in.InstanceType)
		}
	}
	for _, check := range checks {
		if err := check(l); err != nil {
			return err
		}
	}
	return nil
}

func (svc *Service) checkTemplateGroups(l *launch) error {
	groups := l.in.SecurityGroupIds
	if len(l.in.NetworkInterfaces) > 0 {
		if len(groups) > 0 {
			return core.Fail("InvalidParameterCombination", "network interfaces and instance-level security groups may not be specified on the same request")
		}
		if len(l.in.NetworkInterfaces) > 1 || l.in.NetworkInterfaces[0].NetworkInterfaceId != nil {
			return core.NotSimulated("CreateLaunchTemplate: several network interfaces, or one that exists")
		}
		groups = l.in.NetworkInterfaces[0].Groups
	}
	vpc := ""
	for _, id := range groups {
		g, err := lookup(svc, svc.state.SecurityGroups, &id)
		if err != nil {
			return err
		}
		if vpc != "" && g.VPC != vpc {
			return core.Fail("InvalidParameter", "the security groups of a launch template belong to several networks")
		}
		vpc = g.VPC
	}
	return nil
}

func (svc *Service) checkTemplateTags(l *launch) error {
	tags, err := specified(l.in.TagSpecifications, types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface, types.ResourceTypeSpotInstancesRequest)
	if err != nil {
		return err
	}
	return l.model.Metadata.allow(tags[types.ResourceTypeInstance])
}

// filled returns a call with what it leaves open filled in from its launch
// template. Like AWS it takes the call's word or the template's for a whole
// parameter, never a part of each.
func (svc *Service) filled(in *ec2.RunInstancesInput) (*ec2.RunInstancesInput, error) {
	if in.LaunchTemplate == nil {
		return in, nil
	}
	t, err := svc.FindLaunchTemplate(in.LaunchTemplate.LaunchTemplateId, in.LaunchTemplate.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	v := t.Version(aws.ToString(in.LaunchTemplate.Version))
	if v == nil {
		return nil, t.NoVersion(aws.ToString(in.LaunchTemplate.Version))
	}
	data := core.Recast[ec2.RunInstancesInput](v.Data)
	all, given := reflect.ValueOf(&data).Elem(), reflect.ValueOf(in).Elem()
	for i := range all.NumField() {
		if f := all.Type().Field(i); f.IsExported() && !given.Field(i).IsZero() {
			all.Field(i).Set(given.Field(i))
		}
	}
	data.LaunchTemplate = nil
	if len(data.NetworkInterfaces) > 0 && in.SubnetId != nil && in.NetworkInterfaces == nil { // a template's interface goes where the call says
		data.NetworkInterfaces[0].SubnetId, data.SubnetId = in.SubnetId, nil
	}
	return &data, nil
}

// checkEnclave looks at the options of Nitro enclaves, which burstable types
// do not have.
func (svc *Service) checkEnclave(l *launch) error {
	if o := l.in.EnclaveOptions; o != nil && aws.ToBool(o.Enabled) {
		if l.kind.vcpus < 4 || slices.Contains([]string{"t2", "t3", "t4"}, l.kind.name[:2]) {
			return core.Fail("Unsupported", "instance type %s does not support Nitro enclaves", l.kind.name)
		}
		l.model.Launch["enclave"] = "true"
	}
	return nil
}

// prepared checks a launch as far as it goes without launching anything.
func (svc *Service) prepared(in *ec2.RunInstancesInput) (*launch, error) {
	in, err := svc.filled(in)
	if err != nil {
		return nil, err
	}
	l := &launch{in: in, model: Instance{Launch: map[string]string{}}}
	for _, check := range []func(*launch) error{
		svc.checkImage, svc.checkBasics, svc.checkUserData, svc.checkSubnet, svc.checkInterfaces, svc.checkDisks,
		svc.checkMarket, svc.checkEnclave, svc.checkMetadata, svc.checkNames, svc.checkPlacement, svc.checkTags,
	} {
		if err := check(l); err != nil {
			return nil, err
		}
	}
	return l, nil
}
