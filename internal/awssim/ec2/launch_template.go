package ec2

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// LaunchTemplate is a launch template with its versions.
type LaunchTemplate struct {
	Thing
	Name     string
	Default  int64
	Last     int64 // the highest version number so far
	Versions map[string]*LaunchTemplateVersion
}

// LaunchTemplateVersion is one version of a launch template.
type LaunchTemplateVersion struct {
	Number      int64
	Description string
	Born        time.Time
	Data        types.RequestLaunchTemplateData
}

func (*LaunchTemplate) kind() kind {
	return kind{
		prefix: "lt", name: "launchTemplate", missing: "InvalidLaunchTemplateId.NotFound", tags: types.ResourceTypeLaunchTemplate, title: "LaunchTemplate",
		simulate: (*Service).simulateLaunchTemplates,
	}
}

func (t *LaunchTemplate) name() string { return t.Name }

func (t *LaunchTemplate) details(printer) []string {
	return core.Each(core.ByKey(t.Versions), func(v *LaunchTemplateVersion) string {
		data := v.Data
		if data.UserData != nil {
			data.UserData = aws.String("there")
		}
		return fmt.Sprintf("version %d default %t %s", v.Number, v.Number == t.Default, core.Shown(data))
	})
}

// Limits of launch templates ("Launch template limits", EC2 user guide).
const (
	mostLaunchTemplates = 5000
	mostTemplateTypes   = 200 // per page, and per call that deletes versions
)

func (svc *Service) simulateLaunchTemplates() {
	core.On(svc.Account, svc.createLaunchTemplate, "LaunchTemplateName", "LaunchTemplateData", "VersionDescription", "TagSpecifications", "ClientToken")
	core.On(svc.Account, svc.createLaunchTemplateVersion, "LaunchTemplateId", "LaunchTemplateName", "LaunchTemplateData", "VersionDescription", "ClientToken")
	core.On(svc.Account, svc.modifyLaunchTemplate, "LaunchTemplateId", "LaunchTemplateName", "DefaultVersion", "ClientToken")
	core.On(svc.Account, svc.describeLaunchTemplates, "LaunchTemplateIds", "LaunchTemplateNames", "Filters", "MaxResults", "NextToken")
	core.On(
		svc.Account,
		svc.describeLaunchTemplateVersions,
		"LaunchTemplateId",
		"LaunchTemplateName",
		"Versions",
		"MinVersion",
		"MaxVersion",
		"MaxResults",
		"NextToken",
	)
	core.On(svc.Account, svc.deleteLaunchTemplateVersions, "LaunchTemplateId", "LaunchTemplateName", "Versions")
	core.On(svc.Account, svc.deleteLaunchTemplate, "LaunchTemplateId", "LaunchTemplateName")
}

// latest returns the highest existing version. Numbers are not reused: AWS does not
// document this for the latest version, and nothing here relies on it.
func (t *LaunchTemplate) latest() int64 {
	var n int64
	for _, v := range t.Versions {
		n = max(n, v.Number)
	}
	return n
}

// Version returns the version for a number or an alias; nil if there is none.
func (t *LaunchTemplate) Version(s string) *LaunchTemplateVersion {
	switch s {
	case "$Latest":
		s = fmt.Sprint(t.latest())
	case "", "$Default":
		s = fmt.Sprint(t.Default)
	}
	return t.Versions[s]
}

func (t *LaunchTemplate) add(description string, data *types.RequestLaunchTemplateData, now time.Time) *LaunchTemplateVersion {
	t.Last++
	v := &LaunchTemplateVersion{Number: t.Last, Description: description, Born: now, Data: *data}
	t.Versions[fmt.Sprint(v.Number)] = v
	return v
}

// FindLaunchTemplate returns a template by its ID or its name.
func (svc *Service) FindLaunchTemplate(id, name *string) (*LaunchTemplate, error) {
	if err := core.Exactly(aws.ToString(id) != "", aws.ToString(name) != ""); err != nil {
		return nil, err
	}
	if aws.ToString(id) != "" {
		t, err := lookup(svc, svc.state.LaunchTemplates, id)
		return t, err
	}
	for _, t := range svc.state.LaunchTemplates {
		if t.Name == *name && svc.Known(t.Thing) {
			return t, nil
		}
	}
	return nil, noLaunchTemplate(*name)
}

func noLaunchTemplate(name string) error {
	return core.Fail("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", name)
}

func (t *LaunchTemplate) NoVersion(v string) error {
	return core.Fail("InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version %s for the launch template with ID %s.", v, t.ID)
}

