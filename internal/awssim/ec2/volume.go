package ec2

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Volume is a volume.
type Volume struct {
	Thing
	Zone, Instance, Device, Type, Key string
	Size, IOPS, Throughput            int32 // GiB, IOPS, MiB/s
	Encrypted                         bool
	DeleteWithInstance                bool
}

func (*Volume) kind() kind {
	return kind{
		prefix: "vol", name: "volume", missing: "InvalidVolume.NotFound", tags: types.ResourceTypeVolume, title: "Volume",
		simulate: (*Service).simulateVolumes,
	}
}

// listed reports whether the volume is not attached.
func (v *Volume) listed() bool { return v.Instance == "" }

func (v *Volume) details(printer) []string {
	return []string{
		"of " + v.Instance + " as " + v.Device, v.Zone, fmt.Sprintf("%s %d GiB %d IOPS %d MiB/s", v.Type, v.Size, v.IOPS, v.Throughput),
		fmt.Sprintf("encrypted %t %s", v.Encrypted, v.Key), fmt.Sprintf("goes with its instance %t", v.DeleteWithInstance),
	}
}

func (svc *Service) simulateVolumes() {
	core.On(
		svc.Account,
		svc.createVolume,
		"AvailabilityZone",
		"Size",
		"VolumeType",
		"Iops",
		"Throughput",
		"Encrypted",
		"KmsKeyId",
		"ClientToken",
		"TagSpecifications",
	)
	core.On(svc.Account, svc.describeVolumes, "VolumeIds", "Filters", "NextToken", "MaxResults")
	core.On(svc.Account, svc.deleteVolume, "VolumeId")
}

func (v *Volume) state(now time.Time) types.VolumeState {
	switch {
	case v.Instance != "":
		return types.VolumeStateInUse
	case now.Sub(v.Born) < VolumeTakes:
		return types.VolumeStateCreating
	}
	return types.VolumeStateAvailable
}

// check validates size and performance: "Amazon EBS volume types" in the EBS user guide.
func (v *Volume) check() error {
	within := func(n, least, most int32, what string) error {
		if n != 0 && (n < least || n > most) {
			return core.Fail("InvalidParameterValue", "volume %s of %d is not between %d and %d for %s", what, n, least, most, v.Type)
		}
		return nil
	}
	least, biggest, mostIOPS := int32(1), int32(16384), int32(0)
	switch types.VolumeType(v.Type) {
	case types.VolumeTypeGp2:
	case types.VolumeTypeGp3:
		biggest, mostIOPS = 65536, 80000
	case types.VolumeTypeIo1, types.VolumeTypeIo2:
		if least, mostIOPS = 4, 64000; v.Type == "io2" {
			biggest, mostIOPS = 65536, 256000
		}
		if v.IOPS == 0 {
			return core.Fail("MissingParameter", "the request must contain the parameter iops for %s", v.Type)
		}
	case types.VolumeTypeSt1, types.VolumeTypeSc1:
		least = 125
	case types.VolumeTypeStandard:
		biggest = 1024
	default:
		return core.Fail("InvalidParameterValue", "invalid volume type: %s", v.Type)
	}
	switch {
	case v.IOPS != 0 && mostIOPS == 0:
		return core.Fail("InvalidParameterCombination", "the parameter iops is not supported for %s volumes", v.Type)
	case v.Throughput != 0 && v.Type != "gp3":
		return core.Fail("InvalidParameterCombination", "the parameter throughput is not supported for %s volumes", v.Type)
	case v.Key != "" && !v.Encrypted:
		return core.Fail("InvalidParameterDependency", "the parameter KmsKeyId requires the parameter Encrypted to be set")
	case v.Size == 0:
		return core.Fail("MissingParameter", "the request must contain the parameter size or snapshotId")
	}
	if err := within(v.Size, least, biggest, "size"); err != nil {
		return err
	}
	if err := within(v.Throughput, 125, 2000, "throughput"); err != nil {
		return err
	}
	lowest := int32(100)
	if v.Type == "gp3" {
		lowest = 3000
	}
	if err := within(v.IOPS, lowest, mostIOPS, "iops"); err != nil {
		return err
	}
	return v.ratios(lowest)
}

// ratios validates what depends on two settings.
func (v *Volume) ratios(lowest int32) error {
	most := map[string]int32{"gp3": 500, "io1": 50, "io2": 1000}[v.Type] // IOPS for each GiB
	if most > 0 && v.IOPS > lowest && v.IOPS > v.Size*most {
		return core.Fail("InvalidParameterCombination", "iops to volume size ratio of %d is too high; maximum is %d", v.IOPS/v.Size, most)
	}
	if iops := max(v.IOPS, lowest); v.Type == "gp3" && v.Throughput > iops/4 {
		return core.Fail("InvalidParameterCombination", "throughput (MiBps) to iops ratio of %d/%d is too high; maximum is 0.25", v.Throughput, iops)
	}
	return nil
}

