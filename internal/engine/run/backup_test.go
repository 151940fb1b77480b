package run_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addBucket creates a bucket in a region.
func addBucket(t *testing.T, a *awssim.AWS, name, region string) {
	t.Helper()
	in := &awss3.CreateBucketInput{Bucket: aws.String(name)}
	if region != "us-east-1" {
		in.CreateBucketConfiguration = &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(region)}
	}
	_, err := awss3.NewFromConfig(a.Process().Config()).CreateBucket(t.Context(), in)
	require.NoError(t, err)
}

// named opens a cluster by its name in a process.
func named(name string, p *awssim.Process) *run.Cluster {
	return run.OpenByName(name, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)})
}

// target is the account of a process.
func target(p *awssim.Process) *cluster.Target { return &cluster.Target{Config: p.Config()} }

// TestBackupInS3 stores backups in buckets of the same region and of another one, reads them, and restores one. A
// backup is never overwritten.
func TestBackupInS3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "quickstart")
		enginetest.AddNetwork(a)
		enginetest.AddSettings(a, "before")
		addBucket(t, a, "near", "us-east-1")
		addBucket(t, a, "far", "eu-central-1")
		addBucket(t, a, staging, "us-east-1")
		write, read := enginetest.BackupKeys(t)
		for _, to := range []string{"s3://near/demo.backup", "s3://far/backups/demo.backup"} {
			info, err := named(m.Name, a.Process()).Backup(t.Context(), to, write)
			require.NoError(t, err, to)
			again, err := run.ReadBackup(t.Context(), to, read, target(a.Process()))
			require.NoError(t, err, to)
			assert.Equal(t, info, again)
		}
		n := len(a.Calls())
		_, err := named(m.Name, a.Process()).Backup(t.Context(), "s3://far/backups/demo.backup", write)
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "s3://far/backups/demo.backup exists: a backup is never overwritten")
		for _, c := range a.Calls()[n:] {
			assert.NotEqual(t, "PutObject", c.Operation)
		}
		for to, why := range map[string]string{
			"s3://nowhere/demo.backup":       "bucket nowhere does not exist",
			"s3://taken-by-them/demo.backup": "Access",
			"s3://near":                      "use s3://BUCKET/KEY",
			"s3://near/":                     "use s3://BUCKET/KEY",
			"s3:///demo":                     "use s3://BUCKET/KEY",
		} {
			_, err := named(m.Name, a.Process()).Backup(t.Context(), to, write)
			require.ErrorAs(t, err, new(*plan.RefusedError), to)
			require.ErrorContains(t, err, why, to)
		}
		_, err = run.ReadBackup(t.Context(), "s3://far/other", read, target(a.Process()))
		require.ErrorContains(t, err, "s3://far/other does not exist")

		enginetest.AddSettings(a, "after")
		loseControlPlane(t, a)
		_, err = restores(
			m,
			a.Process(),
			&cluster.Restore{File: "s3://far/backups/demo.backup", Keys: read, Bucket: staging},
		).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		requireRestored(t, m, a)
	})
}

// TestBackupInS3Fails backs up to a bucket in another region while a call fails. A run that fails can be
// repeated, and one whose answer is lost does not take its own object for somebody else's.
func TestBackupInS3Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "quickstart")
		addBucket(t, a, "far", "eu-central-1")
		a.Edit(func(s *awssim.State) { s.KMS.Keys[keyARN] = &awssim.Key{} })
		write := cluster.BackupKeys{KMS: []string{keyARN}}
		for _, fault := range []awssim.Fault{awssim.LostBefore, awssim.LostAfter, awssim.Broken, awssim.Cut, awssim.Throttled, awssim.Denied, awssim.KillBefore, awssim.KillAfter} {
			for at := 1; ; at++ {
				p := a.Process()
				struck, call, asked := false, "", 0
				p.Fault = func(_ int, service, op string) awssim.Fault {
					if service != "S3" && service != "KMS" {
						return awssim.None
					}
					if asked++; asked != at {
						return awssim.None
					}
					struck, call = true, op
					return fault
				}
				_, err := named(m.Name, p).Backup(t.Context(), "s3://far/demo.backup", write)
				stored := 0
				a.Edit(func(s *awssim.State) { stored = len(s.S3.Buckets["far"].Objects) })
				what := string(fault) + " " + call
				switch {
				case err == nil:
					require.Equal(t, 1, stored, what)
					_, err := run.ReadBackup(t.Context(), "s3://far/demo.backup", cluster.BackupKeys{}, target(a.Process()))
					require.NoError(t, err, what)
				case fault == awssim.KillAfter && call == "PutObject":
					require.Equal(t, 1, stored, what)
				default:
					require.Zero(t, stored, "%s: %v", what, err)
					require.Contains(t, []awssim.Fault{awssim.Denied, awssim.KillBefore, awssim.KillAfter}, fault, "%s: %v", call, err)
				}
				if !struck {
					require.NoError(t, err)
				}
				a.Edit(func(s *awssim.State) { clear(s.S3.Buckets["far"].Objects) })
				if !struck {
					break
				}
			}
		}
	})
}

