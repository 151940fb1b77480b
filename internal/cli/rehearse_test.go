package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// A rehearsal creates and deletes a cluster in a copy of the simulated account.
func TestRehearse(t *testing.T) {
	s := newSession(t)
	s.simulates(func(*testing.T, *awssim.AWS) {})
	delete(s.variables, "CLUSTERAWSADM_SIMULATE_SPEED") // time jumps
	file := s.variables["CLUSTERAWSADM_SIMULATE_STATE"]
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	s.types(0, "cluster", "rehearse", "-f", "../../configs/quickstart.yaml", "-v", "4")
	for _, want := range []string{`create +\d+m`, `delete +\d+m`, `Calls by service \(writes\): EC2 \d+ `, `Left in the account: nothing`} {
		assert.Regexp(t, want, s.out.String())
	}
	assert.Contains(t, s.err.String(), "EC2 CreateVpc ", "calls are logged as in other commands")
	assert.Contains(t, s.err.String(), "using a simulated copy of the account in us-east-1\n")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, before, after, "the account itself is not changed")
}

// Runs are killed at some of their calls and run again, and have the same result. The page and
// the JSON document have each of them.
func TestRehearseKills(t *testing.T) {
	s := newSession(t)
	s.simulates(func(*testing.T, *awssim.AWS) {})
	delete(s.variables, "CLUSTERAWSADM_SIMULATE_SPEED") // time jumps
	page := filepath.Join(t.TempDir(), "page.html")
	s.types(0, "cluster", "rehearse", "-f", "../../configs/quickstart.yaml", "--every-call=60", "--report", page)
	assert.Regexp(
		t,
		`Killed \d+ runs, before and after every 60th of the \d+ calls of create and the \d+ of delete, and run again: the result is always`,
		s.out.String(),
	)
	assert.Regexp(t, `(?m)^ *\d+s  killed and run again: (\d+) of (\d+)$`, s.err.String())
	assert.Contains(t, s.err.String(), "Report: "+page)
	assert.NotContains(t, s.err.String(), "creating", "nobody watches the runs on a terminal")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, want := range []string{">succeeded<", "<h2>Killed runs</h2>", "✓ same", "<h2>Timeline of create</h2>", "<h2>Timeline of delete</h2>", "<h2>Quotas</h2>", "<h2>Cost</h2>"} {
		assert.Positive(t, strings.Count(string(text), want), want)
	}
	assert.Zero(t, strings.Count(string(text), "✗"))
	s.types(3, "cluster", "rehearse", "-f", "../../configs/quickstart.yaml", "--every-call=-1") // wrong usage
	s.types(3, "cluster", "rehearse", "-f", "../../configs/quickstart.yaml", "--report", filepath.Dir(page))
}

// The JSON document has the data of the page.
func TestRehearsalDocument(t *testing.T) {
	s := newSession(t)
	s.simulates(func(*testing.T, *awssim.AWS) {})
	delete(s.variables, "CLUSTERAWSADM_SIMULATE_SPEED") // time jumps
	s.types(0, "cluster", "rehearse", "-f", "../../configs/quickstart.yaml", "--every-call=100", "-o", "json", "--progress", "json")
	var d render.Rehearsal
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &d))
	assert.Equal(t, []string{"create", "delete"}, []string{d.Runs[0].Run, d.Runs[1].Run})
	assert.Greater(t, d.Runs[0].Took, 120.0, "AWS takes minutes")
	assert.Equal(t, d.Runs[0].Changed.Create, d.Runs[1].Changed.Delete+1, "create deletes the boot data of workers that have joined")
	assert.Equal(t, []string{"quickstart", "us-east-1", "123456789012", "simulated"}, []string{d.Cluster, d.Region, d.Account, d.Source})
	assert.Empty(t, d.Left)
	assert.NotEmpty(t, d.Quotas)
	assert.Contains(t, d.Policy, "ec2:CreateVpc")
	require.NotNil(t, d.Kills)
	assert.Equal(t, d.Kills.Planned, len(d.Kills.Runs)+d.Kills.NotReached)
	for _, k := range d.Kills.Runs {
		assert.True(t, k.Same(), k)
		assert.Zero(t, k.Call%100)
		assert.NotEmpty(t, k.Operation)
		assert.Positive(t, k.Again.Reads)
	}
	types := map[any]int{}
	for line := range strings.Lines(s.err.String()) {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &record), line)
		types[record["type"]]++
	}
	assert.Equal(t, 2, types["look"])
	assert.Equal(t, 2, types["end"])
	assert.GreaterOrEqual(t, types["note"], 2, "the progress of the kills")
	s.types(0, "cluster", "create", "-f", "../../configs/quickstart.yaml", "--yes", "-o", "json")
	var made struct{ TookSeconds float64 }
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &made))
	assert.InDelta(t, made.TookSeconds, d.Runs[0].Took, 2, "a rehearsal waits for what create waits for")
}

