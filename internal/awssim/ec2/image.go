package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Image is a machine image.
type Image struct {
	Thing
	Name, Owner, Description, Architecture, RootDevice string
	Created                                            time.Time
	RootSize                                           int32    // GiB
	SnapshotSize                                       int32    `json:",omitempty"` // GiB, if its root device is larger than the snapshot
	Devices                                            []Device // empty: only the root device, unencrypted
	BootMode, TPM, IMDS, SRIOV, UEFI                   string
	SourceImage, SourceRegion                          string    // only for copies
	Ready                                              time.Time // pending before
	Failure                                            string    // reason of the failure at that time; "": none
	NoENA                                              bool      `json:",omitempty"` // it has no driver for the Elastic Network Adapter
	Windows                                            bool      `json:",omitempty"`
}

// Device is a block device of an image.
type Device struct {
	Name, Virtual            string // Virtual: ephemeral0 etc., without a snapshot
	Snapshot, Type           string
	Size, IOPS, Throughput   int32 // GiB, IOPS, MiB/s
	Encrypted, KeepsInstance bool  // KeepsInstance: DeleteOnTermination is false
}

// Snapshot is a snapshot of the account.
type Snapshot struct {
	Thing
	Description, Key string
	Size             int32 // GiB
	Encrypted        bool
	Ready            time.Time // pending before
	Failure          string    // reason of the failure at that time; "": none
}

func (*Snapshot) kind() kind {
	return kind{
		prefix: "snap", name: "snapshot", missing: "InvalidSnapshot.NotFound", tags: types.ResourceTypeSnapshot, title: "Snapshot", apart: true,
	}
}

func (*Image) kind() kind {
	return kind{
		prefix: "ami", name: "image", missing: "InvalidAMIID.NotFound", tags: types.ResourceTypeImage, title: "Image", apart: true,
		simulate: (*Service).simulateImages,
	}
}

func (svc *Service) simulateImages() {
	everywhere(svc, svc.describeRegions, "AllRegions", "RegionNames", "Filters")
	everywhere(svc, svc.describeImages, "ImageIds", "Owners", "Filters", "IncludeDeprecated", "NextToken", "MaxResults")
	everywhere(svc, svc.copyImage, "Name", "SourceImageId", "SourceRegion", "ClientToken", "CopyImageTags", "Description", "DryRun", "Encrypted", "KmsKeyId",
		"TagSpecifications")
	everywhere(svc, svc.deregisterImage, "ImageId", "DeleteAssociatedSnapshots", "DryRun")
	everywhere(svc, svc.describeSnapshots, "SnapshotIds", "OwnerIds", "Filters", "NextToken", "MaxResults")
}

func (i *Image) state(now time.Time) types.ImageState {
	switch {
	case i.Ready.After(now):
		return types.ImageStatePending
	case i.Failure != "":
		return types.ImageStateFailed
	}
	return types.ImageStateAvailable
}

// leastRoot returns the size of the smallest root volume with which the image starts: that of its snapshot.
func (i *Image) leastRoot() int32 { return cmp.Or(i.SnapshotSize, i.RootSize) }

// devices returns the block devices of an image.
func (i *Image) devices() []Device {
	if len(i.Devices) > 0 {
		return i.Devices
	}
	return []Device{{Name: i.RootDevice, Snapshot: "snap-" + strings.TrimPrefix(i.ID, "ami-"), Size: i.RootSize, Type: string(types.VolumeTypeGp2)}}
}

func (d Device) out() types.BlockDeviceMapping {
	if d.Virtual != "" {
		return types.BlockDeviceMapping{DeviceName: aws.String(d.Name), VirtualName: aws.String(d.Virtual)}
	}
	b := &types.EbsBlockDevice{
		SnapshotId: core.Text(d.Snapshot), VolumeSize: aws.Int32(d.Size), VolumeType: types.VolumeType(d.Type),
		DeleteOnTermination: aws.Bool(!d.KeepsInstance), Encrypted: aws.Bool(d.Encrypted),
	}
	if d.IOPS != 0 {
		b.Iops = aws.Int32(d.IOPS)
	}
	if d.Throughput != 0 {
		b.Throughput = aws.Int32(d.Throughput)
	}
	return types.BlockDeviceMapping{DeviceName: aws.String(d.Name), Ebs: b}
}

