package ami

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// looking is how often a copy under way is looked at.
const looking = 15 * time.Second

// step is how many percent further a copy has to be to be told of.
const step = 20

// wait returns the copy when it is ready. One that fails is removed, and the
// error says why it did.
func (c *copying) wait(ctx context.Context, image *types.Image) (*types.Image, error) {
	began, told := c.clock.Now(), 0
	id := *image.ImageId
	if image.State == types.ImageStatePending {
		c.o.Tell("waiting for %s in %s; AWS takes some minutes", id, c.o.To)
	}
	for image.State == types.ImageStatePending {
		waited := c.clock.Since(began)
		if waited >= c.o.Wait {
			return nil, c.stopped(id, fmt.Errorf("not ready after %s (--timeout)", c.o.Wait))
		}
		if percent := c.progress(ctx, *image); percent >= told+step {
			told = percent
			c.o.Tell("%s: %d%% copied after %s", id, percent, waited.Round(time.Second))
		}
		if err := c.clock.Sleep(ctx, min(looking, c.o.Wait-waited)); err != nil {
			return nil, c.stopped(id, err)
		}
		seen, err := c.image(ctx, id)
		if passing(ctx, err) {
			c.o.Tell("%v; looking again", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if seen == nil {
			return nil, fmt.Errorf("%s has disappeared: somebody deregistered it", id)
		}
		image = seen
	}
	if image.State != types.ImageStateAvailable {
		return nil, c.failed(ctx, *image)
	}
	if waited := c.clock.Since(began).Round(time.Second); waited > 0 {
		c.o.Tell("%s: ready after %s", id, waited)
	}
	if c.o.Encrypt {
		return image, c.checkEncrypted(ctx, *image)
	}
	return image, nil
}

// passing reports whether an error is no reason to stop waiting: a lost
// connection is none, nor is a service that is out of order.
func passing(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && (!cloud.Rejected(err) || cloud.Throttled(err))
}

// progress is how many percent of the slowest snapshot are copied; 0 where AWS
// does not tell.
func (c *copying) progress(ctx context.Context, image types.Image) int {
	slowest := 100
	all, err := c.snapshots(ctx, image)
	if err != nil || len(all) == 0 {
		return 0 // not worth a word: the image's own state decides
	}
	for _, s := range all {
		n, _ := strconv.Atoi(strings.TrimSuffix(aws.ToString(s.Progress), "%")) // no number is no progress
		slowest = min(slowest, n)
	}
	return slowest
}

// snapshots looks at the snapshots of a copy.
func (c *copying) snapshots(ctx context.Context, image types.Image) ([]types.Snapshot, error) {
	ids := snapshots(image)
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := c.ec2.DescribeSnapshots(ctx, &ec2.DescribeSnapshotsInput{SnapshotIds: ids})
	if err != nil {
		return nil, err
	}
	return out.Snapshots, nil
}

// failed says why a copy failed, and removes it.
func (c *copying) failed(ctx context.Context, image types.Image) error {
	why := string(image.State)
	if image.StateReason != nil {
		why = aws.ToString(image.StateReason.Message)
	}
	all, err := c.snapshots(ctx, image)
	if err != nil {
		c.o.Tell("the snapshots of %s cannot be looked at: %v", *image.ImageId, err)
	}
	for _, s := range all {
		if text := aws.ToString(s.StateMessage); text != "" && !strings.Contains(why, text) {
			why += "; " + text
		}
	}
	err = fmt.Errorf("AWS could not make %s: %s", *image.ImageId, why)
	if c.o.Key != "" {
		err = fmt.Errorf("%w\nthe key %s has to be in %s, symmetric, and its policy has to let you use it "+
			"(kms:DescribeKey, kms:CreateGrant, kms:GenerateDataKeyWithoutPlaintext, kms:ReEncrypt*, kms:Decrypt)", err, c.o.Key, c.o.To)
	}
	return errors.Join(err, c.remove(ctx, *image.ImageId))
}

// checkEncrypted makes sure that every snapshot of the copy is encrypted, and
// with the key that was asked for. An alias cannot be told from the key that
// it stands for.
func (c *copying) checkEncrypted(ctx context.Context, image types.Image) error {
	all, err := c.snapshots(ctx, image)
	if err != nil {
		return fmt.Errorf("%s is ready, but whether it is encrypted cannot be seen: %w", *image.ImageId, err)
	}
	key := c.o.Key
	if _, id, ok := strings.Cut(key, ":key/"); ok {
		key = id
	}
	for _, s := range all {
		have := aws.ToString(s.KmsKeyId)
		switch {
		case !aws.ToBool(s.Encrypted):
			return fmt.Errorf("%s is ready, but its snapshot %s is not encrypted: do not use it", *image.ImageId, *s.SnapshotId)
		case key != "" && !strings.Contains(key, "alias/") && !strings.HasSuffix(have, "/"+key):
			return fmt.Errorf("%s is ready, but its snapshot %s is encrypted with %s, not with %s", *image.ImageId, *s.SnapshotId, have, c.o.Key)
		}
	}
	return nil
}
