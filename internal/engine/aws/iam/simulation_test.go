package iam_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	iamsim "github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
)

// Each resource has its own decision: AWS's decision for the action is the most restrictive one of its resources.
func TestSimulation(t *testing.T) {
	const (
		user  = "arn:aws:iam::123456789012:user/operator"
		role  = "arn:aws:iam::123456789012:role/"
		limit = "arn:aws:iam::123456789012:policy/limit"
	)
	const policy = `{"Version": "2012-10-17", "Statement": [
		{"Effect": "Allow", "Action": "iam:GetRole", "Resource": ["` + role + `mine", "` + role + `limited", "` + role + `denied"]},
		{"Effect": "Deny", "Action": "iam:GetRole", "Resource": "` + role + `denied"},
		{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "` + role + `mine"},
		{"Effect": "Allow", "Action": "iam:PassRole", "Resource": ["` + role + `passed", "` + role + `mine"],
			"Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}},
		{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "` + role + `free"},
		{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "` + role + `near", "Condition": {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}},
		{"Effect": "Allow", "Action": "ec2:CreateVpc", "Resource": "*"}
	]}`
	const boundary = `{"Version": "2012-10-17", "Statement": [
		{"Effect": "Allow", "Action": "*", "Resource": ["` + role + `mine", "` + role + `denied", "` + role + `other", "` + role + `passed"]}
	]}`
	account := func(bounded bool) *cloud.Clients {
		a := awssim.New(awssim.Options{})
		a.Edit(func(s *awssim.State) {
			u := &iamsim.User{Name: "operator", Holder: iamsim.Holder{Inline: map[string]string{"p": policy}}}
			if bounded {
				s.IAM.Policies["limit"] = &iamsim.Policy{Name: "limit", Default: "v1", Versions: []*iamsim.PolicyVersion{{ID: "v1", Document: boundary}}}
				u.Boundary = limit
			}
			s.IAM.Users["operator"] = u
		})
		return cloud.New(a.Config(), "demo", cloud.Options{})
	}
	passed := []string{"iam:PassedToService"}
	type decisions = map[string]iam.Decision
	for name, c := range map[string]struct {
		bounded bool
		action  string
		context map[string]string
		want    decisions // by the name of the role; "*" for a simulation without resources
	}{
		"several resources": {false, "iam:GetRole", nil, decisions{"mine": {Allowed: true}, "denied": {Explicit: true}, "other": {}}},
		"one of them":       {false, "iam:GetRole", nil, decisions{"mine": {Allowed: true}}},
		"a denial alone":    {false, "iam:GetRole", nil, decisions{"denied": {Explicit: true}}},
		"a permissions boundary": {
			true, "iam:GetRole", nil,
			decisions{"mine": {Allowed: true}, "limited": {Boundary: true}, "denied": {Explicit: true}, "other": {}},
		},
		"a condition":            {false, "iam:PassRole", nil, decisions{"passed": {Missing: passed}}},
		"a condition of another": {false, "iam:PassRole", nil, decisions{"mine": {Allowed: true, Missing: passed}, "passed": {Missing: passed}}},
		"conditions of each": {
			false, "iam:PassRole", nil,
			decisions{"free": {Allowed: true}, "passed": {Missing: passed}, "near": {Missing: []string{"aws:RequestedRegion"}}},
		},
		"no condition of its own": { // it may lack what IAM says of the action
			false, "iam:PassRole", nil, decisions{"passed": {Missing: passed}, "other": {Missing: passed}},
		},
		"its value":                  {false, "iam:PassRole", map[string]string{"iam:PassedToService": "ec2.amazonaws.com"}, decisions{"passed": {Allowed: true}}},
		"another value":              {false, "iam:PassRole", map[string]string{"iam:PassedToService": "eks.amazonaws.com"}, decisions{"passed": {}}},
		"any resource":               {false, "ec2:CreateVpc", nil, decisions{"*": {Allowed: true}}},
		"any resource, the boundary": {true, "ec2:CreateVpc", nil, decisions{"*": {Boundary: true}}},
		"any resource, some allowed": {false, "iam:GetRole", nil, decisions{"*": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := iam.Simulation{Principal: user, Actions: []string{c.action}, Context: c.context}
			want := map[iam.Simulated]iam.Decision{}
			for of, d := range c.want {
				if of != "*" {
					of = role + of
					s.Resources = append(s.Resources, of)
				}
				want[iam.Simulated{Action: c.action, Resource: of}] = d
			}
			got, err := s.Run(t.Context(), account(c.bounded))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}

	many := iam.Simulation{Principal: user}
	for i := range 250 {
		many.Actions = append(many.Actions, fmt.Sprint("ec2:Action", i))
	}
	got, err := many.Run(t.Context(), account(false))
	require.NoError(t, err)
	require.Len(t, got, 250, "actions of all calls and of all pages")
	many.Principal = user + "-2"
	_, err = many.Run(t.Context(), account(false))
	require.True(t, cloud.Is(err, "NoSuchEntity"), "%v", err)
}
