package backup

import (
	"errors"
	"fmt"

	"filippo.io/age"
)

// kmsStanza is the type of the part of an age file's header for a key of KMS. Its argument is the ARN
// of the key. Its body is a private key of age, encrypted with the key of KMS. The public key is a
// recipient of the file like others, so that age decrypts the file with what "aws kms decrypt"
// returns. Programs ignore parts of other types (https://c2sp.org/age#recipient-stanza).
const kmsStanza = "clusterawsadm-kms"

// ForKMS returns the recipient for a key of KMS: encrypt encrypts with the key, and returns its ARN.
func ForKMS(encrypt func(secret []byte) (arn string, sealed []byte, err error)) (age.Recipient, error) {
	once, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	arn, sealed, err := encrypt([]byte(once.String()))
	if err != nil {
		return nil, err
	}
	return &kmsRecipient{once.Recipient(), age.Stanza{Type: kmsStanza, Args: []string{arn}, Body: sealed}}, nil
}

type kmsRecipient struct {
	once   *age.X25519Recipient
	stanza age.Stanza
}

// Wrap implements age.Recipient.
func (r *kmsRecipient) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	all, err := r.once.Wrap(fileKey)
	return append(all, &r.stanza), err
}

// WithKMS returns the identity for all keys of KMS: decrypt decrypts with the key of an ARN.
func WithKMS(decrypt func(arn string, sealed []byte) ([]byte, error)) age.Identity {
	return kmsIdentity{decrypt}
}

type kmsIdentity struct {
	decrypt func(arn string, sealed []byte) ([]byte, error)
}

// Unwrap implements age.Identity.
func (i kmsIdentity) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	var failed error
	for _, s := range stanzas {
		if s.Type != kmsStanza || len(s.Args) != 1 {
			continue
		}
		secret, err := i.decrypt(s.Args[0], s.Body)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		once, err := age.ParseX25519Identity(string(secret))
		if err != nil {
			return nil, fmt.Errorf("KMS key %s: it has not encrypted a key of age: %w", s.Args[0], err)
		}
		if fileKey, err := once.Unwrap(stanzas); !errors.Is(err, age.ErrIncorrectIdentity) {
			return fileKey, err
		}
	}
	if failed == nil {
		failed = age.ErrIncorrectIdentity
	}
	return nil, failed
}
