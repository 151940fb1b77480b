package ec2

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// mostCopies is how many snapshots can be on their way to one region ("Amazon
// EBS quotas": concurrent snapshot copies per destination region).
const mostCopies = 20

// dryRun is the answer to a call that would have succeeded.
func dryRun(asked *bool) error {
	if aws.ToBool(asked) {
		return core.Fail("DryRunOperation", "request would have succeeded, but DryRun flag is set")
	}
	return nil
}

// copyImage begins to copy an image into the region that it is asked in. Each
// EBS snapshot is copied; mappings and attributes go with the image. A name
// that is taken is refused, as it is when an image is registered; AWS used to
// take it here (hashicorp/packer#2123). A dry run looks at permissions and the
// source, and not at the name.
func (svc *Service) copyImage(where place, in *ec2.CopyImageInput) (*ec2.CopyImageOutput, error) {
	name := aws.ToString(in.Name)
	tags, err := specified(in.TagSpecifications, types.ResourceTypeImage, types.ResourceTypeSnapshot)
	if err != nil {
		return nil, err
	}
	key := aws.ToString(in.KmsKeyId)
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9()\[\] ./'@_-]{3,128}$`).MatchString(name):
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
	return once(svc, "CopyImage in "+where.region, in.ClientToken, in, func() ([]string, error) {
		for _, i := range where.Images {
			if i.Owner == core.AccountID && i.Name == name && i.state(svc.Now()) != types.ImageStateFailed {
				return nil, core.Fail("InvalidAMIName.Duplicate", "AMI name %s is already in use by AMI %s", name, i.ID)
			}
		}
		copied := *source
		copied.Thing = svc.made("ami", tags[types.ResourceTypeImage])
		if aws.ToBool(in.CopyImageTags) && source.Owner == core.AccountID {
			more := maps.Clone(source.Tags)
			maps.Copy(more, copied.Tags)
			copied.Tags = more
		}
		copied.Name, copied.Owner, copied.Created = name, core.AccountID, svc.Now()
		copied.Description = aws.ToString(in.Description) // nil: AWS's default is not known
		copied.SourceImage, copied.SourceRegion = source.ID, aws.ToString(in.SourceRegion)
		if err := svc.copySnapshots(where, &copied, in, tags[types.ResourceTypeSnapshot]); err != nil {
			return nil, err
		}
		where.Images[copied.ID] = &copied
		return []string{copied.ID}, nil
	}, func(ids []string) *ec2.CopyImageOutput { return &ec2.CopyImageOutput{ImageId: aws.String(ids[0])} })
}

// sourceImage returns the image that a copy is made of.
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

// copySnapshots begins to copy the snapshots of an image's devices.
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
			Thing: svc.made("snap", maps.Clone(tags)), Size: d.Size, Encrypted: encrypted || d.Encrypted,
			Description: fmt.Sprintf("Copied for DestinationAmi %s from SourceAmi %s for SourceSnapshot %s. Task created on %d.", i.ID, i.SourceImage, d.Snapshot, svc.Now().UnixMilli()),
		}
		s.Ready = svc.Now().Add(core.Between(SnapshotCopies, SnapshotCopiesMost, s.ID))
		if s.Encrypted {
			s.Key = arn
		}
		if !known { // AWS looks at keys when it has accepted the call
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

// imageKey returns the ARN of the key that a call names, and whether there is
// one: the key that AWS manages where none is named.
func (svc *Service) imageKey(region, key string) (arn string, known bool) {
	head := "arn:" + svc.Partition() + ":kms:" + region + ":" + core.AccountID + ":"
	name := strings.TrimPrefix(strings.TrimPrefix(key, head), "key/")
	if name == "" || name == "alias/aws/ebs" {
		return head + "key/00000000-0000-4000-8000-" + core.AccountID, true
	}
	for id, alias := range svc.state.Keys {
		if name == id || name == alias {
			return head + "key/" + id, true
		}
	}
	return key, false
}

// deregisterImage takes an image of the account's own away, and with it, if
// asked to, the snapshots that no other image has.
func (svc *Service) deregisterImage(where place, in *ec2.DeregisterImageInput) (*ec2.DeregisterImageOutput, error) {
	i, err := lookup(svc, where.Images, in.ImageId)
	if err != nil {
		return nil, err
	}
	if i.Owner != core.AccountID {
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
