package ec2

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// BootHashTag is a tag of the instances that a launch template launches: a hash of the
// bootstrap data. The key is CAPA's (LaunchTemplateBootstrapDataHash). The value differs
// from CAPA's, which hashes other bytes.
const BootHashTag = "sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-hash"

// LaunchTemplate is the launch template of a pool. A change of its content creates a new
// version.
type LaunchTemplate struct {
	Name string
	// Spec is spec.awsLaunchTemplate of the pool. The other fields (groups, image, key)
	// take precedence.
	Spec   expinfrav1.AWSLaunchTemplate
	Groups []*graph.Ref[SecurityGroupState]
	EKS    graph.Resource         // the EKS cluster whose security group is added; nil if self-managed
	Image  *graph.Ref[ImageState] // nil if EKS selects the AMI
	Key    string                 // key pair; "" for none
	Boot   UserData               // nil if EKS creates the user data
	Adopt  bool                   // the bootstrap data may be that of another tool
	Tags   cloud.Tags             // of the template
	// InstanceTags are the tags of the instances and volumes that it launches.
	InstanceTags cloud.Tags
	FormerTags   []string // keys of such tags that it should not have any more

	// Needed lists resources that have to exist before a machine boots.
	Needed []graph.Edge
}

// LaunchTemplateState is a launch template with its latest version.
type LaunchTemplateState struct {
	identity.Object
	Name         string
	Version      int64             // the latest
	Default      int64             // the default version; never deleted
	Content      map[string]string // parameters of the latest version, without user data and tags
	InstanceTags cloud.Tags        // tags of its instances and volumes
	Description  string            // of the latest version
	Server       cost.Server       // the machine that the latest version launches
	Devices      []string          // names of the volumes of the latest version
	Lost         bool              // the boot data that its machines load does not exist any more
	userData     []byte            // of the latest version
}

var _ graph.Managed[LaunchTemplateState] = (*LaunchTemplate)(nil)

// Needs implements graph.Desired.
func (t *LaunchTemplate) Needs() []graph.Edge {
	var needs []graph.Edge
	for _, g := range t.Groups {
		needs = append(needs, graph.Exists(g)...)
	}
	needs = append(append(needs, graph.Reads(t.Image)...), graph.On(t.EKS)...)
	if t.Boot != nil {
		needs = append(needs, t.Boot.Needs()...)
	}
	return append(needs, t.Needed...)
}

// Find implements graph.Desired.
func (t *LaunchTemplate) Find(ctx context.Context, c *cloud.Clients) (*LaunchTemplateState, error) {
	s, err := t.Identify(ctx, c, nil)
	if s == nil || err != nil {
		return s, err
	}
	have := *s
	if err := have.describeLatest(ctx, c); err != nil {
		return nil, err
	}
	if data, is := t.Boot.(Losable); is && !t.Adopt {
		have.Lost, err = data.Lost(ctx, c, have.userData)
	}
	return &have, err
}

// Identify implements graph.Identified.
func (t *LaunchTemplate) Identify(ctx context.Context, c *cloud.Clients, _ *LaunchTemplateState) (*LaunchTemplateState, error) {
	all, err := LaunchTemplates(ctx, c)
	if err != nil {
		return nil, err
	}
	return identity.Find(all, t.Tags)
}

// CheckCreation implements graph.CheckedCreation: the name of a launch template is unique in its account and region (CreateLaunchTemplate, API
// reference).
func (t *LaunchTemplate) CheckCreation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	out, err := c.EC2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{cloud.Filter("launch-template-name", t.Name)}})
	if err != nil {
		return "", err
	}
	for _, x := range out.LaunchTemplates {
		if s := launchTemplateState(x); !s.IsOwned(c) {
			return fmt.Sprintf(
				"a launch template named %s exists (%s) that is not the cluster's: %sdelete it, or give the pool another name",
				t.Name,
				s.ID,
				kind.RestoreAdvice(s.ID, s.Tags, t.Tags),
			), nil
		}
	}
	return "", nil
}

// describeLatest sets the fields of the latest version.
func (s *LaunchTemplateState) describeLatest(ctx context.Context, c *cloud.Clients) error {
	out, err := cloud.Remember(ctx, c, "launch template "+s.ID, func(ctx context.Context) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
		return c.EC2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &s.ID, Versions: []string{"$Latest"}})
	})
	if err != nil {
		return err
	}
	for _, v := range out.LaunchTemplateVersions {
		s.Version, s.Description = aws.ToInt64(v.VersionNumber), aws.ToString(v.VersionDescription)
		if v.LaunchTemplateData == nil {
			continue
		}
		if s.userData, err = base64.StdEncoding.DecodeString(aws.ToString(v.LaunchTemplateData.UserData)); err != nil {
			return err
		}
		s.Content, s.Server = parameterTexts(*v.LaunchTemplateData), templateServer(*v.LaunchTemplateData)
		for _, m := range v.LaunchTemplateData.BlockDeviceMappings {
			s.Devices = append(s.Devices, aws.ToString(m.DeviceName))
		}
		for _, spec := range v.LaunchTemplateData.TagSpecifications {
			if spec.ResourceType == types.ResourceTypeInstance {
				s.InstanceTags = cloud.FromEC2(spec.Tags)
			}
		}
	}
	return nil
}

