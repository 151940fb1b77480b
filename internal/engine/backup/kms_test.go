package backup_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/backup"
)

// reversing encrypts in the place of KMS, with a key of any name.
func reversing(arn string) func([]byte) (string, []byte, error) {
	return func(secret []byte) (string, []byte, error) {
		sealed := slices.Clone(secret)
		slices.Reverse(sealed)
		return arn, sealed, nil
	}
}

func encrypted(t *testing.T, recipients ...age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := age.Encrypt(&out, recipients...)
	require.NoError(t, err)
	_, err = io.WriteString(w, "content")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func decrypted(t *testing.T, file []byte, i age.Identity) (string, error) {
	t.Helper()
	r, err := age.Decrypt(bytes.NewReader(file), i)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
}

// Each of several keys of KMS decrypts a file, and also a key of age. The guide's commands find the key of age
// that KMS has encrypted.
func TestKMS(t *testing.T) {
	one, err := backup.ForKMS(reversing("arn:one"))
	require.NoError(t, err)
	two, err := backup.ForKMS(reversing("arn:two"))
	require.NoError(t, err)
	mine, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	file := encrypted(t, mine.Recipient(), one, two)
	text, err := decrypted(t, file, mine)
	require.NoError(t, err)
	assert.Equal(t, "content", text)
	errNo := errors.New("the key is gone")
	for _, works := range []string{"arn:one", "arn:two", "arn:none"} {
		text, err := decrypted(t, file, backup.WithKMS(func(arn string, sealed []byte) ([]byte, error) {
			if arn != works {
				return nil, errNo
			}
			_, secret, err := reversing("")(sealed)
			return secret, err
		}))
		if works == "arn:none" {
			require.ErrorIs(t, err, errNo)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, "content", text)
	}
	_, err = decrypted(t, encrypted(t, mine.Recipient()), backup.WithKMS(nil))
	require.ErrorIs(t, err, age.ErrIncorrectIdentity)

	guide, err := os.ReadFile("../../../docs/guides/backup.md")
	require.NoError(t, err)
	commands := regexp.MustCompile("(?s)```sh\n(sed -n .*?)aws kms decrypt").FindSubmatch(guide)
	require.NotNil(t, commands)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "demo.backup"), encrypted(t, one), 0o600))
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", string(commands[1]))
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	sealed, err := os.ReadFile(filepath.Join(folder, "sealed"))
	require.NoError(t, err)
	_, secret, err := reversing("")(sealed)
	require.NoError(t, err)
	identity, err := age.ParseX25519Identity(strings.TrimSpace(string(secret)))
	require.NoError(t, err)
	text, err = decrypted(t, encrypted(t, one), identity)
	require.NoError(t, err)
	assert.Equal(t, "content", text)
}
