package permission_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/permission"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// actionsOf lists the actions of a call, and those that AWS checks with it.
func actionsOf(c awssim.Call) []string {
	prefix := map[string]string{
		"Auto Scaling": "autoscaling", "EC2": "ec2", "EKS": "eks", "IAM": "iam", "EventBridge": "events", "SQS": "sqs", "S3": "s3", "SSM": "ssm", "Secrets Manager": "secretsmanager",
		"Service Quotas": "servicequotas", "Elastic Load Balancing": "elasticloadbalancing", "Elastic Load Balancing v2": "elasticloadbalancing",
	}[c.Service]
	op := c.Operation
	if c.Service == "S3" {
		if other := map[string]string{"HeadBucket": "ListBucket", "ListObjectVersions": "ListBucketVersions", "DeleteObjects": "DeleteObject"}[op]; other != "" {
			op = other
		}
	}
	return append(dependent(c.Service, c.Operation), prefix+":"+op)
}

// tags reports whether an action sets tags: calls that create something do so in passing.
func tags(action string) bool { return strings.Contains(action, "Tag") }

// TestPlanNeedsWhatItCalls compares what the plan of every example needs with the calls of its
// creation: each permission that is needed for sure is used, and no other one is to write.
func TestPlanNeedsWhatItCalls(t *testing.T) {
	for _, file := range enginetest.Examples(t) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			t.Parallel()
			m := enginetest.LoadQuick(t, file)
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, 0)
				enginetest.Prepare(t, a, m)
				needs, err := needsOf(t.Context(), enginetest.Open(m, a.Process()))
				require.NoError(t, err)
				before := len(a.Calls())
				enginetest.MustApply(t, m, a)
				called := map[string]bool{}
				for _, c := range enginetest.Since(a, before) {
					for _, action := range actionsOf(c) {
						called[action] = true
					}
				}
				known := map[string]bool{}
				for _, n := range needs {
					known[n.Action] = true
					assert.NotEmpty(t, n.Sid, n.Action)
					assert.True(t, n.Maybe || tags(n.Action) || called[n.Action], "%s does not need %s", n.Step.Resource, n.Action)
				}
				for action := range called {
					_, op, _ := strings.Cut(action, ":")
					reads := slices.ContainsFunc(
						[]string{"Describe", "Get", "Head", "List", "Simulate", "AssumeRole"},
						func(p string) bool { return strings.HasPrefix(op, p) },
					)
					lock := strings.HasPrefix(action, "ssm:")
					assert.True(t, reads || lock || tags(action) || known[action], "%s is not known to be needed", action)
				}
			})
		})
	}
}

// with makes the caller of an account a user with a policy.
func with(t *testing.T, a *awssim.AWS, document any) *iam.User {
	t.Helper()
	raw, err := json.Marshal(document)
	require.NoError(t, err)
	user := &iam.User{Name: iam.Caller, Holder: iam.Holder{Inline: map[string]string{"own": string(raw)}}}
	a.Edit(func(s *awssim.State) { s.IAM.Users = map[string]*iam.User{iam.Caller: user} })
	return user
}

// without returns a document without an action.
func without(d permission.Document, action string) permission.Document {
	out := permission.Document{Version: d.Version}
	for _, s := range d.Statement {
		s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(a string) bool { return a == action })
		if len(s.Action) > 0 {
			out.Statement = append(out.Statement, s)
		}
	}
	return out
}

// TestPermissionsAreForeseen takes the permissions of a caller away one by one. A plan names
// the permission with what needs it and the statement that allows it, and a run is refused
// before its first write; one that cannot ask IAM fails half way.
func TestPermissionsAreForeseen(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	policy := permission.Policy(permission.Of(m))
	for action, first := range map[string]string{
		"ec2:CreateVpc":                           "vpc",
		"ec2:RunInstances":                        "machine",
		"ec2:DescribeNatGateways":                 "nat-gateway",
		"iam:PassRole":                            "machine",
		"ssm:PutParameter":                        "certificates",
		"secretsmanager:CreateSecret":             "machine",
		"elasticloadbalancing:CreateLoadBalancer": "load-balancer",
	} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, 0)
				with(t, a, without(policy, action))
				before := a.Inventory()
				c := run.Open(m, cluster.Target{Config: a.Process().Config(), Owner: "test", CheckPermissions: true})
				planned, err := c.Plan(t.Context())
				var lacks *plan.PermissionError
				require.ErrorAs(t, err, &lacks)
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.Equal(t, lacks.Permissions, *planned.Permissions)
				for _, l := range planned.Permissions.Lacking {
					require.Equal(t, action, l.Action)
					require.Equal(t, plan.NotAllowed, l.Why)
					require.False(t, l.Maybe)
				}
				require.Equal(t, first, planned.Permissions.Lacking[0].Resource.Kind())
				for _, s := range planned.Permissions.Policy.Statement {
					require.Equal(t, []string{action}, s.Action)
				}

				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, "arn:aws:iam::123456789012:user/simulated lacks")
				require.Equal(t, before, a.Inventory())

				p := a.Process()
				p.Permits = permits(without(policy, action), m.Region)
				_, err = enginetest.Open(m, p).Apply(t.Context(), cluster.Options{})
				require.Error(t, err, "IAM cannot be asked: AWS refuses the call")

				with(t, a, policy)
				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
			})
		})
	}
}

