package kms

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Refusal says why a service of AWS in the region of the run cannot encrypt with a key: an ID, an ARN or an
// alias. It returns "" if it can, or for no key.
func Refusal(ctx context.Context, c *cloud.Clients, key string) (string, error) {
	if key == "" {
		return "", nil
	}
	return cloud.Remember(ctx, c, "KMS key "+key, func(ctx context.Context) (string, error) {
		out, err := c.KMS.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &key})
		switch {
		case cloud.Is(err, "NotFoundException"):
			return fmt.Sprintf("the KMS key %s does not exist in this account and region: create it, or name another", key), nil
		case err != nil:
			return "", err
		}
		return unusable(key, out.KeyMetadata), nil
	})
}

// Names reports whether the ARN of an alias names the key with the other ARN now. It does not if the alias cannot be read.
func Names(ctx context.Context, c *cloud.Clients, alias, arn string) (bool, error) {
	if arn == "" || !strings.Contains(alias, ":alias/") {
		return false, nil
	}
	named, err := cloud.Remember(ctx, c, "KMS key of "+alias, func(ctx context.Context) (string, error) {
		out, err := c.KMS.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &alias})
		switch {
		case cloud.Is(err, "NotFoundException"), cloud.Denied(err):
			return "", nil
		case err != nil:
			return "", err
		}
		return aws.ToString(out.KeyMetadata.Arn), nil
	})
	return named == arn, err
}

// unusable says why a key that exists cannot encrypt ("Key states of AWS KMS keys", KMS developer guide).
func unusable(key string, k *types.KeyMetadata) string {
	arn := aws.ToString(k.Arn)
	switch {
	case k.KeyUsage != "" && k.KeyUsage != types.KeyUsageTypeEncryptDecrypt:
		return fmt.Sprintf("the KMS key %s is for %s, not for encryption: name a symmetric encryption key", key, k.KeyUsage)
	case k.KeyState == types.KeyStateEnabled, k.KeyState == "":
		return ""
	case k.KeyState == types.KeyStateDisabled:
		return fmt.Sprintf("the KMS key %s is disabled: enable it (aws kms enable-key --key-id %s), or name another", key, arn)
	case k.KeyState == types.KeyStatePendingDeletion:
		return fmt.Sprintf(
			"the KMS key %s will be deleted: cancel that (aws kms cancel-key-deletion --key-id %s) and enable it, or name another",
			key,
			arn,
		)
	}
	return fmt.Sprintf("the KMS key %s has the state %s, in which AWS does not encrypt with it: name another", key, k.KeyState)
}
