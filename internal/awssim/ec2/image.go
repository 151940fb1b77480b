package ec2

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Image is a machine image.
type Image struct {
	Thing
	Name, Owner, Description, Architecture, RootDevice string
	Created                                            time.Time
	RootSize                                           int32    // GiB
	Devices                                            []Device // empty: the root device alone, unencrypted
	BootMode, TPM, IMDS, SRIOV, UEFI                   string
	SourceImage, SourceRegion                          string    // of a copy
	Ready                                              time.Time // pending until then
	Failure                                            string    // why it fails then; "": it does not
}

func (*Image) kind() kind {
	return kind{
		prefix: "ami", name: "image", missing: "InvalidAMIID.NotFound", tags: types.ResourceTypeImage, title: "Image", apart: true,
		simulate: (*Service).simulateImages,
	}
}

// Device is a block device of an image.
type Device struct {
	Name, Virtual            string // Virtual: ephemeral0 and so on, in place of a snapshot
	Snapshot, Type           string
	Size, IOPS, Throughput   int32 // GiB, operations and MiB a second
	Encrypted, KeepsInstance bool  // KeepsInstance: not deleted with the instance
}

// Snapshot is a snapshot that belongs to the account.
type Snapshot struct {
	Thing
	Description, Key string
	Size             int32 // GiB
	Encrypted        bool
	Ready            time.Time // pending until then
	Failure          string    // why it fails then; "": it does not
}

func (*Snapshot) kind() kind {
	return kind{
		prefix: "snap", name: "snapshot", missing: "InvalidSnapshot.NotFound", tags: types.ResourceTypeSnapshot, title: "Snapshot", apart: true,
	}
}

func (svc *Service) simulateImages() {
	everywhere(svc, svc.describeRegions, "AllRegions", "RegionNames", "Filters")
	everywhere(svc, svc.describeImages, "ImageIds", "Owners", "Filters", "NextToken", "MaxResults")
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
		VirtualizationType: types.VirtualizationTypeHvm, Hypervisor: types.HypervisorTypeXen, Public: aws.Bool(i.Owner != core.AccountID), EnaSupport: aws.Bool(true),
		RootDeviceName: aws.String(i.RootDevice), RootDeviceType: types.DeviceTypeEbs, PlatformDetails: aws.String("Linux/UNIX"),
		BootMode: types.BootModeValues(i.BootMode), TpmSupport: types.TpmSupportValues(i.TPM), ImdsSupport: types.ImdsSupportValues(i.IMDS),
		SriovNetSupport: core.Text(i.SRIOV), SourceImageId: core.Text(i.SourceImage), SourceImageRegion: core.Text(i.SourceRegion),
		BlockDeviceMappings: core.Each(i.devices(), Device.out), Tags: tagsOut(i.Tags),
	}
	if out.State == types.ImageStateFailed {
		// The code is a guess; nothing depends on it.
		out.StateReason = &types.StateReason{Code: aws.String("Client.InvalidKMSKey"), Message: aws.String(i.Failure)}
	}
	return out
}

func (svc *Service) describeImages(where place, in *ec2.DescribeImagesInput) (*ec2.DescribeImagesOutput, error) {
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
		"is-public":           func(i *Image) []string { return flag(i.Owner != core.AccountID) },
		"source-image-id":     func(i *Image) []string { return one(i.SourceImage) },
		"source-image-region": func(i *Image) []string { return one(i.SourceRegion) },
		"virtualization-type": constant("hvm"),
		"image-type":          constant("machine"),
		"root-device-type":    constant("ebs"),
		"hypervisor":          constant("xen"),
	}
	asked := in.Filters
	if len(in.Owners) > 0 {
		owners := slices.DeleteFunc(slices.Clone(in.Owners), func(o string) bool { return o == "self" || o == "amazon" })
		if slices.Contains(in.Owners, "self") {
			owners = append(owners, core.AccountID)
		}
		asked = append(slices.Clip(asked), types.Filter{Name: aws.String("owner-id"), Values: append(owners, "-")})
	}
	q := query{ids: in.ImageIds, filters: asked, token: in.NextToken, size: in.MaxResults}
	if in.MaxResults == nil && in.NextToken == nil { // AWS returns all at once
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

func (s *Snapshot) out(now time.Time) types.Snapshot {
	out := types.Snapshot{
		SnapshotId: aws.String(s.ID), OwnerId: aws.String(core.AccountID), Description: aws.String(s.Description), VolumeSize: aws.Int32(s.Size),
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

// describeSnapshots shows the account's own snapshots. Those of others, which
// AWS shows when they are public, it does not know.
func (svc *Service) describeSnapshots(where place, in *ec2.DescribeSnapshotsInput) (*ec2.DescribeSnapshotsOutput, error) {
	for _, owner := range in.OwnerIds {
		if owner != "self" && owner != core.AccountID {
			return nil, core.NotSimulated("snapshots of the owner %q", owner)
		}
	}
	snapshots, next, err := describe(svc, where.Snapshots, query{in.SnapshotIds, in.Filters, in.NextToken, in.MaxResults}, fields[*Snapshot]{
		"snapshot-id": func(s *Snapshot) []string { return []string{s.ID} },
		"description": func(s *Snapshot) []string { return []string{s.Description} },
		"encrypted":   func(s *Snapshot) []string { return flag(s.Encrypted) },
		"owner-id":    func(*Snapshot) []string { return []string{core.AccountID} },
		"status":      func(s *Snapshot) []string { return []string{string(s.state(svc.Now()))} },
	}, func(s *Snapshot) types.Snapshot { return s.out(svc.Now()) })
	return &ec2.DescribeSnapshotsOutput{Snapshots: snapshots, NextToken: next}, err
}

// inventoryImages lists the account's own images, and its snapshots.
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

// Image returns the image of an ID in the account's region, or nil.
func (svc *Service) Image(id string) *Image { return svc.state.Images[id] }

func (svc *Service) ImageNamed(name string) (string, bool) {
	for _, i := range core.ByKey(svc.state.Images) {
		if i.Name == name {
			return i.ID, true
		}
	}
	return "", false
}
