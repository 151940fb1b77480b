package kms_test

import (
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

const (
	here  = "arn:aws:kms:us-east-1:123456789012:key/one"
	other = "arn:aws:kms:us-east-1:123456789012:key/two"
	far   = "arn:aws:kms:eu-west-1:123456789012:key/far"
	alias = "arn:aws:kms:us-east-1:123456789012:alias/mine"
)

// account is an account with two keys in us-east-1, where the run is, and one in eu-west-1. The key is that of the alias.
func account(key awssim.Key) *awssim.AWS {
	a := awssim.New(awssim.Options{})
	a.Edit(func(s *awssim.State) {
		s.KMS.Keys[here], s.KMS.Keys[other], s.KMS.Keys[far] = &key, &awssim.Key{}, &awssim.Key{}
		s.KMS.Aliases[alias] = here
	})
	return a
}

// client returns the clients of a new run: it remembers nothing.
func client(a *awssim.AWS) *cloud.Clients { return cloud.New(a.Config(), "demo", cloud.Options{}) }

// A secret is encrypted in the region of the key, and its own key decrypts it in that region.
func TestEncrypt(t *testing.T) {
	a := account(awssim.Key{})
	for _, c := range []struct{ key, arn string }{
		{"one", here}, {here, here}, {"alias/mine", here}, {alias, here}, {far, far},
	} {
		arn, sealed, err := kms.Encrypt(t.Context(), client(a), c.key, []byte("secret"))
		require.NoError(t, err, c.key)
		require.Equal(t, c.arn, arn, c.key)
		require.NotContains(t, string(sealed), "secret")
		plain, err := kms.Decrypt(t.Context(), client(a), arn, sealed)
		require.NoError(t, err, c.key)
		require.Equal(t, "secret", string(plain))
	}
}

// An error of KMS names the key, and says what to do.
func TestEncryptSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		key  string
		have awssim.Key
		want string
	}{
		"no such key":         {"three", awssim.Key{}, "KMS key three: the key does not exist in us-east-1: use the ARN of a key in another region: "},
		"of another region":   {"far", awssim.Key{}, "KMS key far: the key does not exist in us-east-1: use the ARN of a key in another region: "},
		"disabled":            {here, awssim.Key{State: types.KeyStateDisabled}, "KMS key " + here + ": the key is disabled: enable it (aws kms enable-key): "},
		"pending deletion":    {here, awssim.Key{State: types.KeyStatePendingDeletion}, "cancel that (aws kms cancel-key-deletion), and enable it: "},
		"for signatures":      {here, awssim.Key{Usage: types.KeyUsageTypeSignVerify}, "the key is not for encryption: use a symmetric key: "},
		"denied":              {here, awssim.Key{Denies: []string{"Encrypt"}}, "you are not permitted to use the key: its policy or yours has to allow kms:Encrypt"},
		"ARN of a role":       {"arn:aws:iam::123456789012:role/one", awssim.Key{}, "role/one: this is not the ARN of a key or of an alias"},
		"ARN without region":  {"arn:aws:kms::123456789012:key/one", awssim.Key{}, "this is not the ARN of a key or of an alias"},
		"ARN that is cut off": {"arn:aws:kms:us-east-1", awssim.Key{}, "this is not the ARN of a key or of an alias"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := kms.Encrypt(t.Context(), client(account(c.have)), c.key, []byte("secret"))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// What was changed, or encrypted with another key, is not decrypted.
func TestDecryptSaysWhatToDo(t *testing.T) {
	a := account(awssim.Key{Denies: []string{"Decrypt"}})
	_, sealed, err := kms.Encrypt(t.Context(), client(a), other, []byte("secret"))
	require.NoError(t, err)
	const changed = "what the key has encrypted was changed, or another key has encrypted it: "
	_, err = kms.Decrypt(t.Context(), client(account(awssim.Key{})), here, sealed)
	require.ErrorContains(t, err, "KMS key "+here+": "+changed)
	sealed[len(sealed)-1] ^= 1
	_, err = kms.Decrypt(t.Context(), client(a), other, sealed)
	require.ErrorContains(t, err, "KMS key "+other+": "+changed)
	_, err = kms.Decrypt(t.Context(), client(a), here, sealed)
	require.ErrorContains(t, err, "kms:Decrypt for restores")
	_, err = kms.Decrypt(t.Context(), client(a), "arn:aws:s3:::bucket", sealed)
	require.ErrorContains(t, err, "this is not the ARN of a key or of an alias")
}

// A key that a service cannot encrypt with is refused, and the command that mends that has the ARN of the key, not the alias:
// EnableKey and CancelKeyDeletion take no alias.
func TestRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		key  string
		have awssim.Key
		want string
	}{
		"no key":               {"", awssim.Key{State: types.KeyStateDisabled}, ""},
		"enabled":              {alias, awssim.Key{}, ""},
		"made when it is used": {"alias/aws/ebs", awssim.Key{}, ""},
		"of another region":    {far, awssim.Key{}, "the KMS key " + far + " does not exist in this account and region: create it, or name another"},
		"no such alias":        {"alias/none", awssim.Key{}, "the KMS key alias/none does not exist in this account and region: create it, or name another"},
		"disabled": {
			"alias/mine",
			awssim.Key{State: types.KeyStateDisabled},
			"the KMS key alias/mine is disabled: enable it (aws kms enable-key --key-id " + here + "), or name another",
		},
		"pending deletion": {
			"one",
			awssim.Key{State: types.KeyStatePendingDeletion},
			"the KMS key one will be deleted: cancel that (aws kms cancel-key-deletion --key-id " + here + ") and enable it, or name another",
		},
		"pending import": {
			here,
			awssim.Key{State: types.KeyStatePendingImport},
			"the KMS key " + here + " has the state PendingImport, in which AWS does not encrypt with it: name another",
		},
		"for signatures, and disabled": { // enabling it would not help
			here,
			awssim.Key{Usage: types.KeyUsageTypeSignVerify, State: types.KeyStateDisabled},
			"the KMS key " + here + " is for SIGN_VERIFY, not for encryption: name a symmetric encryption key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			why, err := kms.Refusal(t.Context(), client(account(c.have)), c.key)
			require.NoError(t, err)
			require.Equal(t, c.want, why)
		})
	}
	_, err := kms.Refusal(t.Context(), client(account(awssim.Key{Denies: []string{"DescribeKey"}})), here)
	require.True(t, cloud.Denied(err), "a caller that may not read a key knows nothing of it: %v", err)
}

