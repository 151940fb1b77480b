package backup

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Keys say for whom a backup is encrypted, or how it is decrypted.
type Keys struct {
	Recipients []string // public keys: "age1…"
	Identities string   // file with private keys: "AGE-SECRET-KEY-1…"
	Passphrase string   // file with a passphrase
	KMS        []string // keys of KMS, by ID, ARN or alias; the caller makes their recipients
}

// ErrNoKey says that there is no key.
var ErrNoKey = errors.New("no key")

// ForWriting returns the recipients of a backup, without those for keys of KMS.
func (k Keys) ForWriting() (all []age.Recipient, err error) {
	if len(k.Recipients) > 0 {
		if all, err = age.ParseRecipients(strings.NewReader(strings.Join(k.Recipients, "\n"))); err != nil {
			return nil, fmt.Errorf("recipient: %w", err)
		}
	}
	if k.Passphrase == "" {
		if len(all)+len(k.KMS) == 0 {
			return nil, ErrNoKey
		}
		return all, nil
	}
	if len(all)+len(k.KMS) > 0 {
		return nil, errors.New("a file with a passphrase has no other recipients: use one of the two") // age's rule
	}
	word, err := readPassphrase(k.Passphrase)
	if err != nil {
		return nil, err
	}
	r, err := age.NewScryptRecipient(word)
	return []age.Recipient{r}, err
}

// ForReading returns the identities that may decrypt a backup, without those of KMS; nil for none.
func (k Keys) ForReading() (all []age.Identity, err error) {
	if k.Identities != "" {
		data, err := new(input.Reader).File(k.Identities)
		if err != nil {
			return nil, err
		}
		if all, err = age.ParseIdentities(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", k.Identities, err)
		}
	}
	if k.Passphrase != "" {
		word, err := readPassphrase(k.Passphrase)
		if err != nil {
			return nil, err
		}
		i, err := age.NewScryptIdentity(word)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// readPassphrase returns the first line of a file.
func readPassphrase(file string) (string, error) {
	data, err := new(input.Reader).File(file)
	if err != nil {
		return "", err
	}
	word, _, _ := strings.Cut(string(data), "\n")
	if word = strings.TrimSuffix(word, "\r"); word == "" {
		return "", fmt.Errorf("%s: its first line has no passphrase", file)
	}
	return word, nil
}