// Diff implements graph.Desired. A new version resolves all differences except for the
// tags of the template.
func (t *LaunchTemplate) Diff(have *LaunchTemplateState) (d plan.Diff) {
	t.diffContent(have, &d)
	if have.Lost {
		d.Set(storedDataField, "missing", "stored")
	}
	d.Tags(have.Tags, t.Tags)
	return d
}

// needsNewVersion reports whether the content of the latest version differs.
func (t *LaunchTemplate) needsNewVersion(have *LaunchTemplateState) bool {
	var d plan.Diff
	t.diffContent(have, &d)
	return len(d) > 0
}

func (t *LaunchTemplate) diffContent(have *LaunchTemplateState, d *plan.Diff) {
	want := t.content()
	all := maps.Clone(want)
	maps.Copy(all, have.Content)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d.Set(name, have.Content[name], want[name])
	}
	if t.Boot != nil && !t.Adopt {
		d.Set(bootDataField, have.InstanceTags[BootHashTag], t.Boot.Fingerprint())
	}
	for _, k := range append(slices.Sorted(maps.Keys(t.InstanceTags)), t.FormerTags...) {
		d.Set("launched tag "+k, have.InstanceTags[k], t.InstanceTags[k])
	}
}

// eksRootDevice is the root device of the AMIs that EKS selects.
const eksRootDevice = "/dev/xvda"

// image returns the AMI. Of an AMI that EKS selects only the root device is known, which
// is the same for all of them.
func (t *LaunchTemplate) image() (ImageState, bool) {
	if t.Image == nil {
		return ImageState{RootDevice: eksRootDevice}, true
	}
	return t.Image.Found()
}

// content returns the desired parameters. Unknown values are resolved, and errors
// reported, when the version is created.
func (t *LaunchTemplate) content() map[string]string {
	image, known := t.image()
	if t.Image != nil && !known {
		image.ID = plan.Unknown
	}
	data, err := t.data(image, nil)
	if err != nil {
		return map[string]string{"rootVolume": err.Error()}
	}
	want := parameterTexts(*data)
	if t.Image != nil && !known && t.Spec.RootVolume != nil {
		want["blockDeviceMappings"] = plan.Unknown // contains the root device of the image
	}
	return want
}

// VersionOf returns the latest version of a launch template. If its desired content is
// given, this includes a version that a plan would create.
func VersionOf(template *graph.Ref[LaunchTemplateState], content *LaunchTemplate) string {
	t, ok := template.Found()
	if !ok {
		return plan.Unknown
	}
	if content != nil && content.needsNewVersion(&t) {
		t.Version++
	}
	return fmt.Sprint(t.Version)
}

// Create implements graph.Creator.
func (t *LaunchTemplate) Create(ctx context.Context, c *cloud.Clients) (*LaunchTemplateState, error) {
	data, err := t.versionData(ctx, c)
	if err != nil {
		return nil, err
	}
	out, err := c.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &t.Name, LaunchTemplateData: data, TagSpecifications: t.Tags.On(types.ResourceTypeLaunchTemplate),
		ClientToken: c.Token("launch template", t.Name),
	})
	if err != nil {
		return nil, err
	}
	s := launchTemplateState(*out.LaunchTemplate)
	s.Tags, s.Content, s.InstanceTags = t.Tags, parameterTexts(*data), t.instanceTags()
	return &s, nil
}

// Update implements graph.Updater.
func (t *LaunchTemplate) Update(ctx context.Context, c *cloud.Clients, have *LaunchTemplateState, d plan.Diff) (*LaunchTemplateState, error) {
	after := *have
	if d.HasTags() {
		var err error
		if after.Object, err = changeTags(ctx, c, have.Object, t.Tags, d); err != nil {
			return nil, err
		}
	}
	if !t.needsNewVersion(have) && !have.Lost {
		return &after, nil
	}
	data, err := t.versionData(ctx, c) // this stores the boot data
	if err != nil {
		return nil, err
	}
	after.Lost = false
	if !t.needsNewVersion(have) && aws.ToString(data.UserData) == base64.StdEncoding.EncodeToString(have.userData) {
		return &after, nil
	}
	if err := deleteOldVersion(ctx, c, have); err != nil {
		return nil, err
	}
	in := &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: &have.ID, LaunchTemplateData: data,
		ClientToken: c.Token("launch template version", have.ID, fmt.Sprint(have.Version), aws.ToString(data.UserData)),
	}
	if after.Description = ""; t.keepsMachines(have) {
		after.Description = keepsMachines
		in.VersionDescription = &after.Description
	}
	out, err := c.EC2.CreateLaunchTemplateVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	after.Version, after.Content, after.InstanceTags = aws.ToInt64(out.LaunchTemplateVersion.VersionNumber), parameterTexts(*data), t.instanceTags()
	return &after, nil
}