func (svc *Service) imageOut(i *Image) types.Image {
	out := types.Image{
		ImageId: aws.String(i.ID), Name: aws.String(i.Name), OwnerId: aws.String(i.Owner), Description: aws.String(i.Description),
		ImageLocation: aws.String(i.Owner + "/" + i.Name), Architecture: types.ArchitectureValues(i.Architecture),
		CreationDate: aws.String(stamp(i.Created)), State: i.state(svc.Now()), ImageType: types.ImageTypeValuesMachine,
		VirtualizationType: types.VirtualizationTypeHvm, Hypervisor: types.HypervisorTypeXen, Public: aws.Bool(i.Owner != svc.Number()),
		EnaSupport:     aws.Bool(!i.NoENA),
		RootDeviceName: aws.String(i.RootDevice), RootDeviceType: types.DeviceTypeEbs, PlatformDetails: aws.String("Linux/UNIX"),
		BootMode: types.BootModeValues(i.BootMode), TpmSupport: types.TpmSupportValues(i.TPM), ImdsSupport: types.ImdsSupportValues(i.IMDS),
		SriovNetSupport: core.Text(i.SRIOV), SourceImageId: core.Text(i.SourceImage), SourceImageRegion: core.Text(i.SourceRegion),
		BlockDeviceMappings: core.Each(i.devices(), Device.out), Tags: tagsOut(i.Tags),
	}
	if i.Windows {
		out.Platform, out.PlatformDetails = types.PlatformValuesWindows, aws.String("Windows")
	}
	if out.State == types.ImageStateFailed {
		// The code is a guess, and not used by clients.
		out.StateReason = &types.StateReason{Code: aws.String("Client.InvalidKMSKey"), Message: aws.String(i.Failure)}
	}
	return out
}

func (svc *Service) describeImages(where place, in *ec2.DescribeImagesInput) (*ec2.DescribeImagesOutput, error) {
	svc.publishAsked(where, in.Filters)
	constant := func(v string) func(*Image) []string { return func(*Image) []string { return []string{v} } }
	filters := fields[*Image]{
		"image-id":            func(i *Image) []string { return []string{i.ID} },
		"name":                func(i *Image) []string { return []string{i.Name} },
		"owner-id":            func(i *Image) []string { return []string{i.Owner} },
		"description":         func(i *Image) []string { return []string{i.Description} },
		"architecture":        func(i *Image) []string { return []string{i.Architecture} },
		"creation-date":       func(i *Image) []string { return []string{stamp(i.Created)} },
		"root-device-name":    func(i *Image) []string { return []string{i.RootDevice} },
		"state":               func(i *Image) []string { return []string{string(i.state(svc.Now()))} },
		"is-public":           func(i *Image) []string { return flag(i.Owner != svc.Number()) },
		"source-image-id":     func(i *Image) []string { return oneValue(i.SourceImage) },
		"source-image-region": func(i *Image) []string { return oneValue(i.SourceRegion) },
		"virtualization-type": constant("hvm"),
		"image-type":          constant("machine"),
		"root-device-type":    constant("ebs"),
		"hypervisor":          constant("xen"),
	}
	asked := in.Filters
	if len(in.Owners) > 0 {
		owners := slices.DeleteFunc(slices.Clone(in.Owners), func(o string) bool { return o == "self" || o == "amazon" })
		if slices.Contains(in.Owners, "self") {
			owners = append(owners, svc.Number())
		}
		asked = append(slices.Clip(asked), types.Filter{Name: aws.String("owner-id"), Values: append(owners, "-")})
	}
	q := query{ids: in.ImageIds, filters: asked, token: in.NextToken, size: in.MaxResults}
	if in.MaxResults == nil && in.NextToken == nil { // without pagination, AWS returns all
		all, err := find(svc, where.Images, q, filters)
		return &ec2.DescribeImagesOutput{Images: core.Each(all, svc.imageOut)}, err
	}
	images, next, err := describe(svc, where.Images, q, filters, svc.imageOut)
	return &ec2.DescribeImagesOutput{Images: images, NextToken: next}, err
}

