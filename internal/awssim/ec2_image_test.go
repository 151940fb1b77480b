package awssim

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ec2sim "github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
)

// abroadIn returns a client for a region of the account. mostCopies is the limit of
// snapshot copies to one region.
const mostCopies = 20

func abroadIn(a *AWS, region string) *ec2.Client {
	return ec2.NewFromConfig(a.Config(), func(o *ec2.Options) { o.Region = region })
}

// copyOf returns the call that copies an image of us-east-1.
func copyOf(a *AWS, name string) *ec2.CopyImageInput {
	return &ec2.CopyImageInput{
		SourceRegion: aws.String("us-east-1"), SourceImageId: aws.String(newestImage(a, "capa-ami-ubuntu-24.04-v1.34.2-", "x86_64")), Name: aws.String(name),
	}
}

func TestRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		there := abroadIn(a, "eu-west-1")
		_, err := there.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
		require.ErrorContains(t, err, "EC2 DescribeVpcs is not simulated in region eu-west-1")
		_, err = iam.NewFromConfig(a.Config(), func(o *iam.Options) { o.Region = "eu-west-1" }).ListInstanceProfiles(t.Context(), &iam.ListInstanceProfilesInput{})
		assert.NotContains(t, fmt.Sprint(err), "in region", "IAM is everywhere the same")
		out, err := there.DescribeRegions(t.Context(), &ec2.DescribeRegionsInput{AllRegions: aws.Bool(true), Filters: filter("opt-in-status", "not-opted-in")})
		require.NoError(t, err)
		require.Len(t, out.Regions, 1)
		_, err = abroadIn(a, *out.Regions[0].RegionName).DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
		assert.Equal(t, "AuthFailure", code(err))
		_, err = abroadIn(a, "mars-1").DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
		require.ErrorContains(t, err, "no such host")

		images := func(region string) int {
			out, err := abroadIn(a, region).DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"819546954734"}})
			require.NoError(t, err)
			return len(out.Images)
		}
		assert.Equal(t, images("us-east-1"), images("eu-west-1"))
		assert.Zero(t, images("eu-north-1"), "they are not published there")
	})
}

func TestCopyImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := abroadIn(a, "eu-west-1")
		in := copyOf(a, "copied")
		in.ClientToken, in.Encrypted = aws.String("just-once"), aws.Bool(true)
		in.TagSpecifications = append(named("image", "demo"), named("snapshot", "demo")...)
		made, err := c.CopyImage(t.Context(), in)
		require.NoError(t, err)
		again, err := c.CopyImage(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, made.ImageId, again.ImageId)
		see := func() (types.Image, types.Snapshot) {
			i, err := c.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{*made.ImageId}})
			require.NoError(t, err)
			s, err := c.DescribeSnapshots(t.Context(), &ec2.DescribeSnapshotsInput{SnapshotIds: []string{*i.Images[0].BlockDeviceMappings[0].Ebs.SnapshotId}})
			require.NoError(t, err)
			return i.Images[0], s.Snapshots[0]
		}
		time.Sleep(ec2sim.SnapshotCopies / 2)
		i, s := see()
		assert.Equal(t, types.ImageStatePending, i.State)
		assert.Equal(t, types.SnapshotStatePending, s.State)
		assert.Regexp(t, `^[1-9]\d%$`, *s.Progress)
		_, err = c.DeregisterImage(t.Context(), &ec2.DeregisterImageInput{ImageId: made.ImageId})
		assert.Equal(t, "IncorrectState", code(err))
		time.Sleep(ec2sim.SnapshotCopiesMost)

		var b bytes.Buffer
		require.NoError(t, a.Save(&b))
		a, err = Load(&b, Options{})
		require.NoError(t, err)
		c = abroadIn(a, "eu-west-1")
		i, s = see()
		assert.Equal(t, types.ImageStateAvailable, i.State)
		assert.Equal(t, types.SnapshotStateCompleted, s.State)
		assert.Equal(t, "100%", *s.Progress)
		assert.True(t, *s.Encrypted)
		assert.Equal(t, "us-east-1", *i.SourceImageRegion)
		assert.Equal(t, "demo", *i.Tags[0].Value)
		assert.Equal(t, "demo", *s.Tags[0].Value)
		assert.False(t, *i.Public)
		assert.Len(t, a.Inventory(), 2)
		own, err := c.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: filter("source-image-id", *in.SourceImageId)})
		require.NoError(t, err)
		assert.Len(t, own.Images, 1)

		_, err = c.DeregisterImage(t.Context(), &ec2.DeregisterImageInput{ImageId: made.ImageId, DeleteAssociatedSnapshots: aws.Bool(true)})
		require.NoError(t, err)
		assert.Empty(t, a.Inventory())
		again, err = c.CopyImage(t.Context(), in)
		require.NoError(t, err)
		assert.Equal(t, made.ImageId, again.ImageId, "AWS remembers a token longer than what it stands for")
	})
}

func TestCopyImageRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(Options{})
		c := abroadIn(a, "eu-west-1")
		for want, spoil := range map[string]func(*ec2.CopyImageInput){
			"DryRunOperation":            func(in *ec2.CopyImageInput) { in.DryRun = aws.Bool(true) },
			"InvalidAMIName.Malformed":   func(in *ec2.CopyImageInput) { in.Name = aws.String("a*") },
			"InvalidAMIID.NotFound":      func(in *ec2.CopyImageInput) { in.SourceRegion = aws.String("eu-west-2") },
			"InvalidAMIID.Malformed":     func(in *ec2.CopyImageInput) { in.SourceImageId = aws.String("i-1") },
			"InvalidParameterDependency": func(in *ec2.CopyImageInput) { in.KmsKeyId = aws.String("alias/images") },
			"InvalidParameterValue":      func(in *ec2.CopyImageInput) { in.SourceRegion = aws.String("mars-1") },
		} {
			in := copyOf(a, "copied")
			spoil(in)
			_, err := c.CopyImage(t.Context(), in)
			assert.Equal(t, want, code(err))
		}
		for n := range mostCopies {
			_, err := c.CopyImage(t.Context(), copyOf(a, fmt.Sprint("copy ", n)))
			require.NoError(t, err)
		}
		_, err := c.CopyImage(t.Context(), copyOf(a, "one too many"))
		assert.Equal(t, "ResourceLimitExceeded", code(err))
		_, err = abroadIn(a, "eu-west-2").CopyImage(t.Context(), copyOf(a, "elsewhere"))
		require.NoError(t, err)
		_, err = abroadIn(a, "eu-west-2").CopyImage(t.Context(), copyOf(a, "elsewhere"))
		assert.Equal(t, "InvalidAMIName.Duplicate", code(err))
		_, err = c.DeregisterImage(
			t.Context(),
			&ec2.DeregisterImageInput{ImageId: aws.String(ec2sim.GivenID("ami", "eu-west-1", "capa-ami-ubuntu-24.04-v1.34.2-1765664000"))},
		)
		assert.Equal(t, "AuthFailure", code(err), "it is not ours")
		_, err = c.DescribeSnapshots(t.Context(), &ec2.DescribeSnapshotsInput{SnapshotIds: []string{"snap-0123456789abcdef0"}})
		assert.Equal(t, "InvalidSnapshot.NotFound", code(err))
	})
}

// Instances cannot be launched from an image that is pending.
func TestImageThatIsNotReady(t *testing.T) {
	in(t, Options{}, func(t *testing.T, n *testbed) {
		i := copyOf(n.aws, "copied")
		i.Encrypted, i.KmsKeyId = aws.Bool(true), aws.String("alias/nobody")
		made, err := n.ec2.CopyImage(t.Context(), i)
		require.NoError(t, err, "AWS looks at the key later")
		n.image = *made.ImageId
		_, err = n.ec2.RunInstances(t.Context(), n.launch(1, "demo"))
		assert.Equal(t, "InvalidAMIID.Unavailable", code(err))
		time.Sleep(time.Hour)
		out, err := n.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{n.image}})
		require.NoError(t, err)
		assert.Equal(t, types.ImageStateFailed, out.Images[0].State)
		assert.Equal(t, "Given key ID is not accessible", *out.Images[0].StateReason.Message)
	})
}
