//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// TestPolicy creates and deletes a cluster as a user who has exactly the permissions of
// "cluster policy". moto does not support resources and conditions of statements, so they
// are removed. TestPolicySuffices of internal/engine/permission checks the resources.
func TestPolicy(t *testing.T) {
	server := moto.Start(t)
	server.Bootstrap(t)
	policy, _ := newShell(t, server).run(t, 0, "policy")
	for name, c := range map[string]struct {
		policy string
		want   int
	}{
		"all of it":            {policy, 0},
		"without a permission": {strings.Replace(policy, `"ec2:CreateSubnet",`, "", 1), 5},
	} {
		t.Run(name, func(t *testing.T) {
			server.Reset(t)
			server.Bootstrap(t)
			before := inventory(t, server)
			s := newShell(t, server, someone(t, server, bare(t, c.policy))...)
			_, story := s.run(t, c.want, "create", "-f", example("quickstart"), "--yes")
			if c.want != 0 {
				assert.Contains(t, story, "CreateSubnet")
				assert.Contains(t, story, "AccessDenied")
				enforce(t, server, "inf")
				return
			}
			s.run(t, 0, "delete", "quickstart", "--yes")
			enforce(t, server, "inf")
			assert.Equal(t, before, inventory(t, server))
		})
	}
}

// bare removes from a policy what moto does not support.
func bare(t *testing.T, policy string) string {
	t.Helper()
	var d struct {
		Version   string
		Statement []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(policy), &d))
	for _, s := range d.Statement {
		s["Resource"] = "*"
		delete(s, "Condition")
	}
	out, err := json.Marshal(d)
	require.NoError(t, err)
	return string(out)
}

// someone creates a user with that policy, enables permission checks in moto, and returns
// the environment for the user's commands.
func someone(t *testing.T, server *moto.Server, policy string) []string {
	t.Helper()
	c, name := iam.NewFromConfig(server.Config), "ada"
	_, err := c.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name})
	require.NoError(t, err)
	_, err = c.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: &name, PolicyDocument: &policy})
	require.NoError(t, err)
	key, err := c.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name})
	require.NoError(t, err)
	enforce(t, server, "0")
	return []string{"AWS_ACCESS_KEY_ID=" + *key.AccessKey.AccessKeyId, "AWS_SECRET_ACCESS_KEY=" + *key.AccessKey.SecretAccessKey}
}

// enforce makes moto check permissions after that number of calls; "inf" is never.
func enforce(t *testing.T, server *moto.Server, after string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/moto-api/reset-auth", strings.NewReader(after))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}
