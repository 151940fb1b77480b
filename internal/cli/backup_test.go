package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// TestBackup backs up a cluster with a passphrase, and checks the file.
func TestBackup(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	folder := t.TempDir()
	passphrase, out := filepath.Join(folder, "passphrase"), filepath.Join(folder, "demo.backup")
	require.NoError(t, os.WriteFile(passphrase, []byte("correct horse\n"), 0o600))

	require.Equal(t, 3, s.run("cluster", "backup", "demo", "--to", out))
	assert.Contains(t, s.err.String(), "always encrypted: use --recipient")
	require.Equal(t, 3, s.run("cluster", "backup", "demo", "--to", out, "--recipient", "nonsense"))
	require.NoFileExists(t, out)

	require.Equal(t, 0, s.run("cluster", "backup", "demo", "--to", out, "--passphrase-file", passphrase, "-o", "json"), s.err.String())
	var taken, read map[string]any
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &taken))
	assert.Equal(t, "demo", taken["cluster"])
	assert.NotContains(t, s.err.String()+s.out.String(), "correct horse")
	require.Equal(t, 3, s.run("cluster", "backup", "demo", "--to", out, "--passphrase-file", passphrase))
	assert.Contains(t, s.err.String(), "exists: name another file with --to FILE")

	require.Equal(t, 0, s.run("cluster", "backup", "--verify", out, "--passphrase-file", passphrase, "-o", "json"), s.err.String())
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &read))
	assert.Equal(t, taken, read)
	require.Equal(t, 0, s.run("cluster", "backup", "--verify", out, "--passphrase-file", passphrase), s.err.String())
	assert.Contains(t, s.out.String(), "revision    ")
	require.NoError(t, os.WriteFile(passphrase, []byte("wrong\n"), 0o600))
	require.Equal(t, 1, s.run("cluster", "backup", "--verify", out, "--passphrase-file", passphrase))
	assert.Contains(t, s.err.String(), "decrypt")
	require.Equal(t, 3, s.run("cluster", "backup", "--verify", out))
	require.Equal(t, 4, s.run("cluster", "backup", "nowhere", "--to", strings.TrimSuffix(out, ".backup"), "--passphrase-file", passphrase))
}

// A backup in the bucket of the cluster is not deleted with it: neither when the cluster is deleted, nor when the bucket is removed from the manifest.
func TestBackupInTheBucketOfTheCluster(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file, folder := s.generated(t), t.TempDir()
	without, err := os.ReadFile(file)
	require.NoError(t, err)
	const plane = "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n"
	bucket := "  s3Bucket:\n    name: demo-bucket\n    controlPlaneIAMInstanceProfile: control-plane.cluster-api-provider-aws.sigs.k8s.io\n" +
		"    nodesIAMInstanceProfiles: [nodes.cluster-api-provider-aws.sigs.k8s.io]\n"
	with := strings.Replace(string(without), plane, plane+bucket, 1)
	require.Contains(t, with, bucket)
	require.NoError(t, os.WriteFile(file, []byte(with), 0o600))
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	passphrase := filepath.Join(folder, "passphrase")
	require.NoError(t, os.WriteFile(passphrase, []byte("correct horse\n"), 0o600))
	require.Equal(t, 0, s.run("cluster", "backup", "demo", "--to", "s3://demo-bucket/backups/one", "--passphrase-file", passphrase), s.err.String())
	assert.Contains(t, s.err.String(), "bucket demo-bucket is a part of the cluster")

	const told = "bucket demo-bucket has 1 object that no run has stored (backups/one)"
	require.NoError(t, os.WriteFile(file, without, 0o600))
	for _, args := range [][]string{{"delete", "demo", "--dry-run"}, {"delete", "demo", "--yes"}, {"plan", "-f", file}, {"create", "-f", file, "--yes"}} {
		require.Equal(t, 4, s.run(append([]string{"cluster"}, args...)...), "%v", args)
		assert.Contains(t, s.err.String(), told, "%v", args)
	}
	require.Equal(t, 0, s.run("cluster", "backup", "--verify", "s3://demo-bucket/backups/one", "--passphrase-file", passphrase), s.err.String())
}

