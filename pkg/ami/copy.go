package ami

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// CopyOptions configure a copy of an image.
type CopyOptions struct {
	OS, Version, Architecture string // empty: DefaultOS, X8664; the version is required
	Owner                     string // owner account of the image; empty: Owner
	From, To                  string // regions
	Encrypt                   bool
	Key                       string        // KMS key for encryption; empty: the AWS managed key
	DryRun                    bool          // only check whether the copy is possible
	Wait                      time.Duration // how long to wait until the copy is ready; 0: do not wait
	Clock                     Clock         // nil means the system clock
	// Progress receives progress messages; may be nil.
	Progress func(format string, args ...any)
}

// Clock replaces the system clock where time runs faster: with an emulator of AWS, or in
// tests.
type Clock interface {
	Now() time.Time
	// Sleep waits for d. If the context ends before, it returns the cause.
	Sleep(ctx context.Context, d time.Duration) error
}

// Copied is the copy of an image.
type Copied struct {
	Image         // ID is "" after a dry run that found no copy
	Source string // ID of the source image
	Reused bool   // the copy existed already
}

// Copy copies an image with CopyImage: all block devices, boot mode, TPM and IMDS
// support, UEFI data and billing codes, and the tags that the caller can see. It is a
// single call, so no partial copy can remain.
//
// If a copy exists already, complete or in progress, Copy returns it; so the same command
// continues after an interruption. A failed copy is deleted with its snapshots. Two
// copies of an image have different names if and only if their encryption differs.
func Copy(ctx context.Context, cfg aws.Config, o CopyOptions) (*Copied, error) {
	o.OS, o.Architecture, o.Owner = cmp.Or(o.OS, DefaultOS), cmp.Or(o.Architecture, X8664), cmp.Or(o.Owner, Owner)
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	source, err := o.find(ctx, client(cfg, o.From))
	if err != nil {
		return nil, err
	}
	c := &copying{o: o, clock: clock.Of(o.Clock), ec2: client(cfg, o.To), source: source, name: o.name(aws.ToString(source.Name))}
	image, reused, err := c.ensure(ctx)
	if err == nil && image != nil && o.Wait > 0 && !o.DryRun {
		image, err = c.wait(ctx, image)
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s (%s) from %s to %s: %w", *source.ImageId, *source.Name, o.From, o.To, err)
	}
	done := &Copied{Image: seenAs(*source, o.To, o.OS, o.Version), Source: *source.ImageId, Reused: reused}
	done.Name, done.ID, done.Created = c.name, "", c.clock.Now()
	if image != nil {
		done.ID = *image.ImageId
	}
	if reused {
		done.Created = created(*image)
	}
	return done, nil
}

// find returns the newest matching image in the source region.
func (o CopyOptions) find(ctx context.Context, c *ec2.Client) (*types.Image, error) {
	images, err := describe(ctx, c, o.Owner, filters([]string{o.Architecture}, patterns(o.OS, o.Version)))
	if err != nil {
		return nil, fmt.Errorf("list images in %s: %w", o.From, err)
	}
	source := newest(images, o.OS, o.Version, o.Architecture)
	if source == nil {
		return nil, fmt.Errorf("found no AMIs with name %q, architecture %q, ownerID %q in %s: see 'clusterawsadm ami list --region %s'",
			prefix+o.OS+"-?"+strings.TrimPrefix(o.Version, "v")+"-*", o.Architecture, o.Owner, o.From, o.From)
	}
	if o.Encrypt && len(snapshots(*source)) == 0 {
		return nil, fmt.Errorf("%s (%s): image does not have EBS attached, so there is nothing to encrypt", *source.ImageId, *source.Name)
	}
	return source, nil
}

// name returns the name of the copy: that of the source, with a suffix for the key if it
// is encrypted. The suffix has no hyphen, because the part after the last hyphen is not
// part of the version.
func (o CopyOptions) name(source string) string {
	if !o.Encrypt {
		return source
	}
	sum := sha256.Sum256([]byte(o.Key))
	return source + "enc" + hex.EncodeToString(sum[:4])
}

// snapshots returns the IDs of an image's snapshots.
func snapshots(i types.Image) (ids []string) {
	for _, m := range i.BlockDeviceMappings {
		if m.Ebs != nil && m.Ebs.SnapshotId != nil {
			ids = append(ids, *m.Ebs.SnapshotId)
		}
	}
	return ids
}

// copying is the state of one copy.
type copying struct {
	o      CopyOptions
	clock  *clock.Clock
	ec2    *ec2.Client // in the destination region
	source *types.Image
	name   string
}

// attempts is the number of client tokens to try: a token may belong to a copy that has
// failed or was deleted.
const attempts = 3

// ensure returns the copy, which may not be ready yet, or nil if it does not exist and
// this is a dry run.
func (c *copying) ensure(ctx context.Context) (image *types.Image, reused bool, err error) {
	image, dead, err := c.look(ctx)
	if err != nil || image != nil {
		return image, err == nil, err
	}
	if c.o.DryRun {
		return nil, false, c.rehearse(ctx)
	}
	for _, failed := range dead {
		if err := c.remove(ctx, failed); err != nil {
			return nil, false, err
		}
	}
	for range attempts {
		out, err := c.ec2.CopyImage(ctx, c.input(dead))
		if err != nil {
			return nil, false, c.explain(err)
		}
		image, err := c.await(ctx, *out.ImageId)
		if err != nil {
			return nil, false, err
		}
		if image != nil && image.State != types.ImageStateFailed {
			return image, false, nil
		}
		dead = append(dead, *out.ImageId)
	}
	return nil, false, fmt.Errorf("AWS returned images that do not exist any more: %s", strings.Join(dead, ", "))
}

