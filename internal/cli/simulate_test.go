package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// simulating runs the command simulate until the interrupt, and returns its first lines on
// stdout, and its exit code.
func simulating(t *testing.T, s *shellEnv, lines int, during func(out string), args ...string) (code int) {
	t.Helper()
	interrupts := make(chan os.Signal)
	read, write := io.Pipe()
	s.Interrupts, s.Out = interrupts, write
	ended := make(chan int)
	go func() {
		code := Main(append([]string{"simulate"}, args...), s.Env)
		_ = write.Close()
		ended <- code
	}()
	var out strings.Builder
	for scan := bufio.NewScanner(read); lines > 0 && scan.Scan(); lines-- {
		out.WriteString(scan.Text() + "\n")
	}
	if out.Len() > 0 {
		during(out.String())
		interrupts <- os.Interrupt
	}
	return <-ended
}

// TestSimulate stores a parameter with a client of another program, ends the command, and
// reads the parameter in the next one.
func TestSimulate(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "account.json")
	client := func(endpoint string) *ssm.Client {
		return ssm.NewFromConfig(aws.Config{
			Region: "eu-west-1", BaseEndpoint: &endpoint, HTTPClient: &http.Client{Transport: &http.Transport{}},
			Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		})
	}
	code := simulating(t, s, 1, func(out string) {
		require.Regexp(t, `^http://127\.0\.0\.1:\d+\n$`, out)
		_, err := client(
			strings.TrimSpace(out),
		).PutParameter(t.Context(), &ssm.PutParameterInput{Name: aws.String("/a"), Value: aws.String("b"), Type: types.ParameterTypeString})
		require.NoError(t, err)
		other := newShell(t)
		assert.Equal(t, 1, other.run("simulate", "--region", "eu-west-1", "--simulate-state", file))
		assert.Contains(t, other.err.String(), "another process serves it at "+out)
	}, "--region", "eu-west-1", "--simulate-state", file)
	assert.Equal(t, 0, code, s.err.String())
	for _, want := range []string{"using the simulated AWS account in eu-west-1, stored in " + file, "export AWS_ENDPOINT_URL=http://127.0.0.1:", " AWS_DEFAULT_REGION=eu-west-1 "} {
		assert.Contains(t, s.err.String(), want)
	}
	assert.NotContains(t, s.err.String(), "warning")

	code = simulating(t, s, 5, func(out string) {
		var served struct{ Endpoint, Region string }
		require.NoError(t, json.Unmarshal([]byte(out), &served))
		assert.Equal(t, "eu-west-1", served.Region)
		got, err := client(served.Endpoint).GetParameter(context.Background(), &ssm.GetParameterInput{Name: aws.String("/a")})
		require.NoError(t, err)
		assert.Equal(t, "b", *got.Parameter.Value)
	}, "--region", "eu-west-1", "--simulate-state", file, "-o", "json")
	assert.Equal(t, 0, code, s.err.String())
}

func TestSimulateRefuses(t *testing.T) {
	s := newShell(t)
	for want, args := range map[string][]string{
		"--listen":                      {"--listen", "nowhere"},
		"--simulate-speed: must be 1":   {"--simulate-speed", "0"},
		`--output: must be one of text`: {"-o", "xml"},
		`unexpected argument "extra"`:   {"extra"},
	} {
		assert.Equal(t, 3, s.run(append([]string{"simulate"}, args...)...), args)
		assert.Contains(t, s.err.String(), want)
		assert.Empty(t, s.out.String())
	}
	code := simulating(t, s, 1, func(string) {}, "--listen", "0.0.0.0:0")
	assert.Equal(t, 0, code)
	assert.Contains(t, s.err.String(), "warning: everybody who can reach http://")
}

// Other commands with --simulate use the account through the process that serves it, with the
// API servers of its clusters.
func TestServedAccountIsSharedByCommands(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "account.json")
	code := simulating(t, s, 1, func(out string) {
		other := newShell(t)
		manifest := other.generated(t)
		for _, args := range [][]string{{"create", "-f", manifest, "--yes"}, {"plan", "-f", manifest, "--detailed-exitcode"}, {"delete", "demo", "--yes"}} {
			args = append(append([]string{"cluster"}, args...), "--simulate", "--simulate-state", file)
			require.Equal(t, 0, other.run(args...), other.err.String())
			assert.Contains(t, other.err.String(), "which another process serves at "+out)
		}
	}, "--simulate-state", file, "--simulate-speed", "1000")
	assert.Equal(t, 0, code, s.err.String())
}