// statement is a statement of a policy.
type statement map[string]any

func document(all ...statement) map[string]any {
	return map[string]any{"Version": "2012-10-17", "Statement": all}
}

// TestPermissionsOfACaller has callers with policies of all kinds.
func TestPermissionsOfACaller(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	everything := statement{"Effect": "Allow", "Action": "*", "Resource": "*"}
	text := func(d any) string {
		raw, err := json.Marshal(d)
		require.NoError(t, err)
		return string(raw)
	}
	limit := text(document(statement{"Effect": "Allow", "NotAction": "ec2:CreateNatGateway", "Resource": "*"}))
	for name, c := range map[string]struct {
		policy  any
		edit    func(*awssim.State, *iam.User)
		lacking []string // as messages; none: all is well
	}{
		"administrator": {policy: document(everything)},
		"a denial": {
			policy:  document(everything, statement{"Effect": "Deny", "Action": "ec2:CreateVpc", "Resource": "*"}),
			lacking: []string{"ec2:CreateVpc for vpc (quickstart.yaml:39): a policy denies it"},
		},
		"a permissions boundary": {
			policy: document(everything),
			edit: func(s *awssim.State, u *iam.User) {
				s.IAM.Policies["limit"] = &iam.Policy{Name: "limit", Default: "v1", Versions: []*iam.PolicyVersion{{ID: "v1", Document: limit}}}
				u.Boundary = "arn:aws:iam::123456789012:policy/limit"
			},
			lacking: []string{"ec2:CreateNatGateway for nat-gateway/us-east-1a (quickstart.yaml:39): the permissions boundary does not allow it"},
		},
		"a service control policy": {
			policy:  document(everything),
			edit:    func(s *awssim.State, _ *iam.User) { s.IAM.ServiceControl = limit },
			lacking: []string{"ec2:CreateNatGateway for nat-gateway/us-east-1a (quickstart.yaml:39): a service control policy of the organization does not allow it"},
		},
		"only this region, and some resources": {policy: document(
			statement{"Effect": "Allow", "NotAction": []string{"ec2:*", "iam:PassRole"}, "Resource": "*"},
			statement{"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"},
			statement{"Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:ec2:us-east-1:123456789012:*", "Condition": map[string]any{"StringEquals": map[string]any{"aws:RequestedRegion": "us-east-1"}}},
			statement{"Effect": "Allow", "Action": "ec2:GetSecurityGroupsForVpc", "Resource": "*"},
			statement{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "arn:aws:iam::123456789012:role/*", "Condition": map[string]any{"StringEquals": map[string]any{"iam:PassedToService": "ec2.amazonaws.com"}}},
		)},
		"another region": {
			policy: document(statement{"Effect": "Allow", "NotAction": "ec2:CreateVpc", "Resource": "*"},
				statement{"Effect": "Allow", "Action": "ec2:CreateVpc", "Resource": "*", "Condition": map[string]any{"StringEquals": map[string]any{"aws:RequestedRegion": "eu-west-1"}}}),
			lacking: []string{"ec2:CreateVpc for vpc (quickstart.yaml:39): no policy allows it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, 0)
				user := with(t, a, c.policy)
				if c.edit != nil {
					a.Edit(func(s *awssim.State) { c.edit(s, user) })
				}
				plan, err := run.Open(m, cluster.Target{Config: a.Process().Config(), CheckPermissions: true}).Plan(t.Context())
				require.Equal(t, c.lacking != nil, err != nil, err)
				require.Empty(t, plan.Permissions.Unknown)
				require.Greater(t, plan.Permissions.Actions, 50)
				var lacking []string
				for _, l := range plan.Permissions.Lacking {
					lacking = append(lacking, l.String())
				}
				require.Equal(t, c.lacking, lacking)
				before := len(a.Calls())
				_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
				require.Equal(t, c.lacking != nil, err != nil, err)
				_, ops := enginetest.Counted(enginetest.Since(a, before))
				require.LessOrEqual(t, ops["SimulatePrincipalPolicy"], 3)
			})
		})
	}
}

