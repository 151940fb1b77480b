//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// rehearsed is the part of the document of a rehearsal that these tests look at.
type rehearsed struct {
	Account, Source string
	Runs            []struct {
		Run         string
		TookSeconds float64
		Writes      int
		Changed     struct{ Create, Delete int }
	}
	ChangesAfterCreate, Left []string
}

// rehearse rehearses a manifest, requires that all is well, and returns the document and what
// was said.
func (s *shell) rehearse(t *testing.T, args ...string) (d rehearsed, story string) {
	t.Helper()
	out, story := s.run(t, 0, append([]string{"rehearse", "-o", "json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	require.Len(t, d.Runs, 2)
	assert.Equal(t, "account", d.Source)
	assert.Empty(t, d.ChangesAfterCreate)
	assert.Empty(t, d.Left)
	assert.Equal(t, d.Runs[0].Changed.Create-1, d.Runs[1].Changed.Delete, "the boot data of the workers is deleted when they have joined")
	assert.NotContains(t, story, "warning: the plan in the copy", "the plan in the copy is the one in the account")
	return d, story
}

// A rehearsal copies an account that this program does not simulate: one of moto, with a network
// that the AWS CLI has made. It only reads it.
func TestRehearsalOfAnAccount(t *testing.T) {
	server := moto.Start(t)
	server.Bootstrap(t)
	_, err := ec2.NewFromConfig(server.Config).CreateKeyPair(t.Context(), &ec2.CreateKeyPairInput{KeyName: aws.String("default")})
	require.NoError(t, err)
	s := newShell(t, server)
	n := &network{shell: s, T: t}
	of := n.networkOfTheExample()
	text, err := os.ReadFile(example("byo-vpc"))
	require.NoError(t, err)
	for placeholder, id := range of {
		text = bytes.ReplaceAll(text, []byte(placeholder), []byte(id))
	}
	manifest := filepath.Join(t.TempDir(), "byo-vpc.yaml")
	require.NoError(t, os.WriteFile(manifest, text, 0o600))
	before := inventory(t, server)

	saved := filepath.Join(t.TempDir(), "account.json")
	d, _ := s.rehearse(t, "-f", manifest, "--save", saved)
	assert.Equal(t, "123456789012", d.Account)
	assert.Greater(t, d.Runs[0].TookSeconds, 60.0, "of AWS, which takes minutes")
	assert.Less(t, d.Runs[0].Changed.Create, 25, "the network exists")
	d, _ = s.rehearse(t, "-f", example("quickstart"))
	assert.Greater(t, d.Runs[0].Changed.Create, 30, "it has a network of its own, beside the one that exists")
	assert.Equal(t, before, inventory(t, server), "the account is not changed")

	file, err := os.ReadFile(saved)
	require.NoError(t, err)
	for _, id := range of {
		assert.Contains(t, string(file), id)
	}
	assert.NotContains(t, string(file), "PRIVATE KEY")
	server.Reset(t) // from now on, only the copy has it
	s.run(t, 4, "plan", "-f", manifest)
	s.run(t, 2, "plan", "-f", manifest, "--detailed-exitcode", "--simulate", "--simulate-state", saved)
}
