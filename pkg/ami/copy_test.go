package ami_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/ami"
)

const (
	key    = "1234abcd-12ab-34cd-56ef-1234567890ab"
	keyARN = "arn:aws:kms:us-west-2:" + awssim.Account + ":key/" + key
)

// wanted is an encrypted copy from us-east-1 to us-west-2.
func wanted() ami.CopyOptions {
	return ami.CopyOptions{OS: "ubuntu-24.04", Version: "v1.34.2", From: "us-east-1", To: "us-west-2", Encrypt: true, Key: key, Wait: time.Hour}
}

// story records the messages.
func story(o *ami.CopyOptions) *[]string {
	var lines []string
	o.Progress = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	return &lines
}

func describe(t *testing.T, a *awssim.AWS, region, id string) types.Image {
	t.Helper()
	cfg := a.Config()
	cfg.Region = region
	out, err := ec2.NewFromConfig(cfg).DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{id}})
	require.NoError(t, err)
	return out.Images[0]
}

// demanding makes the source an image with all properties that an image can have.
func demanding(s *awssim.State) {
	for _, i := range s.EC2.Images {
		if i.Name == "capa-ami-ubuntu-24.04-v1.34.2-1765664000" {
			i.BootMode, i.TPM, i.IMDS, i.SRIOV, i.UEFI = "uefi", "v2.0", "v2.0", "simple", "data"
			i.Devices = []awssim.Device{
				{Name: "/dev/sda1", Snapshot: "snap-root", Size: 8, Type: "gp3", IOPS: 3000, Throughput: 125},
				{Name: "/dev/sdb", Snapshot: "snap-data", Size: 100, Type: "gp2", KeepsInstance: true},
				{Name: "/dev/sdc", Virtual: "ephemeral0"},
			}
		}
	}
}

func TestEncryptedCopyKeepsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Lag: 3 * time.Second})
		a.Edit(demanding)
		o := wanted()
		lines := story(&o)
		got, err := ami.Copy(t.Context(), a.Config(), o)
		require.NoError(t, err)
		assert.False(t, got.Reused)
		assert.Regexp(t, `^capa-ami-ubuntu-24.04-v1.34.2-1765664000enc[0-9a-f]{8}$`, got.Name)
		assert.True(t, ami.Matches(got.Name, "ubuntu-24.04", "v1.34.2"), "it is found by its name")
		assert.Contains(t, (*lines)[len(*lines)-1], "ready after")
		assert.Len(t, *lines, 6, "%q", *lines)

		x := describe(t, a, "us-west-2", got.ID)
		assert.Equal(t, types.ImageStateAvailable, x.State)
		assert.Equal(t, types.BootModeValuesUefi, x.BootMode)
		assert.Equal(t, types.TpmSupportValuesV20, x.TpmSupport)
		assert.Equal(t, types.ImdsSupportValuesV20, x.ImdsSupport)
		assert.Equal(t, "simple", *x.SriovNetSupport)
		assert.Equal(t, "Kubernetes v1.34.2 on ubuntu-24.04", *x.Description)
		require.Len(t, x.BlockDeviceMappings, 3)
		assert.Equal(t, "ephemeral0", *x.BlockDeviceMappings[2].VirtualName)
		assert.False(t, *x.BlockDeviceMappings[1].Ebs.DeleteOnTermination)
		a.Edit(func(s *awssim.State) {
			there := s.EC2.Elsewhere["us-west-2"]
			assert.Equal(t, "data", there.Images[got.ID].UEFI)
			assert.Len(t, there.Snapshots, 2)
			for _, snapshot := range there.Snapshots {
				assert.True(t, snapshot.Encrypted)
				assert.Equal(t, keyARN, snapshot.Key)
			}
		})
	})
}

// A second run returns the existing copy.
func TestCopyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		for _, o := range []ami.CopyOptions{
			wanted(),
			{Version: "1.34.2", From: "us-east-1", To: "us-west-2"},
			{Version: "1.34.2", From: "us-east-1", To: "us-east-1"},
			{Version: "1.34.2", From: "us-east-1", To: "us-west-2", Architecture: ami.Arm64, Wait: time.Hour},
			{Version: "1.34.2", From: "us-east-1", To: "us-west-2", Encrypt: true, Wait: time.Hour},
		} {
			first, err := ami.Copy(t.Context(), a.Config(), o)
			require.NoError(t, err)
			before := a.Inventory()
			o.DryRun = true
			rehearsed, err := ami.Copy(t.Context(), a.Config(), o)
			require.NoError(t, err)
			assert.Equal(t, first.ID, rehearsed.ID)
			o.DryRun = false
			again, err := ami.Copy(t.Context(), a.Config(), o)
			require.NoError(t, err)
			assert.False(t, first.Reused)
			assert.True(t, again.Reused)
			assert.Equal(t, first.ID, again.ID)
			assert.WithinDuration(t, first.Created, again.Created, time.Hour)
			assert.Len(t, a.Inventory(), len(before))
		}
	})
}

