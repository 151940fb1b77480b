package s3_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
)

// sortedStatements sorts the statements of a policy by Sid.
func sortedStatements(t *testing.T, policy string) string {
	t.Helper()
	var p struct {
		Version   string
		Statement []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(policy), &p))
	slices.SortFunc(p.Statement, func(a, b map[string]any) int {
		if fmt.Sprint(a["Sid"]) < fmt.Sprint(b["Sid"]) {
			return -1
		}
		return 1
	})
	out, err := json.Marshal(p)
	require.NoError(t, err)
	return string(out)
}

// The bucket policy allows each role to read its prefixes, and denies requests without
// TLS. It equals its canonical form.
func TestBucketPolicy(t *testing.T) {
	b := &s3.Bucket{Name: "demo", Partition: "aws-cn", Account: "123456789012", Readers: map[string]s3.Reader{
		"control-plane": {Role: "cp", Prefixes: []string{"control-plane/*"}}, "nodes": {Role: "nodes", Prefixes: []string{"node/*", "machine-pool/*"}},
	}}
	d := b.Diff(&s3.BucketState{Name: "demo"})
	require.Len(t, d, 1)
	require.JSONEq(t, `{"Version": "2012-10-17", "Statement": [
		{"Sid": "ForceSSLOnlyAccess", "Effect": "Deny", "Principal": {"AWS": "*"}, "Action": "s3:*", "Resource": "arn:aws-cn:s3:::demo/*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
		{"Sid": "control-plane", "Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws-cn:s3:::demo/control-plane/*", "Principal": {"AWS": "arn:aws-cn:iam::123456789012:role/cp"}},
		{"Sid": "nodes", "Effect": "Allow", "Action": "s3:GetObject", "Resource": ["arn:aws-cn:s3:::demo/machine-pool/*", "arn:aws-cn:s3:::demo/node/*"], "Principal": {"AWS": "arn:aws-cn:iam::123456789012:role/nodes"}}
	]}`, sortedStatements(t, d[0].Want))
	require.Empty(t, b.Diff(&s3.BucketState{Name: "demo", Policy: d[0].Want}))
}
