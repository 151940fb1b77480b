// Package kms encrypts small secrets of the user's with a key of KMS.
package kms

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Encrypt encrypts a secret with a key: its ID, ARN, or an alias. It returns the ARN of the key.
func Encrypt(ctx context.Context, c *cloud.Clients, key string, secret []byte) (arn string, sealed []byte, err error) {
	region, err := regionOf(c, key)
	if err != nil {
		return "", nil, err
	}
	out, err := c.In(region).KMS.Encrypt(ctx, &kms.EncryptInput{KeyId: &key, Plaintext: secret})
	if err != nil {
		return "", nil, problem(key, region, err)
	}
	return aws.ToString(out.KeyId), out.CiphertextBlob, nil
}

// Decrypt decrypts a secret with the key that has encrypted it.
func Decrypt(ctx context.Context, c *cloud.Clients, arn string, sealed []byte) ([]byte, error) {
	region, err := regionOf(c, arn)
	if err != nil {
		return nil, err
	}
	out, err := c.In(region).KMS.Decrypt(ctx, &kms.DecryptInput{KeyId: &arn, CiphertextBlob: sealed})
	if err != nil {
		return nil, problem(arn, region, err)
	}
	return out.Plaintext, nil
}

// regionOf returns the region of a key: that of its ARN, or that of the run.
func regionOf(c *cloud.Clients, key string) (string, error) {
	if !strings.HasPrefix(key, "arn:") {
		return c.Region, nil
	}
	const parts, service, region = 6, 2, 3 // arn:aws:kms:REGION:ACCOUNT:key/ID
	part := strings.SplitN(key, ":", parts)
	if len(part) < parts || part[service] != "kms" || part[region] == "" {
		return "", fmt.Errorf("KMS key %s: this is not the ARN of a key or of an alias", key)
	}
	return part[region], nil
}

// problem says what to do about an error of KMS (https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html).
func problem(key, region string, err error) error {
	advice := ""
	switch {
	case cloud.Is(err, "NotFoundException"):
		advice = fmt.Sprintf("the key does not exist in %s: use the ARN of a key in another region", region)
	case cloud.Is(err, "DisabledException"):
		advice = "the key is disabled: enable it (aws kms enable-key)"
	case cloud.Is(err, "KMSInvalidStateException"):
		advice = "the key cannot be used in its state: if its deletion is pending, cancel that (aws kms cancel-key-deletion), and enable it"
	case cloud.Is(err, "InvalidKeyUsageException"):
		advice = "the key is not for encryption: use a symmetric key"
	case cloud.Is(err, "InvalidCiphertextException", "IncorrectKeyException"):
		advice = "what the key has encrypted was changed, or another key has encrypted it"
	case cloud.Denied(err):
		advice = "you are not permitted to use the key: its policy or yours has to allow kms:Encrypt for backups, and kms:Decrypt for restores"
	}
	if advice != "" {
		advice += ": "
	}
	return fmt.Errorf("KMS key %s: %s%w", key, advice, err)
}