// A deleted copy is created again, although AWS remembers the client token.
func TestCopyAfterRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		first, err := ami.Copy(t.Context(), a.Config(), wanted())
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { delete(s.EC2.Elsewhere["us-west-2"].Images, first.ID) })
		second, err := ami.Copy(t.Context(), a.Config(), wanted())
		require.NoError(t, err)
		assert.NotEqual(t, first.ID, second.ID)
		third, err := ami.Copy(t.Context(), a.Config(), wanted())
		require.NoError(t, err)
		assert.Equal(t, second.ID, third.ID)
	})
}

func TestCopyWithAKeyThatCannotBeUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		before := a.Inventory()
		o := wanted()
		o.Key = "alias/nobody"
		_, err := ami.Copy(t.Context(), a.Config(), o)
		require.ErrorContains(t, err, "Given key ID is not accessible")
		require.ErrorContains(t, err, "the key alias/nobody must be symmetric and in us-west-2")
		assert.Equal(t, before, a.Inventory(), "nothing remains")

		// The first run did not wait: the next run finds the failed copy, deletes it and
		// starts again.
		o.Wait = 0
		_, err = ami.Copy(t.Context(), a.Config(), o)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		a.Edit(func(s *awssim.State) { s.EC2.Keys["9999abcd-12ab-34cd-56ef-1234567890ab"] = "alias/nobody" })
		o.Wait = time.Hour
		got, err := ami.Copy(t.Context(), a.Config(), o)
		require.NoError(t, err)
		assert.Equal(t, types.ImageStateAvailable, describe(t, a, "us-west-2", got.ID).State)
		assert.Len(t, a.Inventory(), len(before)+2, "an image and its snapshot: %q", a.Inventory())
	})
}

func TestDryRunTellsTheTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, encrypt := range []bool{false, true} {
			a := awssim.New(awssim.Options{})
			before := a.Inventory()
			o := wanted()
			o.DryRun, o.Encrypt, o.Key = true, encrypt, ""
			got, err := ami.Copy(t.Context(), a.Config(), o)
			require.NoError(t, err)
			assert.Empty(t, got.ID)
			assert.Equal(t, before, a.Inventory())
			for _, c := range a.Calls() {
				if c.Operation == "CopyImage" {
					assert.Equal(t, "DryRunOperation", c.Err)
				}
			}
			p := a.Process()
			p.Fault = denied("CopyImage")
			_, err = ami.Copy(t.Context(), p.Config(), o)
			require.ErrorContains(t, err, "UnauthorizedOperation")
			require.ErrorContains(t, err, "required are the permissions ec2:CopyImage in us-west-2")
		}
	})
}

func denied(op string) func(int, string, string) awssim.Fault {
	return func(_ int, _, o string) awssim.Fault {
		if o == op {
			return awssim.Denied
		}
		return awssim.None
	}
}

func TestCopyRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		o := wanted()
		o.Version = "v1.99.3"
		_, err := ami.Copy(t.Context(), a.Config(), o)
		require.ErrorContains(t, err, `found no AMIs with name "capa-ami-ubuntu-24.04-?1.99.3-*", architecture "x86_64", ownerID "819546954734" in us-east-1`)

		o = wanted()
		o.Wait = time.Minute
		_, err = ami.Copy(t.Context(), a.Config(), o)
		require.ErrorContains(t, err, "not ready after 1m0s (--timeout); the copy ami-")

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(30*time.Second, func() { cancel(errors.New("interrupted")) })
		_, err = ami.Copy(ctx, a.Config(), wanted())
		require.ErrorContains(t, err, "interrupted; the copy ami-")

		got, err := ami.Copy(t.Context(), a.Config(), wanted())
		require.NoError(t, err)
		assert.True(t, got.Reused)

		a.Edit(func(s *awssim.State) {
			for n := range 20 {
				id := fmt.Sprint("snap-", n)
				s.EC2.Elsewhere["us-west-2"].Snapshots[id] = &awssim.Snapshot{Thing: awssim.Thing{ID: id}, Ready: time.Now().Add(time.Hour)}
			}
		})
		o = wanted()
		o.OS = "flatcar-stable"
		_, err = ami.Copy(t.Context(), a.Config(), o)
		require.ErrorContains(t, err, "run the command again when other copies to us-west-2 are complete")

		a.Edit(func(s *awssim.State) {
			for _, i := range s.EC2.Images {
				i.Devices = []awssim.Device{{Name: "/dev/sda1", Virtual: "ephemeral0"}}
			}
		})
		_, err = ami.Copy(t.Context(), a.Config(), o)
		require.ErrorContains(t, err, "image does not have EBS attached")
	})
}