// deleteOldVersion deletes the oldest version that is not in use if there are three or
// more, so that there are three again after the next one. CAPA does the same
// (PruneLaunchTemplateVersions).
func deleteOldVersion(ctx context.Context, c *cloud.Clients, have *LaunchTemplateState) error {
	var old []int64
	p := ec2.NewDescribeLaunchTemplateVersionsPaginator(c.EC2, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &have.ID})
	ctx = cloud.Listing(ctx)
	for p.HasMorePages() {
		page, err := p.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, v := range page.LaunchTemplateVersions {
			old = append(old, aws.ToInt64(v.VersionNumber))
		}
	}
	if len(old) < 3 {
		return nil
	}
	slices.Sort(old)
	old = slices.DeleteFunc(old, func(v int64) bool { return v == have.Default || v == have.Version })
	_, err := c.EC2.DeleteLaunchTemplateVersions(ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: &have.ID, Versions: []string{fmt.Sprint(old[0])}})
	return err
}

// Delete implements graph.Deleter.
func (t *LaunchTemplate) Delete(ctx context.Context, c *cloud.Clients, have *LaunchTemplateState) error {
	_, err := c.EC2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &have.ID})
	return err
}

// versionData returns the data of a new version, with user data.
func (t *LaunchTemplate) versionData(ctx context.Context, c *cloud.Clients) (*types.RequestLaunchTemplateData, error) {
	var raw []byte
	if t.Boot != nil {
		var err error
		if raw, err = t.Boot.Prepare(ctx, c); err != nil {
			return nil, fmt.Errorf("bootstrap data: %w", err)
		}
	}
	image, known := t.image()
	if t.Image != nil && !known {
		return nil, errors.New("the image has not been looked up yet")
	}
	return t.data(image, raw)
}

// instanceTags returns the tags of instances and volumes, with the bootstrap data hash.
func (t *LaunchTemplate) instanceTags() cloud.Tags {
	if t.Boot == nil {
		return t.InstanceTags
	}
	return t.InstanceTags.With(cloud.Tags{BootHashTag: t.Boot.Fingerprint()})
}

// data returns the data of a version.
func (t *LaunchTemplate) data(image ImageState, raw []byte) (*types.RequestLaunchTemplateData, error) {
	out, err := t.machine().templateData(image)
	if err != nil {
		return nil, err
	}
	if t.Spec.InstanceMetadataOptions == nil {
		out.MetadataOptions = nil // as in CAPA: the defaults of the image, of the account or of EKS apply
	}
	if o := t.Spec.EnclaveOptions; o != nil {
		out.EnclaveOptions = &types.LaunchTemplateEnclaveOptionsRequest{Enabled: o.Enabled}
	}
	if len(raw) > 0 {
		out.UserData = aws.String(base64.StdEncoding.EncodeToString(raw))
	}
	if tags := t.instanceTags().EC2(); len(tags) > 0 {
		for _, kind := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume} {
			out.TagSpecifications = append(out.TagSpecifications, types.LaunchTemplateTagSpecificationRequest{ResourceType: kind, Tags: tags})
		}
	}
	return out, nil
}

// Request implements graph.Requested. A new version has the same data as a new launch template.
func (t *LaunchTemplate) Request() (service, operation string, input any) {
	image, _ := t.image()
	data, err := t.data(image, nil)
	if err != nil {
		return "EC2", "CreateLaunchTemplate", nil
	}
	return "EC2", "CreateLaunchTemplate", &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &t.Name, LaunchTemplateData: data, TagSpecifications: t.Tags.On(types.ResourceTypeLaunchTemplate),
	}
}

// LaunchTemplates lists the launch templates of the cluster without their content.
func LaunchTemplates(ctx context.Context, c *cloud.Clients) ([]LaunchTemplateState, error) {
	return cloud.Remember(ctx, c, "launch templates", func(ctx context.Context) ([]LaunchTemplateState, error) {
		p := ec2.NewDescribeLaunchTemplatesPaginator(c.EC2, &ec2.DescribeLaunchTemplatesInput{Filters: c.OwnedFilters()})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeLaunchTemplatesOutput) (out []LaunchTemplateState) {
			for _, x := range o.LaunchTemplates {
				out = append(out, launchTemplateState(x))
			}
			return out
		})
	})
}

