// Package moto starts moto_server, an emulator of AWS over HTTP, for tests. It has to be
// installed: pip install 'moto[server]'.
package moto

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

// Region is the region of the tests.
const Region = "us-east-1"

// Server is a moto_server.
type Server struct {
	URL    string
	Config aws.Config // configuration for clients of the AWS SDK
}

// images are the machine images of the account: of Kubernetes, as Cluster API
// publishes them, of Flatcar, and of Ubuntu for a bastion. A creation_date
// would make moto fail.
//
//go:embed images.json
var images []byte

// mended is Python code with fixes for moto. Python loads sitecustomize.py first.
//
//go:embed *.py
var mended embed.FS

// address matches the line in which moto logs its address.
var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// Start starts a server until the end of the test. Without moto_server, the test fails
// and is not skipped, because a skipped test looks like success.
func Start(t *testing.T) *Server {
	t.Helper()
	program, err := exec.LookPath("moto_server")
	require.NoError(t, err, "moto_server is not installed; this test needs it (pip install 'moto[server]')")
	folder := t.TempDir()
	seed := filepath.Join(folder, "images.json")
	require.NoError(t, os.WriteFile(seed, images, 0o600))
	require.NoError(t, os.CopyFS(folder, mended))

	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-H", "127.0.0.1", "-p", "0")
	cmd.Env = append(os.Environ(), "MOTO_AMIS_PATH="+seed, "MOTO_ENABLE_AMI_VALIDATION=true", "MOTO_ENABLE_KEYPAIR_VALIDATION=true",
		"MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION=true", "MOTO_IAM_LOAD_MANAGED_POLICIES=true", "PYTHONUNBUFFERED=1", "PYTHONPATH="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	cmd.Stdout = cmd.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // pyenv's wrapper, and the server below it
		_ = cmd.Wait()
	})
	s := &Server{URL: listening(t, out)}
	s.Config = aws.Config{
		Region: Region, BaseEndpoint: &s.URL,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:  &http.Client{Transport: unhurried{&http.Transport{}}, Timeout: time.Minute}, // not the default transport: httptest closes its connections
		Retryer:     func() aws.Retryer { return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 1 }) },
	}
	return s
}

// listening reads the log until the server logs its address, and discards the rest.
func listening(t *testing.T, log io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	var said strings.Builder
	go func() {
		defer close(found)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "Error in sitecustomize") {
				return // this version of moto needs another fix
			}
			if url := address.FindString(lines.Text()); url != "" {
				found <- url
				_, _ = io.Copy(io.Discard, log)
				return
			}
		}
	}()
	select {
	case url, ok := <-found:
		require.True(t, ok, "moto_server ended:\n%s", &said)
		return url
	case <-time.After(2 * time.Minute):
		require.Fail(t, "moto_server does not say where it listens")
		return ""
	}
}

// unhurried hides from the transport that a request can be repeated: moto's server closes
// idle connections, and the transport then repeats requests that were already executed.
type unhurried struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u unhurried) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = io.NopCloser(r.Body)
	}
	return u.RoundTripper.RoundTrip(r)
}

// Reset deletes all resources of the account.
func (s *Server) Reset(t *testing.T) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/moto-api/reset", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

// Bootstrap creates the instance profiles that clusters need, in an account without resources. The server sometimes ends a connection in the middle
// of an answer. Then nobody knows what it has created, and Bootstrap begins again.
func (s *Server) Bootstrap(t *testing.T) {
	t.Helper()
	const attempts = 3
	for n := 1; ; n++ {
		err := s.bootstrap(t.Context())
		if err == nil {
			return
		}
		if errors.As(err, new(smithy.APIError)) || n == attempts {
			require.NoError(t, err)
		}
		t.Logf("the account is made again: %v", err)
		s.Reset(t)
	}
}

func (s *Server) bootstrap(ctx context.Context) error {
	const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	c := iam.NewFromConfig(s.Config)
	for _, role := range []string{"control-plane", "nodes"} {
		name := role + ".cluster-api-provider-aws.sigs.k8s.io"
		if _, err := c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trust)}); err != nil {
			return err
		}
		if _, err := c.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &name}); err != nil {
			return err
		}
		if _, err := c.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &name}); err != nil {
			return err
		}
	}
	return nil
}
