package cli

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// TestEKSToken creates tokens at the beginning of virtual time, with the keys of AWS's
// examples: they are the same in every run.
func TestEKSToken(t *testing.T) {
	s := newSession(t)
	s.AWS = func(_ context.Context, region, profile string) (aws.Config, error) {
		return aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("AKID"+profile, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "")}, nil
	}
	synctest.Test(t, func(*testing.T) {
		s.types(0, "eks", "token", "-n", "default_demo", "-r", "us-east-1")
		s.variables["KUBERNETES_EXEC_INFO"] = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`
		s.types(0, "eks", "token", "--cluster-name", "default_demo", "--region", "cn-north-1", "--profile", "prod")
		s.variables["KUBERNETES_EXEC_INFO"] = `{"apiVersion":"client.authentication.k8s.io/v1alpha1"}`
		s.types(1, "eks", "token", "-n", "default_demo", "-r", "us-east-1")
		delete(s.variables, "KUBERNETES_EXEC_INFO")
		s.types(1, "eks", "token", "-r", "us-east-1")
		s.types(1, "eks", "token", "-n", "default_demo")
		s.types(1, "eks", "token", "-n", "default_demo", "extra")
		s.terminal("")
		s.types(0, "eks", "token", "-n", "default_demo", "-r", "us-east-1")
	})
	golden.Assert(t, "ekstoken.txt", s.transcript())
}

// TestEKSTokenOfARole assumes a role of another account.
func TestEKSTokenOfARole(t *testing.T) {
	s := newSession(t)
	s.simulated()
	require.Equal(t, 0, s.run("eks", "token", "-n", "demo", "--role-arn", "arn:aws:iam::999999999999:role/admin"), s.err.String())
	var c clientauthv1.ExecCredential
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &c), "stdout is the answer, and nothing else")
	assert.Contains(t, c.Status.Token, "k8s-aws-v1.")
	assert.False(t, c.Status.ExpirationTimestamp.IsZero())
	assert.NotContains(t, s.err.String(), c.Status.Token)
	require.Equal(t, 1, s.run("eks", "token", "-n", "demo", "--role-arn", "arn:aws:iam::123456789012:role/admin"))
	assert.Contains(t, s.err.String(), "error: sign a token for cluster demo: ")
	assert.Contains(t, s.err.String(), "AccessDenied")
	assert.Empty(t, s.out.String())
}
