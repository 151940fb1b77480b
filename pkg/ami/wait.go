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

// checkInterval is the time between two checks of a copy.
const checkInterval = 15 * time.Second

// step is the minimum progress in percent between two messages.
const step = 20

// wait returns the copy when it is ready. A failed copy is deleted, and the error
// contains the reason.
func (c *copying) wait(ctx context.Context, image *types.Image) (*types.Image, error) {
	began, reported := c.clock.Now(), 0
	id := *image.ImageId
	if image.State == types.ImageStatePending {
		c.o.Progress("waiting for %s in %s; this takes several minutes", id, c.o.To)
	}
	for image.State == types.ImageStatePending {
		waited := c.clock.Since(began)
		if waited >= c.o.Wait {
			return nil, c.stopped(id, fmt.Errorf("not ready after %s (--timeout)", c.o.Wait))
		}
		if percent := c.progress(ctx, *image); percent >= reported+step {
			reported = percent
			c.o.Progress("%s: %d%% copied after %s", id, percent, waited.Round(time.Second))
		}
		if err := c.clock.Sleep(ctx, min(checkInterval, c.o.Wait-waited)); err != nil {
			return nil, c.stopped(id, err)
		}
		seen, err := c.image(ctx, id)
		if passing(ctx, err) {
			c.o.Progress("%v; trying again", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if seen == nil {
			return nil, fmt.Errorf("%s does not exist any more: it was deregistered", id)
		}
		image = seen
	}
	if image.State != types.ImageStateAvailable {
		return nil, c.failed(ctx, *image)
	}
	if waited := c.clock.Since(began).Round(time.Second); waited > 0 {
		c.o.Progress("%s: ready after %s", id, waited)
	}
	if c.o.Encrypt {
		return image, c.checkEncrypted(ctx, *image)
	}
	return image, nil
}

// passing reports whether waiting can continue after an error, such as a lost connection
// or an error of the service.
func passing(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && (!cloud.Rejected(err) || cloud.Throttled(err))
}

// progress returns the percentage of the slowest snapshot, or 0 if it is unknown.
func (c *copying) progress(ctx context.Context, image types.Image) int {
	slowest := 100
	all, err := c.snapshots(ctx, image)
	if err != nil || len(all) == 0 {
		return 0 // not reported: the state of the image matters
	}
	for _, s := range all {
		n, _ := strconv.Atoi(strings.TrimSuffix(aws.ToString(s.Progress), "%")) // not a number means 0
		slowest = min(slowest, n)
	}
	return slowest
}

// snapshots describes the snapshots of a copy.
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

// failed returns the reason why a copy failed, and deletes the copy.
func (c *copying) failed(ctx context.Context, image types.Image) error {
	why := string(image.State)
	if image.StateReason != nil {
		why = aws.ToString(image.StateReason.Message)
	}
	all, err := c.snapshots(ctx, image)
	if err != nil {
		c.o.Progress("cannot describe the snapshots of %s: %v", *image.ImageId, err)
	}
	for _, s := range all {
		if text := aws.ToString(s.StateMessage); text != "" && !strings.Contains(why, text) {
			why += "; " + text
		}
	}
	err = fmt.Errorf("AWS could not create %s: %s", *image.ImageId, why)
	if c.o.Key != "" {
		err = fmt.Errorf("%w\nthe key %s must be symmetric and in %s, and its policy must permit you to use it "+
			"(kms:DescribeKey, kms:CreateGrant, kms:GenerateDataKeyWithoutPlaintext, kms:ReEncrypt*, kms:Decrypt)", err, c.o.Key, c.o.To)
	}
	return errors.Join(err, c.remove(ctx, *image.ImageId))
}

// checkEncrypted checks that every snapshot of the copy is encrypted with the requested
// key. An alias cannot be compared with a key.
func (c *copying) checkEncrypted(ctx context.Context, image types.Image) error {
	all, err := c.snapshots(ctx, image)
	if err != nil {
		return fmt.Errorf("%s is ready, but its encryption cannot be checked: %w", *image.ImageId, err)
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