// look returns the copy if it exists, and the failed ones. If there are several, it
// returns the newest that is ready.
func (c *copying) look(ctx context.Context) (copied *types.Image, failed []string, err error) {
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(c.name)
	images, err := describe(ctx, c.ec2, "self", []types.Filter{{Name: aws.String("name"), Values: []string{plain}}})
	if err != nil {
		return nil, nil, fmt.Errorf("look for an existing copy: %w", err)
	}
	for n, i := range images {
		switch {
		case *i.ImageId == *c.source.ImageId || i.Architecture != c.source.Architecture:
		case i.State == types.ImageStateFailed:
			failed = append(failed, *i.ImageId)
		case i.State == types.ImageStateAvailable && (copied == nil || copied.State == types.ImageStatePending || created(i).After(created(*copied))),
			i.State == types.ImageStatePending && copied == nil:
			copied = &images[n]
		}
	}
	slices.Sort(failed)
	return copied, failed, nil
}

// input returns the CopyImage request. All processes that want the same copy use the same
// token; after a failure, the token changes.
func (c *copying) input(dead []string) *ec2.CopyImageInput {
	in := &ec2.CopyImageInput{
		Name: aws.String(c.name), Description: c.source.Description, SourceImageId: c.source.ImageId, SourceRegion: aws.String(c.o.From),
	}
	if aws.ToString(in.Description) == "" {
		in.Description = nil
	}
	if len(c.source.Tags) > 0 { // without tags, ec2:CreateTags is not needed
		in.CopyImageTags = aws.Bool(true)
	}
	if c.o.Encrypt {
		in.Encrypted = aws.Bool(true)
		if c.o.Key != "" {
			in.KmsKeyId = aws.String(c.o.Key)
		}
	}
	words := []string{
		*c.source.ImageId, c.o.From, c.o.To, c.name, c.o.Key, aws.ToString(in.Description), fmt.Sprint(len(c.source.Tags) > 0), strings.Join(dead, " "),
	}
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	in.ClientToken = aws.String(hex.EncodeToString(sum[:16]))
	return in
}

// rehearse sends the call with DryRun, to check permissions.
func (c *copying) rehearse(ctx context.Context) error {
	in := c.input(nil)
	in.ClientToken, in.DryRun = nil, aws.Bool(true)
	_, err := c.ec2.CopyImage(ctx, in)
	switch {
	case cloud.Is(err, "DryRunOperation"):
		return nil
	case err == nil:
		return errors.New("AWS did not treat the call as a dry run")
	}
	return c.explain(err)
}

// visibilityTimeout is how long AWS may take to show a new image.
const visibilityTimeout = time.Minute

// await returns a new image when AWS shows it, or nil if it does not: a client token may
// belong to an image that was deleted.
func (c *copying) await(ctx context.Context, id string) (*types.Image, error) {
	for until := c.clock.Now().Add(visibilityTimeout); ; {
		image, err := c.image(ctx, id)
		late := c.clock.Now().After(until)
		if image != nil || late || err != nil && !passing(ctx, err) {
			return image, err
		}
		if err := c.clock.Sleep(ctx, 2*time.Second); err != nil {
			return nil, c.stopped(id, err)
		}
	}
}

// image returns an image in the destination region, or nil if it does not exist.
func (c *copying) image(ctx context.Context, id string) (*types.Image, error) {
	out, err := c.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
	switch {
	case cloud.NotFound(err) || err == nil && len(out.Images) == 0 || cloud.Is(err, "InvalidAMIID.Unavailable"):
		return nil, nil // not an error
	case ctx.Err() != nil:
		return nil, c.stopped(id, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("describe %s: %w", id, err)
	}
	return &out.Images[0], nil
}

// stopped returns the error for a wait that ends before the copy is ready.
func (c *copying) stopped(id string, why error) error {
	return fmt.Errorf("%w; the copy %s continues in AWS: run the same command again to wait for it", why, id)
}

// remove deletes a failed copy and its snapshots.
func (c *copying) remove(ctx context.Context, id string) error {
	c.o.Progress("deleting the failed copy %s and its snapshots", id)
	_, err := c.ec2.DeregisterImage(ctx, &ec2.DeregisterImageInput{ImageId: aws.String(id), DeleteAssociatedSnapshots: aws.Bool(true)})
	if err = cloud.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("delete the failed copy %s: %w", id, err)
	}
	return nil
}

// explain adds the fix to an error of CopyImage.
func (c *copying) explain(err error) error {
	switch {
	case cloud.Is(err, "UnauthorizedOperation"):
		permissions := "ec2:CopyImage"
		if len(c.source.Tags) > 0 {
			permissions += " and ec2:CreateTags"
		}
		return fmt.Errorf("%w\nrequired are the permissions %s in %s", err, permissions, c.o.To)
	case cloud.Is(err, "InvalidAMIName.Duplicate"):
		return fmt.Errorf("%w\nthe account has another image with that name: deregister it, or use it", err)
	case cloud.Is(err, "ResourceLimitExceeded"):
		return fmt.Errorf("%w\nrun the command again when other copies to %s are complete", err, c.o.To)
	}
	return err
}
