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

// CopyOptions say what to copy, and where to.
type CopyOptions struct {
	OS, Version, Architecture string // empty: DefaultOS, X8664; the version has to be there
	Owner                     string // account of the image; empty: Owner
	From, To                  string // regions
	Encrypt                   bool
	Key                       string        // KMS key to encrypt with; empty: the one AWS manages
	DryRun                    bool          // only ask whether it would work
	Wait                      time.Duration // for the copy to be ready; 0: do not wait
	Clock                     Clock         // nil: the machine's own
	// Tell is told what is done; may be nil.
	Tell func(format string, args ...any)
}

// Clock tells the time and waits, where time runs faster than the machine's: for
// an emulator of AWS, or in tests.
type Clock interface {
	Now() time.Time
	// Sleep waits for d, or until the context ends, whose cause it returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// Copied is the copy of an image.
type Copied struct {
	Image         // ID is "" after a dry run that found none
	Source string // ID of what it was copied of
	Reused bool   // it was there already
}

// Copy has AWS copy an image: all block devices, boot mode, TPM and IMDS
// support, UEFI data and billing codes go with it, and the tags, where they
// can be seen. All of that is one call, CopyImage, so nothing can be left half
// made.
//
// A copy that is there already, or on its way, is taken; so running again
// after an interruption goes on. A copy that failed is removed, with its
// snapshots. Two copies of one image differ in their names if and only if they
// are encrypted otherwise.
func Copy(ctx context.Context, cfg aws.Config, o CopyOptions) (*Copied, error) {
	o.OS, o.Architecture, o.Owner = cmp.Or(o.OS, DefaultOS), cmp.Or(o.Architecture, X8664), cmp.Or(o.Owner, Owner)
	if o.Tell == nil {
		o.Tell = func(string, ...any) {}
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

// find looks for the newest image in the source region.
func (o CopyOptions) find(ctx context.Context, c *ec2.Client) (*types.Image, error) {
	images, err := describe(ctx, c, o.Owner, filters([]string{o.Architecture}, patterns(o.OS, o.Version)))
	if err != nil {
		return nil, fmt.Errorf("look for images in %s: %w", o.From, err)
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

// name is what the copy is to be called: as the source, or, encrypted, with a
// suffix that tells the key. The suffix has no hyphen: the part behind the
// last one is no part of the version.
func (o CopyOptions) name(source string) string {
	if !o.Encrypt {
		return source
	}
	sum := sha256.Sum256([]byte(o.Key))
	return source + "enc" + hex.EncodeToString(sum[:4])
}

// snapshots are the IDs of an image's snapshots.
func snapshots(i types.Image) (ids []string) {
	for _, m := range i.BlockDeviceMappings {
		if m.Ebs != nil && m.Ebs.SnapshotId != nil {
			ids = append(ids, *m.Ebs.SnapshotId)
		}
	}
	return ids
}

// copying is one copy under way.
type copying struct {
	o      CopyOptions
	clock  *clock.Clock
	ec2    *ec2.Client // in the destination
	source *types.Image
	name   string
}

// attempts is how many client tokens are tried: one may stand for a copy that
// has failed or was removed.
const attempts = 3

// ensure returns the copy, which may not be ready yet, and nil when it would
// have to be made in a dry run.
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
	return nil, false, fmt.Errorf("AWS answers with images that are gone: %s", strings.Join(dead, ", "))
}

// look returns the copy if there is one, and those that have failed. Of
// several, which AWS may allow, it is the newest that is ready.
func (c *copying) look(ctx context.Context) (copied *types.Image, failed []string, err error) {
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(c.name)
	images, err := describe(ctx, c.ec2, "self", []types.Filter{{Name: aws.String("name"), Values: []string{plain}}})
	if err != nil {
		return nil, nil, fmt.Errorf("look for a copy that is there already: %w", err)
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

// input is the call. Its token is the same for every process that wants the
// same copy, and another once that has failed.
func (c *copying) input(dead []string) *ec2.CopyImageInput {
	in := &ec2.CopyImageInput{
		Name: aws.String(c.name), Description: c.source.Description, SourceImageId: c.source.ImageId, SourceRegion: aws.String(c.o.From),
	}
	if aws.ToString(in.Description) == "" {
		in.Description = nil
	}
	if len(c.source.Tags) > 0 { // otherwise nobody needs the permission to make tags
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

// rehearse asks AWS whether the copy would be allowed.
func (c *copying) rehearse(ctx context.Context) error {
	in := c.input(nil)
	in.ClientToken, in.DryRun = nil, aws.Bool(true)
	_, err := c.ec2.CopyImage(ctx, in)
	switch {
	case cloud.Is(err, "DryRunOperation"):
		return nil
	case err == nil:
		return errors.New("AWS took the dry run for real")
	}
	return c.explain(err)
}

// showing is how long AWS may take to show a new image.
const showing = time.Minute

// await returns an image that has been asked for, once it shows, and nil when
// it does not: a client token can stand for an image that is long gone.
func (c *copying) await(ctx context.Context, id string) (*types.Image, error) {
	for until := c.clock.Now().Add(showing); ; {
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

// image looks at an image of the destination, and returns nil when it is not
// there.
func (c *copying) image(ctx context.Context, id string) (*types.Image, error) {
	out, err := c.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{id}})
	switch {
	case cloud.NotFound(err) || err == nil && len(out.Images) == 0 || cloud.Is(err, "InvalidAMIID.Unavailable"):
		return nil, nil // it is not there: no error
	case ctx.Err() != nil:
		return nil, c.stopped(id, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("look at %s: %w", id, err)
	}
	return &out.Images[0], nil
}

// stopped says what becomes of a copy that nobody waits for any more.
func (c *copying) stopped(id string, why error) error {
	return fmt.Errorf("%w; AWS goes on copying %s: run the same command again to wait for it", why, id)
}

// remove takes away a copy that failed, and its snapshots.
func (c *copying) remove(ctx context.Context, id string) error {
	c.o.Tell("removing %s, a copy that failed, and its snapshots", id)
	_, err := c.ec2.DeregisterImage(ctx, &ec2.DeregisterImageInput{ImageId: aws.String(id), DeleteAssociatedSnapshots: aws.Bool(true)})
	if err = cloud.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("remove %s, a copy that failed: %w", id, err)
	}
	return nil
}

// explain says what to do about an error of CopyImage.
func (c *copying) explain(err error) error {
	switch {
	case cloud.Is(err, "UnauthorizedOperation"):
		permissions := "ec2:CopyImage"
		if len(c.source.Tags) > 0 {
			permissions += " and ec2:CreateTags"
		}
		return fmt.Errorf("%w\nneeded is %s in %s", err, permissions, c.o.To)
	case cloud.Is(err, "InvalidAMIName.Duplicate"):
		return fmt.Errorf("%w\nthe account has an image of that name that is no copy to go on with: deregister it, or use it", err)
	case cloud.Is(err, "ResourceLimitExceeded"):
		return fmt.Errorf("%w\nrun it again when other copies to %s are through", err, c.o.To)
	}
	return err
}