// A condition on a value that the simulation does not know is a warning: the run may succeed.
func TestPermissionMayBeLacking(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		with(t, a, document(
			statement{"Effect": "Allow", "NotAction": "ec2:CreateVpc", "Resource": "*"},
			statement{
				"Effect":    "Allow",
				"Action":    "ec2:CreateVpc",
				"Resource":  "*",
				"Condition": map[string]any{"StringEquals": map[string]any{"aws:RequestTag/team": "web"}},
			},
		))
		var warnings []string
		_, err := run.Open(m, cluster.Target{Config: a.Process().Config(), Owner: "test", Warn: func(w string) { warnings = append(warnings, w) }}).
			Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.Equal(
			t,
			[]string{
				"arn:aws:iam::123456789012:user/simulated may need ec2:CreateVpc for vpc (quickstart.yaml:39): no policy allows it, unless aws:RequestTag/team has the value that a policy asks for",
			},
			warnings,
		)
		p := enginetest.MustPlan(t, m, a)
		require.Nil(t, p.Permissions, "a plan is asked for it")
	})
}

// The identity of a manifest is the caller, and its role has a path that its session does not
// show.
func TestPermissionsOfAnIdentity(t *testing.T) {
	m := enginetest.LoadQuick(t, "multi-tenancy.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		enginetest.Prepare(t, a, m)
		last := m.Identity[len(m.Identity)-1].Role
		name := last.RoleArn[strings.LastIndex(last.RoleArn, "/")+1:]
		role := strings.Replace(last.RoleArn, "role/", "role/teams/", 1)
		last.RoleArn = role
		a.Edit(func(s *awssim.State) { s.IAM.Roles[name].Attached, s.IAM.Roles[name].Path = nil, "/teams/" })
		p, err := run.Open(m, cluster.Target{Config: a.Process().Config(), CheckPermissions: true}).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.PermissionError))
		require.Equal(t, role, p.Permissions.Principal)
		require.Len(t, p.Permissions.Lacking, p.Permissions.Actions)
	})
}

// Without iam:SimulatePrincipalPolicy a plan says so, and a run goes on.
func TestPermissionsUnknown(t *testing.T) {
	m := enginetest.LoadQuick(t, "quickstart.yaml")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, 0)
		process := func() *awssim.Process {
			p := a.Process()
			p.Fault = func(_ int, _, op string) awssim.Fault {
				if op == "SimulatePrincipalPolicy" {
					return awssim.Denied
				}
				return awssim.None
			}
			return p
		}
		warn := func(w string) { t.Error(w) }
		planned, err := run.Open(m, cluster.Target{Config: process().Config(), CheckPermissions: true, Warn: warn}).Plan(t.Context())
		require.NoError(t, err)
		require.Equal(t, "that needs iam:SimulatePrincipalPolicy", planned.Permissions.Unknown)
		_, err = run.Open(m, cluster.Target{Config: process().Config(), Owner: "test", Warn: warn}).Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		planned, err = run.Open(m, cluster.Target{Config: process().Config(), CheckPermissions: true, Warn: warn}).Plan(t.Context())
		require.NoError(t, err)
		require.Equal(t, plan.Permissions{}, *planned.Permissions, "a plan without changes needs no more than it has read")
	})
}

// needsOf lists what the plan of a cluster needs, without the roles that it passes.
func needsOf(ctx context.Context, c *run.Cluster) ([]permission.Need, error) {
	l := &run.Looking{Session: run.Begin(c, nil)}
	err := l.Look(ctx)
	place := permission.Place{Partition: "aws", Account: "123456789012", Parameters: l.Cloud.ParameterPath("")}
	return permission.Needs(l.Built.Graph, l.Plan, permission.Policy(permission.Of(c.Manifest)), place), err
}