// templatesOf lists the launch templates of LaunchTemplates, and those that a controller in the cluster, such as Karpenter, has made.
func templatesOf(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]LaunchTemplateState, error) {
	all, err := LaunchTemplates(ctx, c)
	if err != nil || of.Kubernetes == "" {
		return all, err
	}
	made, err := cloud.Remember(ctx, c, "launch templates made in "+of.Kubernetes, func(ctx context.Context) ([]LaunchTemplateState, error) {
		p := ec2.NewDescribeLaunchTemplatesPaginator(c.EC2, &ec2.DescribeLaunchTemplatesInput{
			Filters: []types.Filter{cloud.Filter("tag-key", of.Tag(), kind.KarpenterClusterTag, kind.OldKarpenterClusterTag)},
		})
		return cloud.Pages(ctx, p, func(o *ec2.DescribeLaunchTemplatesOutput) (out []LaunchTemplateState) {
			for _, x := range o.LaunchTemplates {
				if s := launchTemplateState(x); (of.Created(s.Tags) || of.Karpenter(s.Tags)) && s.Tags[kind.NodeGroupClusterTag] == "" {
					out = append(out, s)
				}
			}
			return out
		})
	})
	return append(slices.Clip(all), made...), err
}

// LaunchTemplateExists reports whether the account has a launch template: AWS permits to delete one that a group uses.
func LaunchTemplateExists(ctx context.Context, c *cloud.Clients, id string) (bool, error) {
	_, err := c.EC2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{id}})
	if cloud.NotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// LaunchTemplateUserData returns the user data of the latest version of a launch template.
func LaunchTemplateUserData(ctx context.Context, c *cloud.Clients, name string) ([]byte, error) {
	out, err := c.EC2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: &name, Versions: []string{"$Latest"}})
	if err != nil {
		return nil, err
	}
	for _, v := range out.LaunchTemplateVersions {
		if v.LaunchTemplateData != nil {
			return base64.StdEncoding.DecodeString(aws.ToString(v.LaunchTemplateData.UserData))
		}
	}
	return nil, fmt.Errorf("launch template %s has no version", name)
}

// LaunchTemplatesIfAllowed lists the launch templates of the cluster without their
// content. Without permission to list them, there are none.
func LaunchTemplatesIfAllowed(ctx context.Context, c *cloud.Clients) ([]LaunchTemplateState, error) {
	all, err := LaunchTemplates(ctx, c)
	if cloud.Denied(err) {
		return nil, nil
	}
	return all, err
}

func launchTemplateState(x types.LaunchTemplate) LaunchTemplateState {
	return LaunchTemplateState{
		Object: identity.Object{ID: aws.ToString(x.LaunchTemplateId), Tags: cloud.FromEC2(x.Tags)}, Name: aws.ToString(x.LaunchTemplateName),
		Version: aws.ToInt64(x.LatestVersionNumber), Default: cmp.Or(aws.ToInt64(x.DefaultVersionNumber), 1),
	}
}

// machine returns a machine that the template launches.
func (t *LaunchTemplate) machine() *Instance {
	s := t.Spec
	return &Instance{Groups: t.Groups, EKS: t.EKS, Key: t.Key, Spec: infrav1.AWSMachineSpec{
		InstanceType: s.InstanceType, IAMInstanceProfile: s.IamInstanceProfile, RootVolume: s.RootVolume, NonRootVolumes: s.NonRootVolumes,
		SpotMarketOptions: s.SpotMarketOptions, MarketType: s.MarketType, InstanceMetadataOptions: s.InstanceMetadataOptions, PrivateDNSName: s.PrivateDNSName,
		CapacityReservationID: s.CapacityReservationID, CapacityReservationPreference: s.CapacityReservationPreference,
		AdditionalSecurityGroups: s.AdditionalSecurityGroups,
	}}
}

// LaunchTemplateKind is the kind of launch templates.
const LaunchTemplateKind = "launch-template"

// launchTemplateKind declares launch templates.
func launchTemplateKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: LaunchTemplateKind, Rehearsed: true, Area: kind.AreaMachines, Type: types.ResourceTypeLaunchTemplate, InCluster: true,
		ReadActions: []string{"ec2:DescribeLaunchTemplateVersions", "ec2:DescribeLaunchTemplates"}, Statement: kind.LaunchTemplates,
		Actions: []string{"ec2:CreateLaunchTemplate", "ec2:CreateLaunchTemplateVersion", "ec2:DeleteLaunchTemplate", "ec2:DeleteLaunchTemplateVersions"},
	}, kind.Functions[LaunchTemplateState]{
		List: templatesOf, Delete: &LaunchTemplate{},
		Status: func(s LaunchTemplateState) (state, detail string) {
			return "", kind.Join(fmt.Sprintf("version %d", s.Version), s.Content["instanceType"])
		},
	})
}
