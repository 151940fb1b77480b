package replica

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// images copies the images that the plan has found. They replace the simulated ones with the
// names that it has asked for.
func (r *reader) images() {
	var patterns []string
	for _, in := range of[ec2.DescribeImagesInput](r.Asked) {
		for _, f := range in.Filters {
			if aws.ToString(f.Name) == "name" {
				patterns = append(patterns, f.Values...)
			}
		}
	}
	slices.Sort(patterns)
	var all []*sim.Image
	for id, i := range r.Asked.images {
		own := &sim.Image{
			Thing:        r.thing(&id, tagsOf(i.Tags)),
			Name:         aws.ToString(i.Name),
			Owner:        aws.ToString(i.OwnerId),
			Description:  aws.ToString(i.Description),
			Architecture: string(i.Architecture),
			RootDevice:   aws.ToString(i.RootDeviceName),
			BootMode:     string(i.BootMode),
			TPM:          string(i.TpmSupport),
			IMDS: string(
				i.ImdsSupport,
			),
			SRIOV:        aws.ToString(i.SriovNetSupport),
			SourceImage:  aws.ToString(i.SourceImageId),
			SourceRegion: aws.ToString(i.SourceImageRegion),
		}
		own.Created = r.old()
		if at, err := time.Parse(time.RFC3339, aws.ToString(i.CreationDate)); err == nil {
			own.Created = at
		}
		own.Born = own.Created
		if i.State == types.ImageStatePending {
			own.Ready = r.Now.Add(10 * time.Minute)
		}
		for _, b := range i.BlockDeviceMappings {
			d := deviceOf(b)
			if own.Devices = append(own.Devices, d); d.Name == own.RootDevice {
				own.RootSize = d.Size
			}
		}
		all = append(all, own)
	}
	r.to.EC2.CopyImages(slices.Compact(patterns), all)
}

func deviceOf(b types.BlockDeviceMapping) sim.Device {
	d := sim.Device{Name: aws.ToString(b.DeviceName), Virtual: aws.ToString(b.VirtualName)}
	if e := b.Ebs; e != nil {
		d.Snapshot, d.Type, d.Size, d.IOPS, d.Throughput = aws.ToString(
			e.SnapshotId,
		), string(
			e.VolumeType,
		), aws.ToInt32(
			e.VolumeSize,
		), aws.ToInt32(
			e.Iops,
		), aws.ToInt32(
			e.Throughput,
		)
		d.Encrypted, d.KeepsInstance = aws.ToBool(e.Encrypted), e.DeleteOnTermination != nil && !*e.DeleteOnTermination
	}
	return d
}
