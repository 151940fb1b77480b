package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// answers makes AWS refuse every call with an error of EC2.
func (s *shellEnv) answers(t *testing.T, code, message string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Amzn-Requestid", "1")
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "EncodedMessage=4TZ-readable") {
			_, _ = w.Write(
				[]byte(
					`<DecodeAuthorizationMessageResponse><DecodeAuthorizationMessageResult><DecodedMessage>{"allowed":false,"explicitDeny":false,"context":{"action":"ec2:DescribeTags","resource":"*"}}</DecodedMessage></DecodeAuthorizationMessageResult></DecodeAuthorizationMessageResponse>`,
				),
			)
			return
		}
		if r.Header.Get("X-Amz-Target") != "" { // of Systems Manager
			w.Header().
				Set("X-Amzn-Errortype", map[string]string{"UnauthorizedOperation": "AccessDeniedException", "RequestExpired": "ExpiredTokenException", "AuthFailure": "UnrecognizedClientException"}[code])
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"message": "` + message + `"}`))
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<Response><Errors><Error><Code>` + code + `</Code><Message>` + message + `</Message></Error></Errors></Response>`))
	}))
	t.Cleanup(server.Close)
	s.AWS = func(context.Context, string, string) (aws.Config, error) {
		return aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("AKID", "SEC", "")}, nil
	}
}

// TestNoSession has a profile of IAM Identity Center and no session.
func TestNoSession(t *testing.T) {
	s := newShell(t)
	s.variables["AWS_CONFIG_FILE"] = profiles(t)
	s.AWS = func(context.Context, string, string) (aws.Config, error) {
		return aws.Config{Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("the SSO session has expired or is invalid")
		})}, nil
	}
	assert.Equal(t, env.Failed, s.run("cluster", "list", "--profile", "dev"))
	assert.Equal(
		t,
		"error: there are no valid credentials of profile dev: log in with 'aws sso login --profile dev'\n       (the SSO session has expired or is invalid)\n",
		s.err.String(),
	)
	s.variables["AWS_PROFILE"] = "dev"
	assert.Equal(t, env.Failed, s.run("cluster", "list"))
	assert.Contains(t, s.err.String(), "aws sso login --profile dev")
	assert.Equal(t, env.Failed, s.run("cluster", "list", "--profile", "keys"))
	assert.Contains(t, s.err.String(), "error: no AWS credentials: use --profile")
}

// profiles writes a configuration of AWS with the profiles dev and keys.
func profiles(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(
		t,
		os.WriteFile(
			file,
			[]byte(
				"[profile dev]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = admin\n[sso-session corp]\nsso_start_url = https://example.com\nsso_region = us-east-1\n[profile keys]\nregion = us-east-1\n",
			),
			0o600,
		),
	)
	return file
}

// TestRefusedCaller shows the reason and the way out for each reason why AWS refuses the
// caller.
func TestRefusedCaller(t *testing.T) {
	config := profiles(t)
	for name, c := range map[string]struct {
		code, message string
		args          []string
		want          string
	}{
		"an SSO session":  {"RequestExpired", "Request has expired.", []string{"--profile", "dev"}, "The credentials of profile dev have expired. Log in again:\n\n  aws sso login --profile dev\n"},
		"a profile":       {"RequestExpired", "Request has expired.", []string{"--profile", "keys"}, "The credentials of profile keys have expired: get new ones. If they have not, check the clock of this machine.\n"},
		"no such key":     {"AuthFailure", "AWS was not able to validate the provided access credentials", nil, "AWS does not accept the access key of the environment (AWS_ACCESS_KEY_ID): it may be deleted or inactive, its secret key may be wrong, or the region is not enabled in the account.\n"},
		"no permission":   {"UnauthorizedOperation", "You are not authorized to perform this operation.", nil, "The caller lacks ec2:DescribeTags (statement Describe of the policy). To see the policy that a cluster needs:\n\n  clusterawsadm cluster policy -f FILE\n"},
		"secret details":  {"UnauthorizedOperation", "You are not authorized to perform this operation. Encoded authorization failure message: 4TZ-secret", nil, "(The details are encoded; sts:DecodeAuthorizationMessage is not allowed.)"},
		"encoded details": {"UnauthorizedOperation", "You are not authorized to perform this operation. Encoded authorization failure message: 4TZ-readable", nil, "is not authorized to perform: ec2:DescribeTags on resource: * because no policy allows it"},
		"another service": {"UnauthorizedOperation", "User: ada is not authorized to perform: kms:Decrypt because", nil, "lacks kms:Decrypt."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			s.answers(t, c.code, c.message)
			s.variables["AWS_CONFIG_FILE"], s.variables["AWS_ACCESS_KEY_ID"] = config, "AKID"
			assert.Equal(t, env.Refused, s.run(append([]string{"cluster", "list"}, c.args...)...))
			assert.Contains(t, s.err.String(), c.want)
			words, _, _ := strings.Cut(c.message, " Encoded")
			assert.Contains(t, s.err.String(), words, "and AWS's own words")
			assert.NotContains(t, s.err.String(), "4TZ-")
			assert.Empty(t, s.out.String())
			file := s.generated(t)
			for _, command := range [][]string{{"plan", "-f", file}, {"create", "-f", file, "--yes"}, {"delete", "demo", "--region", "us-east-1", "--yes"}} {
				assert.Equal(t, env.Refused, s.run(append(append([]string{"cluster"}, command...), c.args...)...), command)
				assert.Equal(
					t,
					c.code == "UnauthorizedOperation" && command[0] != "plan",
					strings.Contains(s.err.String(), "the lock is stored on this machine only"),
					command,
				)
			}
			assert.Equal(
				t,
				env.Failed,
				s.run(append([]string{"resource", "list", "--cluster-name", "demo", "--region", "us-east-1"}, c.args...)...),
				"upstream has no other exit code",
			)
		})
	}
}