// isDevice reports whether EC2 takes a device name: "Device names for volumes", EC2 user guide.
func isDevice(name string) bool {
	letters, digits := strings.TrimPrefix(name, "/dev/"), ""
	if at := strings.IndexAny(letters, "0123456789"); at >= 0 {
		letters, digits = letters[:at], letters[at:]
	}
	partition, err := strconv.Atoi(cmp.Or(digits, "1"))
	small := strings.IndexFunc(letters, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
	switch {
	case !small || err != nil || partition < 1 || partition > 15:
		return false
	case strings.HasPrefix(letters, "sd"):
		return len(letters) == 3
	case strings.HasPrefix(letters, "xvd") && digits == "":
		return len(letters) == 4 || len(letters) == 5 && letters[3] <= 'd'
	}
	return false
}

func (svc *Service) createVolume(in *ec2.CreateVolumeInput) (*ec2.CreateVolumeOutput, error) {
	s := svc.state
	return idempotent(svc, "CreateVolume", in.ClientToken, in, func() ([]string, error) {
		tags, err := tagged(in.TagSpecifications, types.ResourceTypeVolume)
		if err != nil {
			return nil, err
		}
		z, ok := svc.zone(aws.ToString(in.AvailabilityZone))
		if !ok {
			return nil, core.Fail("InvalidZone.NotFound", "the zone '%s' does not exist", aws.ToString(in.AvailabilityZone))
		}
		v := &Volume{
			Zone: z.name, Type: string(in.VolumeType), Size: aws.ToInt32(in.Size), IOPS: aws.ToInt32(in.Iops), Throughput: aws.ToInt32(in.Throughput),
			Encrypted: aws.ToBool(in.Encrypted), Key: aws.ToString(in.KmsKeyId),
		}
		if v.Type == "" {
			v.Type = string(types.VolumeTypeGp2)
		}
		if err := v.check(); err != nil {
			return nil, err
		}
		v.Thing = svc.newThing("vol", tags)
		s.Volumes[v.ID] = v
		return []string{v.ID}, nil
	}, func(ids []string) *ec2.CreateVolumeOutput {
		v := svc.volumeOut(remembered(s.Volumes, ids, func(t Thing) *Volume { return &Volume{Thing: t} })[0])
		return &ec2.CreateVolumeOutput{
			VolumeId: v.VolumeId, AvailabilityZone: v.AvailabilityZone, CreateTime: v.CreateTime, Encrypted: v.Encrypted, Iops: v.Iops,
			KmsKeyId: v.KmsKeyId, Size: v.Size, State: v.State, Tags: v.Tags, Throughput: v.Throughput, VolumeType: v.VolumeType,
		}
	})
}

func (svc *Service) volumeOut(v *Volume) types.Volume {
	out := types.Volume{
		VolumeId: aws.String(v.ID), AvailabilityZone: aws.String(v.Zone), CreateTime: aws.Time(v.Born), Size: aws.Int32(v.Size),
		VolumeType: types.VolumeType(v.Type), State: v.state(svc.Now()), Encrypted: aws.Bool(v.Encrypted), KmsKeyId: core.Text(v.Key), Tags: tagsOut(v.Tags),
	}
	if v.IOPS != 0 {
		out.Iops = aws.Int32(v.IOPS)
	}
	if v.Throughput != 0 {
		out.Throughput = aws.Int32(v.Throughput)
	}
	if v.Instance != "" {
		out.Attachments = []types.VolumeAttachment{{
			VolumeId: aws.String(v.ID), InstanceId: aws.String(v.Instance), Device: aws.String(v.Device), AttachTime: aws.Time(v.Born),
			DeleteOnTermination: aws.Bool(v.DeleteWithInstance), State: types.VolumeAttachmentStateAttached,
		}}
	}
	return out
}

func (svc *Service) describeVolumes(in *ec2.DescribeVolumesInput) (*ec2.DescribeVolumesOutput, error) {
	volumes, next, err := describe(svc, svc.state.Volumes, query{in.VolumeIds, in.Filters, in.NextToken, in.MaxResults}, fields[*Volume]{
		"volume-id":              func(v *Volume) []string { return []string{v.ID} },
		"status":                 func(v *Volume) []string { return []string{string(v.state(svc.Now()))} },
		"availability-zone":      func(v *Volume) []string { return []string{v.Zone} },
		"volume-type":            func(v *Volume) []string { return []string{v.Type} },
		"size":                   func(v *Volume) []string { return []string{fmt.Sprint(v.Size)} },
		"encrypted":              func(v *Volume) []string { return flag(v.Encrypted) },
		"attachment.instance-id": func(v *Volume) []string { return oneValue(v.Instance) },
		"attachment.device":      func(v *Volume) []string { return oneValue(v.Device) },
		"attachment.delete-on-termination": func(v *Volume) []string {
			if v.Instance == "" {
				return nil
			}
			return flag(v.DeleteWithInstance)
		},
	}, svc.volumeOut)
	return &ec2.DescribeVolumesOutput{Volumes: volumes, NextToken: next}, err
}

func (svc *Service) deleteVolume(in *ec2.DeleteVolumeInput) (*ec2.DeleteVolumeOutput, error) {
	v, err := lookup(svc, svc.state.Volumes, in.VolumeId)
	if err != nil {
		return nil, err
	}
	switch v.state(svc.Now()) { //nolint:exhaustive // in other states it can be deleted
	case types.VolumeStateInUse:
		return nil, core.Fail("VolumeInUse", "volume %s is currently attached to %s", v.ID, v.Instance)
	case types.VolumeStateCreating:
		return nil, core.Fail("IncorrectState", "volume %s is still being created", v.ID)
	}
	delete(svc.state.Volumes, v.ID)
	return &ec2.DeleteVolumeOutput{}, nil
}

// Volume returns the volume with an ID, or nil.
func (svc *Service) Volume(id string) *Volume { return svc.state.Volumes[id] }

// AddVolume adds a volume with tags.
func (svc *Service) AddVolume(v *Volume, tags map[string]string) *Volume {
	v.Thing = svc.newThing("vol", tags)
	svc.state.Volumes[v.ID] = v
	return v
}

// RemoveVolume removes a volume.
func (svc *Service) RemoveVolume(v *Volume) { delete(svc.state.Volumes, v.ID) }
