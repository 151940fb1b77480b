package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// What AWS STS refuses of an identity is an error at the line of its field, before anything is sent.
func TestIdentitiesThatSTSRefuses(t *testing.T) {
	text := manifests.Read(t, "../../../../configs/multi-tenancy.yaml")
	const before = "  sessionName: team-a\n  externalID: cluster-of-team-a\n  durationSeconds: 3600\n"
	require.Contains(t, text, before)
	for field, want := range map[string]string{
		`durationSeconds: 60`:                                 "should be greater than or equal to 900",
		`durationSeconds: 43201`:                              "should be less than or equal to 43200",
		`durationSeconds: 3601`:                               "a session lasts at most 3600 seconds if a session of another role (AWSClusterRoleIdentity/company) assumes the role",
		`externalID: a b`:                                     `"a b" is not an external ID`,
		`externalID: a`:                                       `"a" is not an external ID`,
		`sessionName: team a`:                                 `"team a" is not the name of a session`,
		`sessionName: ` + strings.Repeat("a", 65):             "is not the name of a session",
		`inlinePolicy: '{nope'`:                               "it is not a policy in JSON",
		`inlinePolicy: '{"Version": "2012-10-17"}'`:           "the policy has no Statement",
		`inlinePolicy: '"` + strings.Repeat("a", 2050) + `"'`: "the policy of a session has at most 2048",
		`policyARNs: [x]`:                                     `"x" is not an ARN`,
		`policyARNs: [` + strings.Repeat("'arn:aws:iam::aws:policy/ReadOnlyAccess', ", 11) + `]`: "a session has at most 10 policies, this one has 11",
	} {
		edited := strings.Replace(text, before, "  "+field+"\n", 1)
		var invalid *manifest.InvalidError
		_, err := manifests.Load(t, edited, input.LoadOptions{})
		require.ErrorAs(t, err, &invalid, field)
		line := 1 + strings.Count(edited[:strings.Index(edited, field)], "\n")
		for _, p := range invalid.Problems {
			assert.Contains(t, fmt.Sprint(p), want, field)
			assert.Equal(t, line, p.Line, p)
		}
	}
	for _, field := range []string{"externalID: arn:aws/x_1=,.@+-", "durationSeconds: 3600", `inlinePolicy: '{"Version": "2012-10-17", "Statement": []}'`} {
		manifests.MustLoad(t, strings.Replace(text, before, "  "+field+"\n", 1), input.LoadOptions{})
	}
}