const (
	keyARN   = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	otherARN = "arn:aws:kms:eu-central-1:123456789012:key/0987dcba-09fe-87dc-65ba-ab0987654321"
)

// addKeys adds a key of KMS with an alias, and one in another region.
func addKeys(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		s.KMS.Keys[keyARN], s.KMS.Keys[otherARN] = &awssim.Key{}, &awssim.Key{}
		s.KMS.Aliases["arn:aws:kms:us-east-1:123456789012:alias/backups"] = keyARN
	})
}

// TestBackupWithKMS encrypts backups with keys of KMS, and restores one without naming the key.
func TestBackupWithKMS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "quickstart")
		enginetest.AddNetwork(a)
		enginetest.AddSettings(a, "before")
		addBucket(t, a, staging, "us-east-1")
		addKeys(a)
		file := filepath.Join(t.TempDir(), "demo.backup")
		keys := cluster.BackupKeys{KMS: []string{"alias/backups", otherARN}}
		info, err := named(m.Name, a.Process()).Backup(t.Context(), file, keys)
		require.NoError(t, err)
		verify := func() error {
			again, err := run.ReadBackup(t.Context(), file, cluster.BackupKeys{}, target(a.Process()))
			if err == nil {
				assert.Equal(t, info, again)
			}
			return err
		}
		require.NoError(t, verify())
		_, err = run.ReadBackup(t.Context(), file, cluster.BackupKeys{}, nil)
		require.ErrorIs(t, err, cluster.ErrNoBackupKey, "without an account")
		a.Edit(func(s *awssim.State) { s.KMS.Keys[keyARN].State = kmstypes.KeyStateDisabled })
		require.NoError(t, verify(), "one of two keys is enough")

		enginetest.AddSettings(a, "after")
		loseControlPlane(t, a)
		restore := &cluster.Restore{File: file, Bucket: staging}
		for why, change := range map[string]func(*awssim.Key){
			"the key is disabled: enable it": func(k *awssim.Key) { k.State = kmstypes.KeyStateDisabled },
			"its deletion is pending":        func(k *awssim.Key) { k.State = kmstypes.KeyStatePendingDeletion },
			"you are not permitted":          func(k *awssim.Key) { k.Denies = []string{"Decrypt"} },
		} {
			a.Edit(func(s *awssim.State) {
				for _, k := range s.KMS.Keys {
					*k = awssim.Key{}
					change(k)
				}
			})
			n := len(a.Calls())
			_, err = restores(m, a.Process(), restore).Apply(t.Context(), cluster.Options{})
			require.ErrorAs(t, err, new(*plan.RefusedError))
			require.ErrorContains(t, err, why)
			requireNothingDone(t, a, n)
		}
		a.Edit(func(s *awssim.State) { *s.KMS.Keys[keyARN] = awssim.Key{} })
		_, err = restores(m, a.Process(), restore).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		requireRestored(t, m, a)
	})
}

// requireNothingDone requires that the calls since the n-th have launched and stored nothing.
func requireNothingDone(t *testing.T, a *awssim.AWS, n int) {
	t.Helper()
	for _, c := range a.Calls()[n:] {
		assert.False(t, c.Operation == "RunInstances" || c.Operation == "PutObject" || c.Operation == "TerminateInstances", c.Operation)
	}
}