// Only the ARN of an alias that can be read names a key.
func TestNames(t *testing.T) {
	denies := awssim.Key{Denies: []string{"DescribeKey"}}
	for name, c := range map[string]struct {
		have       awssim.Key
		alias, arn string
		want       bool
	}{
		"its key":           {awssim.Key{}, alias, here, true},
		"another key":       {awssim.Key{}, alias, other, false},
		"no alias":          {awssim.Key{}, here, here, false},
		"no ARN of a key":   {awssim.Key{}, alias, "", false},
		"no such alias":     {awssim.Key{}, alias + "s", here, false},
		"may not be read":   {denies, alias, here, false},
		"in another region": {awssim.Key{}, "arn:aws:kms:eu-west-1:123456789012:alias/mine", here, false},
	} {
		same, err := kms.Names(t.Context(), client(account(c.have)), c.alias, c.arn)
		require.NoError(t, err, name)
		require.Equal(t, c.want, same, name)
	}
	synctest.Test(t, func(t *testing.T) { // it is asked again, with pauses
		p := enginetest.Refusing(account(awssim.Key{}), "KMS", "DescribeKey", awssim.Broken)
		_, err := kms.Names(t.Context(), cloud.New(p.Config(), "demo", cloud.Options{}), alias, here)
		require.Error(t, err, "no answer is not an answer")
	})
}