func (svc *Service) createLaunchTemplate(in *ec2.CreateLaunchTemplateInput) (*ec2.CreateLaunchTemplateOutput, error) {
	return idempotent(svc, "CreateLaunchTemplate", in.ClientToken, in, func() ([]string, error) {
		name := aws.ToString(in.LaunchTemplateName)
		if !regex.Of(`^[a-zA-Z0-9().\-/_]{3,128}$`).MatchString(name) {
			return nil, core.Fail(
				"InvalidLaunchTemplateName.MalformedException",
				"a launch template name must be between 3 and 128 characters, and may contain letters, numbers, and the following characters: - ( ) . / _",
			)
		}
		if err := svc.checkTemplate(in.LaunchTemplateData); err != nil {
			return nil, err
		}
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeLaunchTemplate)
		if err != nil {
			return nil, err
		}
		for _, t := range svc.state.LaunchTemplates {
			if t.Name == name {
				return nil, core.Fail("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
			}
		}
		if len(svc.state.LaunchTemplates) >= mostLaunchTemplates {
			return nil, core.Fail("LaunchTemplateLimitExceeded", "the maximum number of launch templates has been reached") // the code is a guess
		}
		t := &LaunchTemplate{Thing: svc.newThing("lt", tags), Name: name, Default: 1, Versions: map[string]*LaunchTemplateVersion{}}
		t.add(aws.ToString(in.VersionDescription), in.LaunchTemplateData, svc.Now())
		svc.state.LaunchTemplates[t.ID] = t
		return []string{t.ID}, nil
	}, func(ids []string) *ec2.CreateLaunchTemplateOutput {
		t := remembered(svc.state.LaunchTemplates, ids, func(t Thing) *LaunchTemplate { return &LaunchTemplate{Thing: t} })[0]
		out := svc.launchTemplateOut(t)
		return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: &out}
	})
}

func (svc *Service) createLaunchTemplateVersion(in *ec2.CreateLaunchTemplateVersionInput) (*ec2.CreateLaunchTemplateVersionOutput, error) {
	return idempotent(svc, "CreateLaunchTemplateVersion", in.ClientToken, in, func() ([]string, error) {
		t, err := svc.FindLaunchTemplate(in.LaunchTemplateId, in.LaunchTemplateName)
		if err != nil {
			return nil, err
		}
		if err := svc.checkTemplate(in.LaunchTemplateData); err != nil {
			return nil, err
		}
		v := t.add(aws.ToString(in.VersionDescription), in.LaunchTemplateData, svc.Now())
		return []string{t.ID, fmt.Sprint(v.Number)}, nil
	}, func(ids []string) *ec2.CreateLaunchTemplateVersionOutput {
		t := remembered(svc.state.LaunchTemplates, ids[:1], func(t Thing) *LaunchTemplate { return &LaunchTemplate{Thing: t} })[0]
		out := types.LaunchTemplateVersion{LaunchTemplateId: aws.String(t.ID)}
		if v := t.Versions[ids[1]]; v != nil {
			out = svc.versionOut(t, v)
		}
		return &ec2.CreateLaunchTemplateVersionOutput{LaunchTemplateVersion: &out}
	})
}

// modifyLaunchTemplate sets the default version. The client token is ignored: the call is
// idempotent.
func (svc *Service) modifyLaunchTemplate(in *ec2.ModifyLaunchTemplateInput) (*ec2.ModifyLaunchTemplateOutput, error) {
	t, err := svc.FindLaunchTemplate(in.LaunchTemplateId, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	v := t.Version(aws.ToString(in.DefaultVersion))
	if v == nil {
		return nil, t.NoVersion(aws.ToString(in.DefaultVersion))
	}
	t.Default = v.Number
	out := svc.launchTemplateOut(t)
	return &ec2.ModifyLaunchTemplateOutput{LaunchTemplate: &out}, nil
}

func (svc *Service) launchTemplateOut(t *LaunchTemplate) types.LaunchTemplate {
	return types.LaunchTemplate{
		LaunchTemplateId: aws.String(t.ID), LaunchTemplateName: aws.String(t.Name), CreateTime: aws.Time(t.Born), CreatedBy: aws.String(svc.iam.RootARN()),
		DefaultVersionNumber: aws.Int64(t.Default), LatestVersionNumber: aws.Int64(t.latest()), Tags: tagsOut(t.Tags),
	}
}

func (svc *Service) versionOut(t *LaunchTemplate, v *LaunchTemplateVersion) types.LaunchTemplateVersion {
	data := core.Recast[types.ResponseLaunchTemplateData](v.Data)
	return types.LaunchTemplateVersion{
		LaunchTemplateId: aws.String(t.ID), LaunchTemplateName: aws.String(t.Name), CreateTime: aws.Time(v.Born), CreatedBy: aws.String(svc.iam.RootARN()),
		VersionNumber: aws.Int64(v.Number), VersionDescription: core.Text(v.Description), DefaultVersion: aws.Bool(v.Number == t.Default), LaunchTemplateData: &data,
	}
}

func (svc *Service) describeLaunchTemplates(in *ec2.DescribeLaunchTemplatesInput) (*ec2.DescribeLaunchTemplatesOutput, error) {
	for _, name := range in.LaunchTemplateNames {
		if _, err := svc.FindLaunchTemplate(nil, &name); err != nil {
			return nil, err
		}
	}
	found, err := find(svc, svc.state.LaunchTemplates, query{ids: in.LaunchTemplateIds, filters: in.Filters}, fields[*LaunchTemplate]{
		"launch-template-name": func(t *LaunchTemplate) []string { return []string{t.Name} },
	})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(t *LaunchTemplate) bool {
		return len(in.LaunchTemplateNames) > 0 && !slices.Contains(in.LaunchTemplateNames, t.Name)
	})
	part, next, err := core.Page(svc.Account, found, in.NextToken, in.MaxResults, mostTemplateTypes)
	return &ec2.DescribeLaunchTemplatesOutput{LaunchTemplates: core.Each(part, svc.launchTemplateOut), NextToken: next}, err
}