// TestBackupFlags refuses flags that do not fit together.
func TestBackupFlags(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	there := filepath.Join(t.TempDir(), "there")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	for line, why := range map[string]string{
		"--backup new.backup":                                     "always encrypted: use --backup-recipient",
		"--backup-recipient alias/backups":                        "--backup-recipient belongs to --backup",
		"--backup new.backup --backup-recipient nonsense":         "recipient",
		"--backup " + there + " --backup-recipient alias/backups": "exists: name another file with --backup FILE",
		"--backup x --backup-recipient alias/b --restore old":     "--restore and --new-etcd are for one that is lost",
		"--backup x --backup-recipient alias/b --new-etcd=demo":   "--restore and --new-etcd are for one that is lost",
		"--age-key key.txt":                                       "belong to --restore",
	} {
		for _, command := range []string{"create --yes", "plan"} {
			args := append(strings.Fields("cluster "+command+" -f "+file), strings.Fields(line)...)
			require.Equal(t, 3, s.run(args...), line)
			assert.Contains(t, s.err.String(), why, line)
			assert.Len(t, strings.Split(strings.TrimSpace(s.err.String()), "\n"), 1, line)
		}
	}
	require.Equal(t, 3, s.run("cluster", "backup", "--verify", there, "--kms-key", "alias/backups"))
	require.Equal(t, 4, s.run("cluster", "plan", "-f", file, "--restore", "s3://nowhere/x"))
	assert.Contains(t, s.err.String(), "restore: bucket nowhere does not exist")
}

// TestBackupOffered says once in a plan that replaces the control plane that a backup can be made first, and makes
// it. A restore is shown by a plan before it is done.
func TestBackupOffered(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	const key = "arn:aws:kms:us-east-1:123456789012:key/1234abcd"
	s.simulatedAccount(t, func(state *awssim.State) {
		state.KMS.Keys[key] = &awssim.Key{}
		state.S3.Buckets["backups"] = &awssim.Bucket{Name: "backups", Region: "eu-west-1", Objects: map[string]*awssim.Object{}}
		state.S3.Buckets["staging"] = &awssim.Bucket{Name: "staging", Objects: map[string]*awssim.Object{}}
	})
	const offer = "--backup FILE backs up etcd and the keys of the cluster first"
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file))
	assert.NotContains(t, s.out.String(), offer)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := strings.Replace(string(text), "instanceType: t3.large", "instanceType: m5.xlarge", 1)
	require.NotEqual(t, string(text), changed)
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file), s.err.String())
	assert.Equal(t, 1, strings.Count(s.out.String()+s.err.String(), offer))
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--backup", "s3://backups/first", "--backup-recipient", key), s.err.String())
	assert.NotContains(t, s.out.String(), offer)
	require.Equal(t, 4, s.run("cluster", "create", "-f", file, "--yes", "--backup", "s3://nowhere/first", "--backup-recipient", key))
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes", "--backup", "s3://backups/first", "--backup-recipient", key), s.err.String())
	assert.Contains(t, s.err.String(), "the cluster is backed up in s3://backups/first: revision ")
	require.Equal(t, 0, s.run("cluster", "backup", "--verify", "s3://backups/first"), s.err.String())
	require.Equal(t, 0, s.run("cluster", "backup", "demo", "--to", "s3://backups/daily/", "--kms-key", key), s.err.String())
	assert.Regexp(t, `file +s3://backups/daily/demo-\d{8}T\d{6}Z.backup `, s.out.String())

	s.simulatedAccount(t, func(state *awssim.State) {
		for _, i := range state.EC2.Instances {
			if i.Tags["sigs.k8s.io/cluster-api-provider-aws/role"] == "control-plane" && i.Terminating.IsZero() {
				i.Terminating, i.Terminated = i.Running, i.Running.Add(time.Second)
			}
		}
	})
	restore := []string{"cluster", "create", "-f", file, "--restore", "s3://backups/first", "--restore-bucket", "staging"}
	for _, args := range [][]string{append(restore, "--dry-run"), {"cluster", "plan", "-f", file, "--restore", "s3://backups/first", "--restore-bucket", "staging"}} {
		require.Equal(t, 0, s.run(args...), s.err.String())
		assert.Contains(t, s.err.String(), "the control plane begins with the snapshot of ")
		assert.Contains(t, s.out.String(), "restore")
	}
	require.Equal(t, 0, s.run(append(restore, "--yes")...), s.err.String())
	require.Equal(t, 0, s.run("cluster", "plan", "-f", file, "--detailed-exitcode"), s.out.String(), s.err.String())
}

// TestBackupPolicy adds what backups need to the policy.
func TestBackupPolicy(t *testing.T) {
	s := newShell(t)
	file := s.generated(t)
	for _, args := range [][]string{{"-f", file}, {"--kind", "self-managed"}} {
		require.Equal(t, 0, s.run(append([]string{"cluster", "policy"}, args...)...), s.err.String())
		assert.NotContains(t, s.out.String(), "kms:Encrypt")
		require.Equal(
			t,
			0,
			s.run(append([]string{"cluster", "policy", "--backup-bucket", "mine", "--backup-kms-key", "arn:aws:kms:eu-west-1:123456789012:key/1"}, args...)...),
			s.err.String(),
		)
		for _, want := range []string{`"arn:aws:s3:::mine/*"`, `"s3:PutObject"`, `"kms:Encrypt"`, `"arn:aws:kms:eu-west-1:123456789012:key/1"`} {
			assert.Contains(t, s.out.String(), want)
		}
	}
}
