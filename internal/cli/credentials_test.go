package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// keys sets credentials, for any region.
func (s *shellEnv) keys(c aws.Credentials) {
	s.AWS = func(_ context.Context, region, profile string) (aws.Config, error) {
		if profile == "nope" {
			return aws.Config{}, errors.New("failed to get shared config profile, nope")
		}
		if region == "" {
			region = "eu-central-1" // of the profile
		}
		return aws.Config{Region: region, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return c, nil })}, nil
	}
}

// Examples of upstream's output.
const (
	encoded = "W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkID0gQUtJRAphd3Nfc2VjcmV0X2FjY2Vzc19rZXkgPSBTRUMKcmVnaW9uID0gdXMtZWFzdC0xCgo=\n"
	raw     = "[default]\naws_access_key_id = AKID\naws_secret_access_key = SEC\nregion = us-east-1\n\n\n"
	rawTok  = "[default]\naws_access_key_id = AKID\naws_secret_access_key = SEC\nregion = us-east-1\n\naws_session_token = TOK\n\n\n"
)

func TestEncodeAsProfile(t *testing.T) {
	s := newShell(t)
	s.keys(aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SEC"})
	command := []string{"bootstrap", "credentials", "encode-as-profile"}
	require.Equal(t, 0, s.run(command...), s.err.String())
	assert.Equal(t, encoded, s.out.String())
	golden.Assert(t, "encode-as-profile-warnings.txt", s.err.String())
	require.Equal(t, 0, s.run(append(command, "--output", "rawSharedConfig", "passed", "over")...))
	assert.Equal(t, raw, s.out.String(), "the profile's region does not count")
	s.terminal("")
	require.Equal(t, 0, s.run(append(command, "--output", "base64SharedConfig", "--profile", "mine", "--region", "us-east-1")...))
	assert.Equal(t, encoded, s.out.String())
	assert.Equal(t, "\nWARNING: `encode-as-profile` should only be used for bootstrapping.\n\n", s.err.String())
}

func TestEncodeTemporaryCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		s.keys(aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SEC", SessionToken: "TOK"})
		command := []string{"bootstrap", "credentials", "encode-as-profile", "--output", "rawSharedConfig", "--region", "us-east-1"}
		require.Equal(t, 0, s.run(command...))
		assert.Equal(t, rawTok, s.out.String())
		assert.Contains(t, s.err.String(), "These credentials are temporary; their expiry is not known.")
		s.keys(
			aws.Credentials{
				AccessKeyID:     "AKID",
				SecretAccessKey: "SEC",
				SessionToken:    "TOK",
				CanExpire:       true,
				Expires:         time.Now().Add(11*time.Hour + 59*time.Minute + 50*time.Second),
			},
		)
		require.Equal(t, 0, s.run(command...))
		assert.Equal(t, rawTok, s.out.String())
		golden.Assert(t, "encode-as-profile-temporary.txt", s.err.String())
	})
}

// The order of the region: the flag, AWS_REGION, AWS_DEFAULT_REGION, upstream's
// DEFAULT_AWS_REGION, us-east-1. An empty variable counts as not set.
func TestEncodeRegion(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		args      []string
		want      string
	}{
		{nil, nil, "us-east-1"},
		{map[string]string{"DEFAULT_AWS_REGION": "eu-west-3"}, nil, "eu-west-3"},
		{map[string]string{"DEFAULT_AWS_REGION": "eu-west-3", "AWS_DEFAULT_REGION": "eu-west-2"}, nil, "eu-west-2"},
		{map[string]string{"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, nil, "eu-west-1"},
		{map[string]string{"AWS_REGION": "", "DEFAULT_AWS_REGION": "eu-west-3"}, nil, "eu-west-3"},
		{map[string]string{"AWS_REGION": ""}, nil, "us-east-1"},
		{map[string]string{"AWS_REGION": "eu-west-1"}, []string{"--region", "sa-east-1"}, "sa-east-1"},
	} {
		s := newShell(t)
		s.keys(aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SEC"})
		for k, v := range c.variables {
			s.variables[k] = v
		}
		require.Equal(t, 0, s.run(append([]string{"bootstrap", "credentials", "encode-as-profile", "--output", "rawSharedConfig"}, c.args...)...))
		assert.Contains(t, s.out.String(), "region = "+c.want+"\n", c.variables)
	}
}

// If the command fails, stdout is empty, because scripts use $( ).
func TestEncodeFails(t *testing.T) {
	s := newShell(t)
	command := []string{"bootstrap", "credentials", "encode-as-profile"}
	require.Equal(t, env.Failed, s.run(append(command, "--output", "xml")...))
	assert.Contains(t, s.err.String(), "invalid output flag. Expected rawSharedConfig or base64SharedConfig")
	assert.Empty(t, s.out.String())
	require.Equal(t, env.Failed, s.run(command...))
	assert.Contains(t, s.err.String(), "error: no AWS credentials")
	assert.NotContains(t, s.err.String(), "--simulate", "this command has none")
	assert.Empty(t, s.out.String())
	s.keys(aws.Credentials{})
	require.Equal(t, env.Failed, s.run(append(command, "--profile", "nope")...))
	assert.Contains(t, s.err.String(), "failed to get shared config profile, nope")
	assert.Empty(t, s.out.String())
	s.variables["CLUSTERAWSADM_OUTPUT"] = "json"
	s.keys(aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SEC"})
	require.Equal(t, 0, s.run(command...), "a format that only others have is passed over")
	assert.Equal(t, encoded, s.out.String())
}
