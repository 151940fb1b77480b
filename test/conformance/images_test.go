package conformance

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// images copies the image of the machines to another region.
func (s *suite) images() {
	regions, err := s.ec2.DescribeRegions(s.ctx, &ec2.DescribeRegionsInput{})
	s.need(err)
	s.see("region: describe", err, slices.ContainsFunc(regions.Regions, func(r types.Region) bool { return *r.RegionName == "eu-west-1" }))
	there := ec2.New(s.ec2.Options(), func(o *ec2.Options) { o.Region = "eu-west-1" })
	_, err = there.DescribeRegions(s.ctx, &ec2.DescribeRegionsInput{})
	s.see("region: describe in another", err)
	in := &ec2.CopyImageInput{
		SourceRegion: aws.String("us-east-1"), SourceImageId: &s.image, Name: aws.String("conformance"), Encrypted: aws.Bool(true),
		ClientToken: aws.String("copied-just-once"), TagSpecifications: tagged("image", "demo"),
	}
	rehearsal := *in
	rehearsal.DryRun, rehearsal.ClientToken = aws.Bool(true), nil
	_, err = there.CopyImage(s.ctx, &rehearsal)
	s.see("image: copy, in a dry run", err)
	wrong := *in
	wrong.SourceImageId, wrong.ClientToken = aws.String("ami-0123456789abcdef0"), nil
	_, err = there.CopyImage(s.ctx, &wrong)
	s.see("image: copy one that is not there", err)
	made, err := there.CopyImage(s.ctx, in)
	s.need(err)
	again, err := there.CopyImage(s.ctx, in)
	s.need(err)
	s.see("image: copy again with the same token", err, "the same:", *again.ImageId == *made.ImageId)
	s.copied(there, *made.ImageId)
	if *again.ImageId != *made.ImageId {
		_, err := there.DeregisterImage(s.ctx, &ec2.DeregisterImageInput{ImageId: again.ImageId})
		s.need(err)
	}
}

// copied checks a copy in progress, and deletes it.
func (s *suite) copied(there *ec2.Client, id string) {
	look := func() types.Image {
		out, err := there.DescribeImages(s.ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
		s.need(err)
		return out.Images[0]
	}
	x := look()
	s.see("image: the copy", nil, x.State, names(x.Tags), str(x.SourceImageId) == s.image)
	snapshot := *x.BlockDeviceMappings[0].Ebs.SnapshotId
	snapshots := func() (*ec2.DescribeSnapshotsOutput, error) {
		return there.DescribeSnapshots(s.ctx, &ec2.DescribeSnapshotsInput{SnapshotIds: []string{snapshot}})
	}
	all, err := snapshots()
	s.need(err)
	s.see("snapshot: of the copy", err, all.Snapshots[0].State, *all.Snapshots[0].Encrypted, all.Snapshots[0].KmsKeyId != nil)
	s.settle()
	all, err = snapshots()
	s.need(err)
	s.see("snapshot: and later", err, all.Snapshots[0].State, str(all.Snapshots[0].Progress))
	s.see("image: the copy, later", nil, look().State)
	own, err := there.DescribeImages(
		s.ctx,
		&ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: filter("name", "conformance"), MaxResults: aws.Int32(1000)},
	)
	s.need(err)
	s.see("image: own ones of that name", err, len(own.Images))
	_, err = there.DescribeSnapshots(s.ctx, &ec2.DescribeSnapshotsInput{SnapshotIds: []string{"snap-0123456789abcdef0"}})
	s.see("snapshot: describe one that is not there", err)
	_, err = there.DeregisterImage(s.ctx, &ec2.DeregisterImageInput{ImageId: &id, DeleteAssociatedSnapshots: aws.Bool(true)})
	s.see("image: deregister", err)
	_, err = snapshots()
	s.see("snapshot: when its image is gone", err)
	_, err = there.DescribeImages(s.ctx, &ec2.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}})
	s.see("image: describe one that is not there", err)
}
