package ami

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/pkg/ami"
)

// patience is the timeout of a copy, the same as upstream's.
const patience = time.Hour

type copyOptions struct {
	account.Flags
	ami.CopyOptions
	arch    choice
	wait    bool
	timeout time.Duration
}

func newCopy(e *env.Env) *cobra.Command {
	o := &copyOptions{Flags: account.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Copy a machine image into the account",
		Long: `Copy the newest machine image of a version of Kubernetes and an operating
system into the account.

If the copy exists already, or is in progress, its ID is printed. With --dry-run
nothing is copied; the exit code says whether the copy is allowed.

Required permissions: ec2:CopyImage and ec2:DescribeImages, and ec2:CreateTags if
the image has visible tags.`,
		Example: `  clusterawsadm ami copy --kubernetes-version v1.34.2 --os ubuntu-24.04 --region eu-central-1
  clusterawsadm ami copy --kubernetes-version v1.34.2 --os ubuntu-24.04 --source-region us-east-1 --region eu-north-1 --wait`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags(cmd, false)
	return cmd
}

func newEncryptedCopy(e *env.Env) *cobra.Command {
	o := &copyOptions{Flags: account.Flags{Env: e}}
	o.Encrypt = true
	cmd := &cobra.Command{
		Use:   "encrypted-copy",
		Short: "Copy a machine image into the account, encrypted",
		Long: `Copy the newest machine image of a version of Kubernetes and an operating
system into the account, with all of its snapshots encrypted.

If the copy exists already, or is in progress, the command waits for it and prints
its ID. A failed copy is deleted and created again. With --dry-run nothing is
copied; the exit code says whether the copy is allowed. AWS checks the key only
during the copy.

Needed are the permissions ec2:CopyImage, ec2:DescribeImages and
ec2:DescribeSnapshots, and ec2:DeregisterImage to remove what failed. AWS copies
the image as one: all of its devices, its boot mode, TPM and IMDS support, UEFI
data and billing codes.`,
		Example: `  clusterawsadm ami encrypted-copy --kubernetes-version v1.34.2 --os ubuntu-24.04 --region eu-central-1
  clusterawsadm ami encrypted-copy --kubernetes-version v1.34.2 --os ubuntu-24.04 --kms-key-id alias/images`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags(cmd, true)
	cmd.Flags().StringVar(&o.Key, "kms-key-id", "", "KMS key for the encryption: ID, ARN or alias (default: the AWS managed key for EBS)")
	return cmd
}

func (o *copyOptions) flags(cmd *cobra.Command, wait bool) {
	o.arch = choice{ami.X8664, ami.X8664, []string{ami.X8664, ami.Arm64}, "unknown architecture"}
	p := cmd.Flags()
	o.Add(p, "", "AWS_REGION, AWS_DEFAULT_REGION or DEFAULT_AWS_REGION, then from the profile")
	p.StringVar(&o.From, "source-region", "", "region of the image to copy (default: the value of --region)")
	p.StringVar(&o.OS, "os", "", "operating system")
	p.StringVar(&o.Version, "kubernetes-version", "", "Kubernetes version, with or without a v")
	p.StringVar(&o.Owner, "owner-id", ami.Owner, "account that owns the image, or self")
	p.Var(&o.arch, "architecture", "architecture: x86_64 or arm64")
	p.BoolVar(&o.DryRun, "dry-run", false, "only check whether AWS allows the copy")
	p.BoolVar(&o.wait, "wait", wait, "wait until the copy is ready")
	p.DurationVar(&o.timeout, "timeout", patience, "maximum time to wait")
	for _, name := range []string{"os", "kubernetes-version"} {
		_ = cmd.MarkFlagRequired(name) // fails only for an unknown flag
	}
	complete(cmd, "os", ami.OperatingSystems())
	complete(cmd, "architecture", o.arch.of)
}

func (o *copyOptions) run(ctx context.Context) (err error) {
	if o.Version == "" {
		return env.Usagef("--kubernetes-version is empty: set the version to copy")
	}
	a, err := o.OpenPlain(ctx, "")
	if err != nil {
		return err
	}
	defer a.Close(&err)
	c := o.CopyOptions
	c.To, c.From, c.Architecture = a.Config.Region, cmp.Or(o.From, a.Config.Region), o.arch.value
	c.Clock, c.Progress = a.Clock, o.Env.Story
	if o.wait {
		c.Wait = max(o.timeout, time.Second)
	}
	copied, err := ami.Copy(ctx, a.Config, c)
	if err != nil {
		return err
	}
	o.printCopied(copied, c)
	if copied.ID == "" {
		return nil
	}
	d := document(copied.Image)
	d.Spec.Architecture = "" // the output is byte for byte that of upstream
	return encode(o.Env.Out, "yaml", d)
}

// printCopied prints what the output does not contain.
func (o *copyOptions) printCopied(copied *ami.Copied, c ami.CopyOptions) {
	switch {
	case copied.ID == "":
		o.Env.Story("dry run: %s would be copied from %s to %s as %s", copied.Source, c.From, c.To, copied.Name)
		if c.Encrypt {
			o.Env.Story("AWS checks the permissions on the key only during the copy")
		}
	case copied.Reused:
		o.Env.Story("%s in %s is an existing copy; no other copy was created", copied.ID, c.To)
	case !o.wait:
		o.Env.Story("AWS is copying %s to %s in %s; to wait for it, run the command again with --wait", copied.Source, copied.ID, c.To)
	}
}