// A rehearsal that fails has a page, too.
func TestRehearsalFails(t *testing.T) {
	s := newSession(t)
	s.simulates(func(*testing.T, *awssim.AWS) {})
	delete(s.variables, "CLUSTERAWSADM_SIMULATE_SPEED") // time jumps
	page := filepath.Join(t.TempDir(), "page.html")
	s.types(env.Halfway, "cluster", "rehearse", "-f", "../../configs/quickstart.yaml", "--faults", "1:denied", "--report", page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, want := range []string{">failed<", "<h2>Errors</h2>", "<h2>Timeline of create</h2>", "<dt>Faults</dt><dd>1:denied</dd>", "not authorized"} {
		assert.Positive(t, strings.Count(string(text), want), want)
	}
}

// Without --simulate, the rehearsal is in a copy of the account, which is only read. The copy
// can be saved, without secrets, and used by other commands.
func TestRehearseInACopyOfTheAccount(t *testing.T) {
	s := newSession(t)
	file := s.generated(t)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte(`sshKeyName: ""`), []byte("sshKeyName: mine")), 0o600))
	a := awssim.New(awssim.Options{})
	a.Edit(func(state *awssim.State) {
		state.EC2.KeyPairs["mine"] = true
		state.EC2.Limits.Addresses = 3
		state.EC2.VPCs["vpc-neighbour"] = &awssim.VPC{
			Thing:   awssim.Thing{ID: "vpc-neighbour", Tags: map[string]string{"Name": "neighbour"}},
			CIDR:    "10.9.0.0/16",
			Tenancy: "default",
		}
		state.EC2.Subnets["subnet-neighbour"] = &awssim.Subnet{
			Thing:        awssim.Thing{ID: "subnet-neighbour"},
			VPC:          "vpc-neighbour",
			CIDR:         "10.9.1.0/24",
			Zone:         "us-east-1a",
			HostnameType: "ip-name",
		}
		state.EC2.Instances["i-0123456789abcdef0"] = &awssim.Instance{
			Thing: awssim.Thing{
				ID: "i-0123456789abcdef0",
			},
			VPC:      "vpc-neighbour",
			Subnet:   "subnet-neighbour",
			Zone:     "us-east-1a",
			Type:     "t3.large",
			UserData: "cGFzc3dvcmQ=",
		}
	})
	before := a.Detailed()
	s.AWS = func(context.Context, string, string) (aws.Config, error) { return a.Config(), nil }
	saved := filepath.Join(t.TempDir(), "copy.json")
	s.types(0, "cluster", "rehearse", "-f", file, "--save", saved)
	for _, want := range []string{
		`create +\d+m\S+ +\d+ +\d+`, `delete +\d+m`, `Calls by service \(writes\): EC2 \d+ \(\d+\), `, `Quota nearly used up: elastic IP addresses: 3 of 3`, `Cost: about \$\d+`,
		`The policy must allow \d+ actions`, `Permissions of the caller: all that the plan needs`, `Left in the account: nothing`,
	} {
		assert.Regexp(t, want, s.out.String())
	}
	assert.NotContains(t, s.err.String(), "warning")
	assert.Equal(t, before, a.Detailed(), "the account itself is not changed")
	for _, c := range a.Calls() {
		assert.Regexp(t, "^(Describe|Get|List|Head|Simulate)", c.Operation)
	}

	info, err := os.Stat(saved)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	data, err := os.ReadFile(saved)
	require.NoError(t, err)
	assert.Contains(t, string(data), "i-0123456789abcdef0", "the neighbour is there")
	assert.NotContains(t, string(data), "cGFzc3dvcmQ=", "its user data is not")
	assert.NotContains(t, string(data), "BEGIN")

	a.Edit(func(state *awssim.State) { delete(state.EC2.KeyPairs, "mine") }) // from now on, only the copy has it
	s.types(0, "cluster", "plan", "-f", file, "--simulate", "--simulate-state", saved)
	s.types(4, "cluster", "plan", "-f", file)
	s.types(3, "cluster", "rehearse", "-f", file, "--simulate", "--save", saved)
}

// A rehearsal in the copy of an account is refused as a run in the account is.
func TestRehearsalIsRefused(t *testing.T) {
	s := newSession(t)
	file := s.generated(t)
	a := awssim.New(awssim.Options{})
	a.Edit(func(state *awssim.State) { state.EC2.Limits.Addresses = 2 })
	s.AWS = func(context.Context, string, string) (aws.Config, error) { return a.Config(), nil }
	s.types(4, "cluster", "plan", "-f", file)
	want := s.err.String()
	s.types(4, "cluster", "rehearse", "-f", file)
	assert.Contains(t, s.err.String(), want)
}