// describeLaunchTemplateVersions returns versions of one template, or the latest and
// default versions of all.
func (svc *Service) describeLaunchTemplateVersions(in *ec2.DescribeLaunchTemplateVersionsInput) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
	templates := core.ByKey(svc.state.LaunchTemplates)
	if in.LaunchTemplateId != nil || in.LaunchTemplateName != nil {
		t, err := svc.FindLaunchTemplate(in.LaunchTemplateId, in.LaunchTemplateName)
		if err != nil {
			return nil, err
		}
		templates = []*LaunchTemplate{t}
	} else if len(in.Versions) == 0 || slices.ContainsFunc(in.Versions, func(v string) bool { return v != "$Latest" && v != "$Default" }) {
		return nil, core.Fail("MissingParameter", "a launch template ID or name, or the versions $Latest and $Default, must be specified")
	}
	var found []types.LaunchTemplateVersion
	for _, t := range templates {
		if !svc.shows(t) {
			continue
		}
		chosen, err := t.choose(in)
		if err != nil {
			return nil, err
		}
		found = append(found, core.Each(chosen, func(v *LaunchTemplateVersion) types.LaunchTemplateVersion { return svc.versionOut(t, v) })...)
	}
	part, next, err := core.Page(svc.Account, found, in.NextToken, in.MaxResults, mostTemplateTypes)
	return &ec2.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: part, NextToken: next}, err
}

// choose returns the requested versions, the newest first.
func (t *LaunchTemplate) choose(in *ec2.DescribeLaunchTemplateVersionsInput) (chosen []*LaunchTemplateVersion, err error) {
	least, most := int64(0), t.Last
	for _, bound := range []struct {
		s  *string
		to *int64
	}{{in.MinVersion, &least}, {in.MaxVersion, &most}} {
		if bound.s == nil {
			continue
		}
		if len(in.Versions) > 0 {
			return nil, core.Fail("InvalidParameterCombination", "versions and a range of versions cannot be specified together")
		}
		if *bound.to, err = strconv.ParseInt(*bound.s, 10, 64); err != nil {
			return nil, core.Fail("InvalidParameterValue", "the version %q is not a number", *bound.s)
		}
	}
	for _, s := range in.Versions {
		v := t.Version(s)
		if v == nil {
			return nil, t.NoVersion(s)
		}
		if !slices.Contains(chosen, v) {
			chosen = append(chosen, v)
		}
	}
	if len(in.Versions) == 0 {
		for _, v := range t.Versions {
			if least <= v.Number && v.Number <= most {
				chosen = append(chosen, v)
			}
		}
	}
	slices.SortStableFunc(chosen, func(x, y *LaunchTemplateVersion) int { return cmp.Compare(y.Number, x.Number) })
	return chosen, nil
}

