package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// on makes the commands use an account.
func (s *shellEnv) on(p *awssim.Process) {
	s.AWS = func(_ context.Context, region, _ string) (aws.Config, error) {
		cfg := p.Config()
		cfg.Region = region
		if region == "" {
			cfg.Region = s.variables["profile's region"]
		}
		return cfg, nil
	}
}

// transcript returns both streams and the exit code of a command.
func (s *shellEnv) transcript(args ...string) string {
	code := s.run(args...)
	var b strings.Builder
	fmt.Fprintf(&b, "$ clusterawsadm %s\n%s", strings.Join(args, " "), s.out.String())
	if !strings.HasSuffix(s.out.String(), "\n") && s.out.Len() > 0 {
		b.WriteString("(no newline)\n")
	}
	for line := range strings.Lines(s.err.String()) {
		b.WriteString("stderr: " + line)
	}
	fmt.Fprintf(&b, "exit code %d\n\n", code)
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), "\r", `\r`), "\x1b", `\e`)
}

// released is the release server.
func released() *http.Client {
	files := map[string]string{"stable": "v1.34.2", "stable-1.33": "v1.33.1", "stable-1.32": "v1.32.4", "stable-1.31": "v1.31.0"}
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		text := files[strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/release/"), ".txt")]
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
	})}
}

func TestAMIList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		s.on(awssim.New(awssim.Options{}).Process())
		s.HTTP = released()
		text := s.transcript("ami", "list", "--kubernetes-version", "v1.34.2", "--os", "ubuntu-24.04", "--owner-id", "819546954734")
		text += s.transcript("ami", "list", "--region", "eu-west-1")
		text += s.transcript(
			"ami",
			"list",
			"--region",
			"eu-west-1",
			"--kubernetes-version",
			"1.34.2",
			"--os",
			"ubuntu-24.04",
			"--architecture",
			"arm64",
			"-o",
			"json",
		)
		text += s.transcript("ami", "list", "--region", "eu-west-1", "--kubernetes-version", "1.34.2", "--os", "ubuntu-24.04", "-o", "yaml")
		s.variables["AWS_REGION"] = "us-west-2"
		text += s.transcript("ami", "list", "--kubernetes-version", "v1.34.2", "--os", "flatcar-stable")
		text += s.transcript("ami", "list", "--kubernetes-version", "v1.34.2", "--os", "flatcar-stable", "--architecture", "all")
		s.variables["AWS_REGION"] = ""
		s.variables["NO_COLOR"] = "1"
		s.terminal("")
		text += s.transcript("ami", "list", "--kubernetes-version", "v1.34.2", "--os", "flatcar-stable", "--architecture", "x86_64", "--all-regions")
		golden.Assert(t, "ami-list.txt", text)
	})
}

func TestAMIListFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		s.on(awssim.New(awssim.Options{}).Process())
		var text string
		for _, format := range []string{"table", "json", "yaml"} {
			text += s.transcript("ami", "list", "--region", "eu-west-1", "--kubernetes-version", "v1.99.0", "-o", format)
		}
		text += s.transcript("ami", "list", "--region", "eu-north-1", "--kubernetes-version", "v1.34.2")
		golden.Assert(t, "ami-list-nothing.txt", text)
	})
}

func TestAMIListFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		a := awssim.New(awssim.Options{})
		p := a.Process()
		s.on(p)
		// Without internet access, the versions come from the images.
		text := s.transcript("ami", "list", "--region", "eu-west-1", "--os", "flatcar-stable", "--architecture", "x86_64")
		// An account without the permission to list its regions.
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "DescribeRegions" {
				return awssim.Denied
			}
			return awssim.None
		}
		text += s.transcript("ami", "list", "--os", "flatcar-stable", "--architecture", "x86_64", "--kubernetes-version", "v1.34.2")
		p.Fault = nil
		text += s.transcript("ami", "list", "--region", "me-south-1", "--kubernetes-version", "v1.34.2")
		calls := len(a.Calls())
		text += s.transcript("ami", "list", "-o", "xml")
		text += s.transcript("ami", "list", "--architecture", "mips")
		text += s.transcript("ami", "list", "--region", "eu-west-1", "--all-regions")
		text += s.transcript("ami", "lst")
		assert.Len(t, a.Calls(), calls, "what is typed wrong costs no request")
		golden.Assert(t, "ami-list-fails.txt", text)
	})
}

// If a region does not respond, its rows are missing, and the exit code is not 0.
func TestAMIListWithoutARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		p := awssim.New(awssim.Options{}).Process()
		asked := 0
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op != "DescribeImages" {
				return awssim.None
			}
			if asked++; asked == 3 {
				return awssim.Denied
			}
			return awssim.None
		}
		s.on(p)
		require.Equal(t, env.Failed, s.run("ami", "list", "--kubernetes-version", "v1.34.2", "--os", "ubuntu-24.04", "--architecture", "x86_64", "-o", "json"))
		var list struct {
			Items []struct {
				Spec struct{ Region, Architecture string }
			}
		}
		require.NoError(t, json.Unmarshal(s.out.Bytes(), &list), "stdout is the answer and nothing else")
		assert.Contains(t, []int{14, 15}, len(list.Items), "the region without an answer may be one without images")
		assert.Contains(t, s.err.String(), "error: 1 of 18 regions did not answer and are missing: ")
		assert.Contains(t, s.err.String(), "UnauthorizedOperation")
	})
}

func TestAMICopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		a := awssim.New(awssim.Options{Lag: 3 * time.Second})
		p := a.Process()
		s.on(p)
		s.variables["AWS_REGION"] = "us-west-2"
		command := []string{"ami", "copy", "--kubernetes-version", "v1.34.2", "--os", "ubuntu-24.04", "--source-region", "us-east-1"}
		text := s.transcript(append(command, "--dry-run")...)
		assert.Empty(t, a.Inventory(), "a dry run does nothing")
		text += s.transcript(command...)
		text += s.transcript(append(command, "--dry-run")...)
		text += s.transcript(append(command, "--wait")...)
		text += s.transcript(append(command, "--architecture", "arm64", "--region", "eu-central-1", "--wait")...)
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "CopyImage" {
				return awssim.Denied
			}
			return awssim.None
		}
		text += s.transcript("ami", "copy", "--kubernetes-version", "v1.33.0", "--os", "ubuntu-24.04", "--dry-run")
		golden.Assert(t, "ami-copy.txt", text)
	})
}

func TestAMIEncryptedCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		a := awssim.New(awssim.Options{})
		s.on(a.Process())
		s.variables["profile's region"] = "us-west-2"
		command := []string{"ami", "encrypted-copy", "--kubernetes-version", "1.34.2", "--os", "", "--source-region", "us-east-1"}
		text := s.transcript(append(command, "--dry-run")...)
		assert.Empty(t, a.Inventory(), "a dry run does nothing")
		text += s.transcript(append(command, "--kms-key-id", "alias/nobody")...)
		assert.Empty(t, a.Inventory(), "what fails is removed")
		text += s.transcript(append(command, "--kms-key-id", "alias/images")...)
		text += s.transcript(append(command, "--kms-key-id", "alias/images")...)
		s.terminal("")
		s.variables["NO_COLOR"] = "1"
		text += s.transcript(append(command, "--timeout", "1m")...)
		golden.Assert(t, "ami-encrypted-copy.txt", text)
	})
}

func TestAMICopyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		a := awssim.New(awssim.Options{})
		s.on(a.Process())
		text := s.transcript("ami", "copy")
		text += s.transcript("ami", "copy", "--os", "ubuntu-24.04", "--kubernetes-version", "v1.34.2")
		text += s.transcript("ami", "copy", "--os", "ubuntu-24.04", "--kubernetes-version", "")
		text += s.transcript("ami", "copy", "--os", "ubuntu-24.04", "--kubernetes-version", "v1.99.3", "--region", "us-east-1")
		text += s.transcript("ami", "encrypted-copy", "--os", "ubuntu-24.04", "--kubernetes-version", "v1.34.2", "--region", "us-east-1", "extra")
		assert.Empty(t, a.Inventory())
		golden.Assert(t, "ami-copy-fails.txt", text)
	})
}

// Ctrl-C ends the wait, and not the copy.
func TestAMICopyInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		a := awssim.New(awssim.Options{})
		s.on(a.Process())
		interrupts := make(chan os.Signal)
		s.Interrupts = interrupts
		time.AfterFunc(time.Minute, func() { interrupts <- os.Interrupt })
		command := []string{"ami", "encrypted-copy", "--os", "ubuntu-24.04", "--kubernetes-version", "v1.34.2", "--region", "us-east-1"}
		require.Equal(t, env.Interrupted, s.run(command...))
		assert.Contains(t, s.err.String(), "run the same command again to wait for it")
		assert.Empty(t, s.out.String())
		require.Equal(t, 0, s.run(command...), s.err.String())
		assert.Len(t, a.Inventory(), 2)
	})
}

// A simulated account is stored between commands, also in other regions.
func TestAMISimulated(t *testing.T) {
	s := newShell(t)
	s.simulated()
	require.Equal(t, 0, s.run("ami", "encrypted-copy", "--os", "ubuntu-24.04", "--kubernetes-version", "v1.34.2", "--source-region", "eu-west-1"), s.err.String())
	require.Equal(t, 0, s.run("ami", "list", "--owner-id", "self", "--region", "us-east-1"), s.err.String())
	assert.Contains(t, s.out.String(), "capa-ami-ubuntu-24.04-v1.34.2-1765664000enc")
	assert.NotContains(t, s.err.String(), "release server", "a simulated account is about no real versions")
	assert.FileExists(t, filepath.Join(s.StateDir, "clusterawsadm", "simulated.json"))
}