func (s *Snapshot) state(now time.Time) types.SnapshotState {
	switch {
	case s.Ready.After(now):
		return types.SnapshotStatePending
	case s.Failure != "":
		return types.SnapshotStateError
	}
	return types.SnapshotStateCompleted
}

func (svc *Service) snapshotOut(s *Snapshot) types.Snapshot {
	now := svc.Now()
	out := types.Snapshot{
		SnapshotId: aws.String(s.ID), OwnerId: aws.String(svc.Number()), Description: aws.String(s.Description), VolumeSize: aws.Int32(s.Size),
		Encrypted: aws.Bool(s.Encrypted), KmsKeyId: core.Text(s.Key), StartTime: aws.Time(s.Born), State: s.state(now), Progress: aws.String("100%"),
		VolumeId: aws.String("vol-ffffffff"), Tags: tagsOut(s.Tags),
	}
	switch {
	case s.Failure != "":
		out.Progress = aws.String("0%")
		if out.State == types.SnapshotStateError {
			out.StateMessage = aws.String(s.Failure)
		}
	case out.State == types.SnapshotStatePending:
		out.Progress = aws.String(fmt.Sprintf("%d%%", 100*now.Sub(s.Born)/s.Ready.Sub(s.Born)))
	}
	return out
}

// describeSnapshots returns the account's own snapshots. Public snapshots are not
// simulated.
func (svc *Service) describeSnapshots(where place, in *ec2.DescribeSnapshotsInput) (*ec2.DescribeSnapshotsOutput, error) {
	for _, owner := range in.OwnerIds {
		if owner != "self" && owner != svc.Number() {
			return nil, core.NotSimulated("snapshots of the owner %q", owner)
		}
	}
	snapshots, next, err := describe(svc, where.Snapshots, query{in.SnapshotIds, in.Filters, in.NextToken, in.MaxResults}, fields[*Snapshot]{
		"snapshot-id": func(s *Snapshot) []string { return []string{s.ID} },
		"description": func(s *Snapshot) []string { return []string{s.Description} },
		"encrypted":   func(s *Snapshot) []string { return flag(s.Encrypted) },
		"owner-id":    func(*Snapshot) []string { return []string{svc.Number()} },
		"status":      func(s *Snapshot) []string { return []string{string(s.state(svc.Now()))} },
	}, func(s *Snapshot) types.Snapshot { return svc.snapshotOut(s) })
	return &ec2.DescribeSnapshotsOutput{Snapshots: snapshots, NextToken: next}, err
}

// inventoryImages lists the account's own images and snapshots.
func (svc *Service) inventoryImages() (all []string) {
	for _, p := range svc.places() {
		for _, i := range p.Images {
			if !i.Given {
				all = append(all, fmt.Sprintf("Image %s in %s %s", i.Name, p.region, i.state(svc.Now())))
			}
		}
		for _, s := range p.Snapshots {
			origin, _, _ := strings.Cut(s.Description, ". Task")
			all = append(all, fmt.Sprintf("Snapshot %q in %s %s, encrypted %t", anonymous(origin), p.region, s.state(svc.Now()), s.Encrypted))
		}
	}
	return all
}

// Image returns the image with an ID in the account's region, or nil.
func (svc *Service) Image(id string) *Image { return svc.state.Images[id] }

// ImageNamed returns the ID of the image with a name in the account's region.
func (svc *Service) ImageNamed(name string) (string, bool) {
	for _, i := range core.ByKey(svc.state.Images) {
		if i.Name == name {
			return i.ID, true
		}
	}
	return "", false
}

// mostCopies is the maximum number of concurrent snapshot copies to one region ("Amazon
// EBS quotas").
const mostCopies = 20