// deleteLaunchTemplateVersions deletes versions, and returns the result for each. The
// error code for the default version is not documented; "unexpectedError" is the only one
// that fits.
func (svc *Service) deleteLaunchTemplateVersions(in *ec2.DeleteLaunchTemplateVersionsInput) (*ec2.DeleteLaunchTemplateVersionsOutput, error) {
	t, err := svc.FindLaunchTemplate(in.LaunchTemplateId, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	if len(in.Versions) == 0 || len(in.Versions) > mostTemplateTypes {
		return nil, core.Fail("InvalidParameterValue", "1 to %d versions can be deleted in one call", mostTemplateTypes)
	}
	out := &ec2.DeleteLaunchTemplateVersionsOutput{}
	for _, s := range in.Versions {
		if strings.HasPrefix(s, "$") {
			return nil, core.Fail("InvalidParameterValue", "versions are deleted by number, not as %s", s)
		}
		v, code, why := t.Versions[s], types.LaunchTemplateErrorCode(""), ""
		switch {
		case v == nil:
			code, why = types.LaunchTemplateErrorCodeLaunchTemplateVersionDoesNotExist, "the version does not exist"
		case v.Number == t.Default:
			code, why = types.LaunchTemplateErrorCodeUnexpectedError, "the default version cannot be deleted"
		}
		if number, _ := strconv.ParseInt(s, 10, 64); code != "" {
			out.UnsuccessfullyDeletedLaunchTemplateVersions = append(
				out.UnsuccessfullyDeletedLaunchTemplateVersions,
				types.DeleteLaunchTemplateVersionsResponseErrorItem{
					LaunchTemplateId: aws.String(t.ID), LaunchTemplateName: aws.String(t.Name), VersionNumber: aws.Int64(number),
					ResponseError: &types.ResponseError{Code: code, Message: aws.String(why)},
				},
			)
			continue
		}
		delete(t.Versions, s)
		out.SuccessfullyDeletedLaunchTemplateVersions = append(out.SuccessfullyDeletedLaunchTemplateVersions, types.DeleteLaunchTemplateVersionsResponseSuccessItem{
			LaunchTemplateId: aws.String(t.ID), LaunchTemplateName: aws.String(t.Name), VersionNumber: aws.Int64(v.Number),
		})
	}
	return out, nil
}

// deleteLaunchTemplate deletes a template, even if an Auto Scaling group uses it: the
// group then cannot launch, as in AWS. The template of an EKS node group cannot be
// deleted here; in AWS it can, and the node group becomes DEGRADED.
func (svc *Service) deleteLaunchTemplate(in *ec2.DeleteLaunchTemplateInput) (*ec2.DeleteLaunchTemplateOutput, error) {
	t, err := svc.FindLaunchTemplate(in.LaunchTemplateId, in.LaunchTemplateName)
	if err != nil {
		return nil, err
	}
	if user := svc.UserOfTemplate(t.ID); user != "" {
		return nil, core.Fail("DependencyViolation", "the launch template %s is that of %s", t.ID, user)
	}
	delete(svc.state.LaunchTemplates, t.ID)
	out := svc.launchTemplateOut(t)
	return &ec2.DeleteLaunchTemplateOutput{LaunchTemplate: &out}, nil
}

// LaunchTemplate returns the launch template with an ID, or nil.
func (svc *Service) LaunchTemplate(id string) *LaunchTemplate { return svc.state.LaunchTemplates[id] }

// checkTemplate validates the data of a launch template like RunInstances, except for
// what needs a subnet. AWS is less strict: it accepts references to missing resources
// with a warning, and fails at launch.
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
		if _, ok := svc.typeNamed(string(in.InstanceType)); !ok {
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
	tags, err := specified(
		l.in.TagSpecifications,
		types.ResourceTypeInstance,
		types.ResourceTypeVolume,
		types.ResourceTypeNetworkInterface,
		types.ResourceTypeSpotInstancesRequest,
	)
	if err != nil {
		return err
	}
	return l.model.Metadata.allow(tags[types.ResourceTypeInstance])
}

// filled completes a call from its launch template. As in AWS, each parameter comes as a
// whole from the call or from the template.
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
	if len(data.NetworkInterfaces) > 0 && in.SubnetId != nil && in.NetworkInterfaces == nil { // the template's interface is in the subnet of the call
		data.NetworkInterfaces[0].SubnetId, data.SubnetId = in.SubnetId, nil
	}
	return &data, nil
}

// checkEnclave validates the options of Nitro enclaves, which small and burstable types do
// not support.
func (svc *Service) checkEnclave(l *launch) error {
	if o := l.in.EnclaveOptions; o != nil && aws.ToBool(o.Enabled) {
		if l.kind.info.NitroEnclavesSupport != types.NitroEnclavesSupportSupported {
			return core.Fail("Unsupported", "instance type %s does not support Nitro enclaves", l.kind.name)
		}
		l.model.Launch["enclave"] = "true"
	}
	return nil
}

// prepared validates a launch without launching.
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