// TestBackupWithWrongKMSKey refuses keys that cannot encrypt, before a snapshot is taken.
func TestBackupWithWrongKMSKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "quickstart")
		for key, want := range map[string]struct {
			why    string
			change func(*awssim.Key)
		}{
			"alias/nobody": {"the key does not exist in us-east-1", nil},
			"arn:aws:kms:eu-central-1:123456789012:alias/backups": {"the key does not exist in eu-central-1", nil},
			"arn:aws:s3:::bucket":    {"this is not the ARN of a key", nil},
			"arn:":                   {"this is not the ARN of a key", nil},
			"alias/backups disabled": {"the key is disabled", func(k *awssim.Key) { k.State = kmstypes.KeyStateDisabled }},
			"alias/backups deleted":  {"its deletion is pending", func(k *awssim.Key) { k.State = kmstypes.KeyStatePendingDeletion }},
			"alias/backups denied":   {"kms:Encrypt for backups", func(k *awssim.Key) { k.Denies = []string{"Encrypt"} }},
			"alias/backups hmac":     {"use a symmetric key", func(k *awssim.Key) { k.Usage = kmstypes.KeyUsageTypeGenerateVerifyMac }},
		} {
			addKeys(a)
			if want.change != nil {
				a.Edit(func(s *awssim.State) { want.change(s.KMS.Keys[keyARN]) })
			}
			name, _, _ := strings.Cut(key, " ")
			file := filepath.Join(t.TempDir(), "demo.backup")
			p := a.Process()
			asked := false
			p.Fault = func(_ int, service, _ string) awssim.Fault {
				asked = asked || service == "Kubernetes"
				return awssim.None
			}
			_, err := named(m.Name, p).Backup(t.Context(), file, cluster.BackupKeys{KMS: []string{name}})
			require.ErrorAs(t, err, new(*plan.RefusedError), key)
			require.ErrorContains(t, err, want.why, key)
			require.NoFileExists(t, file)
			require.False(t, asked, key)
			require.NotContains(t, strings.TrimSpace(err.Error()), "\n", "one line")
		}
	})
}

// TestBackupFirst rolls the control plane out with Target.Backup: the backup is there before the first machine
// is launched, and no backup is made for other changes. If it fails, nothing is changed.
func TestBackupFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "three-zones")
		enginetest.AddNetwork(a)
		addBucket(t, a, "far", "eu-central-1")
		write, _ := enginetest.BackupKeys(t)
		p := a.Process()
		with := func(to string) *run.Cluster {
			return run.Open(m, cluster.Target{
				Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.NodesJoined, Drain: true,
				Backup: &cluster.BackupFirst{To: to, Keys: write}, Warn: func(text string) { t.Log(text) },
			})
		}
		_, err := with("s3://far/first").Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		m.Deployments[0].Object.Spec.Replicas = aws.Int32(2)
		_, err = with("s3://far/first").Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		stored := 0
		a.Edit(func(s *awssim.State) { stored = len(s.S3.Buckets["far"].Objects) })
		assert.Zero(t, stored, "no machine of the control plane is replaced")

		m.ControlPlane.Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
		planned, err := with("s3://far/first").Plan(t.Context())
		require.NoError(t, err)
		assert.True(t, planned.ReplacesControlPlane)
		n := len(a.Calls())
		_, err = with("s3://nowhere/first").Apply(t.Context(), cluster.Options{Confirm: func(plan.Plan) (bool, error) { return false, errors.New("asked") }})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "backup: bucket nowhere does not exist")
		requireNothingDone(t, a, n)

		enginetest.LoseMembers(a, 0)
		_, err = with("s3://far/first").Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "backup, before the first change")
		require.ErrorAs(t, err, new(*plan.RefusedError))
		requireNothingDone(t, a, n)
	})
	synctest.Test(t, func(t *testing.T) {
		m, a := enginetest.Running(t, "three-zones")
		enginetest.AddNetwork(a)
		addBucket(t, a, "far", "eu-central-1")
		write, read := enginetest.BackupKeys(t)
		m.ControlPlane.Template.Spec.Template.Spec.InstanceType = "m5.xlarge"
		n, p := len(a.Calls()), a.Process()
		_, err := run.Open(m, cluster.Target{
			Config:    p.Config(),
			Owner:     "test",
			Transport: enginetest.Transport(p),
			Wait:      plan.NodesJoined,
			Drain:     true,
			Backup:    &cluster.BackupFirst{To: "s3://far/first", Keys: write},
		}).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		var order []string
		for _, c := range a.Calls()[n:] {
			order = append(order, c.Operation)
		}
		assert.Less(t, slices.Index(order, "PutObject"), slices.Index(order, "RunInstances"))
		assert.NotContains(t, order[:slices.Index(order, "PutObject")], "CreateLaunchTemplate")
		info, err := run.ReadBackup(t.Context(), "s3://far/first", read, target(a.Process()))
		require.NoError(t, err)
		assert.Equal(t, m.Name, info.Cluster)
	})
}