// dryRun returns the error for a successful dry run.
func dryRun(asked *bool) error {
	if aws.ToBool(asked) {
		return core.Fail("DryRunOperation", "request would have succeeded, but DryRun flag is set")
	}
	return nil
}

// copyImage starts to copy an image to the region of the call. It copies each EBS
// snapshot, the block device mappings and the attributes. A name that exists is rejected,
// as by RegisterImage; AWS used to accept it (hashicorp/packer#2123). A dry run checks
// permissions and the source image, and not the other parameters.
func (svc *Service) copyImage(where place, in *ec2.CopyImageInput) (*ec2.CopyImageOutput, error) {
	name := aws.ToString(in.Name)
	tags, err := specified(in.TagSpecifications, types.ResourceTypeImage, types.ResourceTypeSnapshot)
	if err != nil {
		return nil, err
	}
	key := aws.ToString(in.KmsKeyId)
	switch {
	case !regex.Of(`^[A-Za-z0-9()\[\] ./'@_-]{3,128}$`).MatchString(name):
		return nil, core.Fail("InvalidAMIName.Malformed", "AMI names must be between 3 and 128 characters long, and may contain letters, numbers and ()[] ./-'@_")
	case len(aws.ToString(in.Description)) > 255:
		return nil, core.Fail("InvalidParameterValue", "the description is longer than 255 characters")
	case key != "" && !aws.ToBool(in.Encrypted):
		return nil, core.Fail("InvalidParameterDependency", "the parameter KmsKeyId requires the parameter Encrypted to be set")
	}
	source, err := svc.sourceImage(aws.ToString(in.SourceRegion), in.SourceImageId)
	if err != nil {
		return nil, err
	}
	if err := dryRun(in.DryRun); err != nil {
		return nil, err
	}
	return idempotent(svc, "CopyImage in "+where.region, in.ClientToken, in, func() ([]string, error) {
		for _, i := range where.Images {
			if i.Owner == svc.Number() && i.Name == name && i.state(svc.Now()) != types.ImageStateFailed {
				return nil, core.Fail("InvalidAMIName.Duplicate", "AMI name %s is already in use by AMI %s", name, i.ID)
			}
		}
		copied := *source
		copied.Thing = svc.newThing("ami", tags[types.ResourceTypeImage])
		if aws.ToBool(in.CopyImageTags) && source.Owner == svc.Number() {
			more := maps.Clone(source.Tags)
			maps.Copy(more, copied.Tags)
			copied.Tags = more
		}
		copied.Name, copied.Owner, copied.Created = name, svc.Number(), svc.Now()
		copied.Description = aws.ToString(in.Description) // nil: the default of AWS is unknown
		copied.SourceImage, copied.SourceRegion = source.ID, aws.ToString(in.SourceRegion)
		if err := svc.copySnapshots(where, &copied, in, tags[types.ResourceTypeSnapshot]); err != nil {
			return nil, err
		}
		where.Images[copied.ID] = &copied
		return []string{copied.ID}, nil
	}, func(ids []string) *ec2.CopyImageOutput { return &ec2.CopyImageOutput{ImageId: aws.String(ids[0])} })
}

// sourceImage returns the image to copy.
func (svc *Service) sourceImage(region string, id *string) (*Image, error) {
	if svc.optIn(region) == "" {
		return nil, core.Fail("InvalidParameterValue", "the source region '%s' is not valid", region) // the code is a guess
	}
	from, err := svc.placeIn(region)
	if err != nil {
		return nil, err
	}
	source, err := lookup(svc, from.Images, id)
	if err != nil {
		return nil, err
	}
	if source.state(svc.Now()) != types.ImageStateAvailable {
		return nil, core.Fail("InvalidAMIID.Unavailable", "the image ID '%s' is not available", source.ID)
	}
	return source, nil
}