// An image of the own account is copied with its tags.
func TestCopyKeepsTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		a.Edit(func(s *awssim.State) {
			s.EC2.Images["ami-own"] = &awssim.Image{
				Thing: awssim.Thing{ID: "ami-own", Tags: map[string]string{"team": "red"}}, Name: "capa-ami-ubuntu-24.04-v1.34.2-1", Owner: awssim.Account,
				Architecture: ami.X8664, RootDevice: "/dev/sda1", RootSize: 8, Created: time.Now(),
			}
		})
		o := wanted()
		o.Owner = "self"
		got, err := ami.Copy(t.Context(), a.Config(), o)
		require.NoError(t, err)
		assert.Equal(t, []types.Tag{{Key: aws.String("team"), Value: aws.String("red")}}, describe(t, a, "us-west-2", got.ID).Tags)
	})
}

// Whichever call fails, and however, a second run ends with one image and no snapshots
// but its own.
func TestEncryptedCopyMayFailAnywhere(t *testing.T) {
	total, want := 0, []string(nil)
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{Lag: 3 * time.Second})
		a.Edit(demanding)
		p := a.Process()
		_, err := ami.Copy(t.Context(), p.Config(), wanted())
		require.NoError(t, err)
		total, want = p.Calls(), a.Inventory()
		require.Len(t, want, 3)
	})
	for _, fault := range []awssim.Fault{awssim.Throttled, awssim.Denied, awssim.Broken, awssim.KillBefore, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter} {
		for n := 1; n <= total; n++ {
			t.Run(fmt.Sprint(fault, " ", n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := awssim.New(awssim.Options{Lag: 3 * time.Second})
					a.Edit(demanding)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					p := a.Process()
					p.Killed = cancel
					p.Fault = func(call int, _, _ string) awssim.Fault {
						if call == n {
							return fault
						}
						return awssim.None
					}
					_, err := ami.Copy(ctx, p.Config(), wanted())
					if slices.Contains([]awssim.Fault{awssim.Throttled, awssim.LostBefore, awssim.LostAfter}, fault) {
						require.NoError(t, err)
					}
					got, err := ami.Copy(t.Context(), a.Config(), wanted())
					require.NoError(t, err)
					assert.Equal(t, types.ImageStateAvailable, describe(t, a, "us-west-2", got.ID).State)
					assert.Equal(t, want, a.Inventory())
				})
			})
		}
	}
}

// A temporary loss of the connection does not end the wait.
func TestWaitingOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		p := a.Process()
		p.Fault = func(n int, _, _ string) awssim.Fault {
			if n > 10 && n < 20 {
				return awssim.LostBefore
			}
			return awssim.None
		}
		o := wanted()
		lines := story(&o)
		_, err := ami.Copy(t.Context(), p.Config(), o)
		require.NoError(t, err)
		assert.Contains(t, strings.Join(*lines, "\n"), "connection reset by peer; trying again")
	})
}

// A run that dies while it deletes a failed copy leaves nothing that disturbs the next
// run.
func TestRemovalMayFailAnywhere(t *testing.T) {
	for _, fault := range []awssim.Fault{awssim.Denied, awssim.KillBefore, awssim.KillAfter} {
		for n := 1; ; n++ {
			calls := 0
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{})
				before := len(a.Inventory())
				o := wanted()
				o.Key = "alias/nobody"
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := a.Process()
				p.Killed = cancel
				p.Fault = func(call int, _, _ string) awssim.Fault {
					if call == n {
						return fault
					}
					return awssim.None
				}
				_, err := ami.Copy(ctx, p.Config(), o)
				require.Error(t, err)
				calls = p.Calls()
				time.Sleep(time.Hour)
				a.Edit(func(s *awssim.State) { s.EC2.Keys["9999abcd-12ab-34cd-56ef-1234567890ab"] = "alias/nobody" })
				_, err = ami.Copy(t.Context(), a.Config(), o)
				require.NoError(t, err)
				assert.Len(t, a.Inventory(), before+2, "%s %d: %q", fault, n, a.Inventory())
			})
			if calls < n {
				break
			}
		}
	}
}
