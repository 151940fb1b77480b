package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// TestPermissions checks the permissions of an administrator, and of a user who may not create
// NAT gateways and has a permissions boundary.
func TestPermissions(t *testing.T) {
	s := newSession(t)
	s.simulated()
	file := s.generated(t)
	require.Equal(t, env.OK, s.run("cluster", "plan", "-f", file, "--check"), s.err.String())
	assert.Regexp(t, `(?m)^Permissions: arn:aws:iam::123456789012:user/simulated has all \d\d that the plan needs$`, s.out.String())

	s.simulatedAccount(t, func(state *awssim.State) {
		state.IAM.Policies["limit"] = &iam.Policy{Name: "limit", Default: "v1", Versions: []*iam.PolicyVersion{{
			ID: "v1", Document: `{"Statement": [{"Effect": "Allow", "NotAction": "elasticloadbalancing:CreateListener", "Resource": "*"}]}`,
		}}}
		state.IAM.Users[iam.Caller] = &iam.User{Name: iam.Caller, Boundary: "arn:aws:iam::123456789012:policy/limit", Holder: iam.Holder{Inline: map[string]string{
			"own": `{"Statement": [{"Effect": "Allow", "NotAction": ["ec2:CreateNatGateway", "ec2:ModifyVpcAttribute", "secretsmanager:CreateSecret"], "Resource": "*"}]}`,
		}}}
	})
	s.types(env.Refused, "cluster", "create", "-f", file, "--yes")
	require.Equal(t, env.Refused, s.run("cluster", "plan", "-f", file, "--check"))
	assert.Contains(t, s.out.String(), "lacks 4 of ")
	assert.Contains(t, s.out.String(), "Attach this policy to get the missing permissions:\n\n{\n")
	require.Equal(t, env.Refused, s.run("cluster", "plan", "-f", file, "--check", "-o", "json"))
	var d struct {
		Permissions struct {
			Lacking []struct{ Action, Why string }
			Policy  struct{ Statement []struct{ Sid string } }
		}
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &d))
	assert.Len(t, d.Permissions.Lacking, 4)
	assert.Len(t, d.Permissions.Policy.Statement, 2)
	golden.Assert(t, "permissions.txt", s.transcript(file, "demo.yaml"))
	require.Equal(t, env.OK, s.run("cluster", "create", "-f", file, "--yes", "--check=false"), "IAM's simulation is not asked: %s", s.err.String())
}