// copySnapshots starts to copy the snapshots of an image.
func (svc *Service) copySnapshots(where place, i *Image, in *ec2.CopyImageInput, tags map[string]string) error {
	i.Devices = slices.Clone(i.devices())
	under, ebs := 0, 0
	for _, s := range where.Snapshots {
		if s.state(svc.Now()) == types.SnapshotStatePending {
			under++
		}
	}
	for _, d := range i.Devices {
		if d.Virtual == "" {
			ebs++
		}
	}
	if under+ebs > mostCopies {
		return core.Fail("ResourceLimitExceeded", "too many snapshot copies in progress; the limit is %d per destination region", mostCopies)
	}
	encrypted, key := aws.ToBool(in.Encrypted), aws.ToString(in.KmsKeyId)
	arn, known := svc.imageKey(where.region, key)
	for n, d := range i.Devices {
		if d.Virtual != "" {
			continue
		}
		s := &Snapshot{
			Thing:     svc.newThing("snap", maps.Clone(tags)),
			Size:      d.Size,
			Encrypted: encrypted || d.Encrypted,
			Description: fmt.Sprintf(
				"Copied for DestinationAmi %s from SourceAmi %s for SourceSnapshot %s. Task created on %d.",
				i.ID,
				i.SourceImage,
				d.Snapshot,
				svc.Now().UnixMilli(),
			),
		}
		s.Ready = svc.Now().Add(core.Between(SnapshotCopies, SnapshotCopiesMost, s.ID))
		if s.Encrypted {
			s.Key = arn
		}
		if !known { // AWS checks keys after it has accepted the call
			s.Ready, s.Failure = svc.Now().Add(KeyIsRefused), "Given key ID is not accessible"
			i.Failure = s.Failure
		}
		where.Snapshots[s.ID] = s
		i.Devices[n].Snapshot, i.Devices[n].Encrypted = s.ID, s.Encrypted
		if ready := s.Ready.Add(ImageFollows); ready.After(i.Ready) {
			i.Ready = ready
		}
	}
	return nil
}

// imageKey returns the ARN of the KMS key in a call, and whether it exists; without a
// key, that of the AWS managed key.
func (svc *Service) imageKey(region, key string) (arn string, known bool) {
	head := "arn:" + svc.Partition() + ":kms:" + region + ":" + svc.Number() + ":"
	name := strings.TrimPrefix(strings.TrimPrefix(key, head), "key/")
	if name == "" || name == "alias/aws/ebs" {
		return head + "key/00000000-0000-4000-8000-" + svc.Number(), true
	}
	for id, alias := range svc.state.Keys {
		if name == id || name == alias {
			return head + "key/" + id, true
		}
	}
	return key, false
}

// deregisterImage deregisters an image of the account and, with
// DeleteAssociatedSnapshots, deletes the snapshots that no other image uses.
func (svc *Service) deregisterImage(where place, in *ec2.DeregisterImageInput) (*ec2.DeregisterImageOutput, error) {
	i, err := lookup(svc, where.Images, in.ImageId)
	if err != nil {
		return nil, err
	}
	if i.Owner != svc.Number() {
		return nil, core.Fail("AuthFailure", "not authorized for image: %s", i.ID)
	}
	if i.state(svc.Now()) == types.ImageStatePending { // AWS may allow it
		return nil, core.Fail("IncorrectState", "the image %s is pending", i.ID)
	}
	if err := dryRun(in.DryRun); err != nil {
		return nil, err
	}
	delete(where.Images, i.ID)
	out := &ec2.DeregisterImageOutput{Return: aws.Bool(true)}
	if !aws.ToBool(in.DeleteAssociatedSnapshots) {
		return out, nil
	}
	for _, d := range i.devices() {
		shared := false
		for _, other := range where.Images {
			shared = shared || slices.ContainsFunc(other.devices(), func(o Device) bool { return o.Snapshot == d.Snapshot })
		}
		if s := where.Snapshots[d.Snapshot]; s != nil && !shared {
			delete(where.Snapshots, d.Snapshot)
			out.DeleteSnapshotResults = append(out.DeleteSnapshotResults, types.DeleteSnapshotReturnCode{
				SnapshotId: aws.String(d.Snapshot), ReturnCode: types.SnapshotReturnCodesSuccess,
			})
		}
	}
	return out, nil
}
