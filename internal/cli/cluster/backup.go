package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type backupOptions struct {
	manifestFlags
	to, verify string
	keys       cluster.BackupKeys
	output     choice
}

func newBackup(f *flags) *cobra.Command {
	o := &backupOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "backup {-f FILE | NAME}",
		Short: "Back up etcd and the keys of a cluster",
		Long: `Back up a self-managed cluster to one encrypted file: a snapshot of etcd, which has
all Kubernetes objects, and the keys of the cluster. If all machines of the control plane
are lost, 'cluster create --restore' makes a new control plane from it.

The snapshot comes from a healthy member of etcd, by the port forwarding of the API
server; members may be down as long as etcd has its quorum. The file is written after the
snapshot was checked: the SHA-256 that etcd appends, the pages and the keys of the
database. The command changes nothing in the cluster.

Everybody with the file and its key has full control of the cluster, so the file is
always encrypted: for public keys of age (https://age-encryption.org), which 'age-keygen'
makes, with keys of AWS KMS, or with a passphrase. It is an age file, which the program
age decrypts, too.

With --to s3://BUCKET/KEY, the backup is an object, in any region and account; it is
never overwritten. If the name ends with '/', NAME-TIME.backup is added.

If the API server encrypts Secrets with a file of the manifest, use -f: the backup then
has that file. With NAME alone, keep the file: without it, nobody can read the Secrets.

Data in volumes is not in etcd. The etcd of an EKS cluster is backed up by AWS.

With --verify, the command checks a backup that exists. It needs an account only for a
backup in S3 or a key of KMS.`,
		Example: `  clusterawsadm cluster backup demo --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kudyq4dtsyzz4av
  clusterawsadm cluster backup -f demo.yaml --to demo.backup --passphrase-file passphrase.txt -o json
  clusterawsadm cluster backup demo --to s3://my-bucket/demo/ --kms-key alias/backups
  clusterawsadm cluster backup --verify demo.backup --age-key key.txt`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.addManifest(cmd)
	output(cmd, &o.output, "text", "json", "yaml")
	cmd.Flags().StringVar(&o.to, "to", "", "`FILE` to write, which must not exist, or s3://BUCKET/KEY (default NAME-TIME.backup)")
	cmd.Flags().StringVar(&o.verify, "verify", "", "check the backup in `FILE`, or s3://BUCKET/KEY, and do nothing else")
	addRecipients(cmd, &o.keys)
	cmd.Flags().
		StringArrayVar(&o.keys.KMS, "kms-key", nil, "ID, ARN or alias of the KMS `KEY` with which the backup is encrypted; you need kms:Encrypt for it, and kms:Decrypt to read the backup; can be repeated")
	addAgeKey(cmd, &o.keys)
	addPassphrase(cmd, &o.keys)
	return cmd
}

// addRecipients adds the flag of the public keys that a backup is encrypted for.
func addRecipients(cmd *cobra.Command, k *cluster.BackupKeys) {
	cmd.Flags().StringArrayVar(&k.Recipients, "recipient", nil, "public `KEY` of age, for which the backup is encrypted; can be repeated")
}

// addAgeKey adds the flag of the private keys that decrypt a backup.
func addAgeKey(cmd *cobra.Command, k *cluster.BackupKeys) {
	cmd.Flags().StringVar(&k.Identities, "age-key", "", "`FILE` with the private key of age that decrypts the backup")
}

// addPassphrase adds the flag of the passphrase of a backup.
func addPassphrase(cmd *cobra.Command, k *cluster.BackupKeys) {
	cmd.Flags().StringVar(&k.Passphrase, "passphrase-file", "", "`FILE` whose first line is the passphrase of the backup")
}

func (o *backupOptions) run(ctx context.Context, args []string) (err error) {
	if o.verify != "" {
		return o.check(ctx, args)
	}
	if len(o.keys.Recipients)+len(o.keys.KMS) == 0 && o.keys.Passphrase == "" {
		return env.Usagef("%w: use --recipient with a public key of age, --kms-key, or --passphrase-file", cluster.ErrNoBackupKey)
	}
	if o.keys.Identities != "" {
		return env.Usagef("--age-key decrypts a backup: use it with --verify, and --recipient for a new backup")
	}
	if err := reconcile.CheckBackupKeys(o.keys); err != nil {
		return &env.UsageError{Err: err}
	}
	x, err := o.subject(ctx, args, runFlags{})
	if err != nil {
		return err
	}
	defer x.end(ctx, &err)
	c, s := x.cluster, x.session
	made := fmt.Sprintf("%s-%s.backup", c.Name, s.Clock.Now().UTC().Format("20060102T150405Z"))
	file := cmp.Or(o.to, made)
	if reconcile.BackupInS3(file) && strings.HasSuffix(file, "/") {
		file += made
	}
	if !reconcile.BackupInS3(file) {
		if err := checkNew("to", file); err != nil {
			return err
		}
	}
	info, err := c.Backup(ctx, file, o.keys)
	if err != nil {
		return err
	}
	return o.print(file, info)
}

// check checks a backup that exists.
func (o *backupOptions) check(ctx context.Context, args []string) (err error) {
	if len(args) > 0 || len(o.files) > 0 || o.to != "" || len(o.keys.Recipients)+len(o.keys.KMS) > 0 {
		return env.Usagef("--verify checks a file: use it with --age-key or --passphrase-file only")
	}
	var target *cluster.Target
	if reconcile.BackupInS3(o.verify) || o.keys.Identities == "" && o.keys.Passphrase == "" {
		s, opened := o.open(ctx, o.Region)
		if opened != nil {
			return opened
		}
		defer s.Close(&err)
		target = &s.target
	}
	info, err := reconcile.ReadBackup(ctx, o.verify, o.keys, target)
	if errors.Is(err, cluster.ErrNoBackupKey) {
		return env.Usagef("%w: use --age-key or --passphrase-file", err)
	}
	if err != nil {
		return err
	}
	return o.print(o.verify, info)
}

// backupOutput is the JSON output of the command.
type backupOutput struct {
	Version int    `json:"version"`
	File    string `json:"file"`
	cluster.BackupInfo
}

func (o *backupOptions) print(file string, info cluster.BackupInfo) error {
	if !info.Complete {
		o.warn(
			fmt.Sprintf(
				"the API server encrypts objects with %s, which is not in the backup: keep that file, or back up with -f FILE and a manifest that has it",
				info.Encryption,
			),
		)
	}
	info.Endpoint = apiURL(info.Endpoint)
	if o.output.value != "text" {
		return render.Encode(o.Env.Out, render.Format(o.output.value), backupOutput{render.Version, file, info})
	}
	s := info.Snapshot
	_, err := fmt.Fprintf(o.Env.Out, `file        %s (%d bytes, encrypted)
cluster     %s in %s, Kubernetes %s
taken       %s from %s
members     %s (etcd %s)
revision    %d
keys        %d
size        %d bytes
hash        %s
sha256      %s
`, file, info.Bytes, info.Cluster, info.Region, cmp.Or(info.Kubernetes, "of an unknown version"), info.Time.Format(time.RFC3339), info.Member,
		strings.Join(info.Members, ", "), info.Etcd, s.Revision, s.Keys, s.Size, s.Hash, s.SHA256)
	return err
}
