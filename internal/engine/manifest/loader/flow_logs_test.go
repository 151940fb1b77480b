package loader_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// The annotations of a flow log are what CreateFlowLogs takes.
func TestFlowLogs(t *testing.T) {
	yaml := manifests.Read(t, "../../../../configs/quickstart.yaml")
	const infra, role = "kind: AWSCluster\nmetadata:\n", "clusterawsadm/flow-logs-role: 'arn:aws:iam::123456789012:role/team/logs'"
	with := func(annotations string) string {
		return manifests.Edit(t, yaml, infra, infra+"  annotations: {"+annotations+"}\n")
	}
	for annotations, want := range map[string]*manifest.FlowLogs{
		"example.com/other: x":                                                            nil,
		"clusterawsadm/flow-logs: none":                                                   {Removed: true},
		"clusterawsadm/flow-logs: 'arn:aws-cn:s3:::logs'":                                 {Bucket: "arn:aws-cn:s3:::logs", Traffic: "ALL"},
		"clusterawsadm/flow-logs: /vpc/a#b_c.d-e, " + role:                                {LogGroup: "/vpc/a#b_c.d-e", Role: "arn:aws:iam::123456789012:role/team/logs", Traffic: "ALL"},
		"clusterawsadm/flow-logs: logs, clusterawsadm/flow-logs-traffic: ACCEPT, " + role: {LogGroup: "logs", Role: "arn:aws:iam::123456789012:role/team/logs", Traffic: "ACCEPT"},
	} {
		assert.Equal(t, want, manifests.MustLoad(t, with(annotations), input.LoadOptions{}).FlowLogs, annotations)
	}
	for annotations, want := range map[string]string{
		role:                            `there is no annotation clusterawsadm/flow-logs — set it to the destination`,
		"clusterawsadm/flow-logs: logs": `a flow log in a group of CloudWatch Logs needs the annotation clusterawsadm/flow-logs-role`,
		"clusterawsadm/flow-logs: logs, clusterawsadm/flow-logs-role: logs":                       `flow-logs-role is "logs": it is not the ARN of a role`,
		"clusterawsadm/flow-logs: 'a group', " + role:                                             `flow-logs is "a group": CloudWatch Logs has no such name`,
		"clusterawsadm/flow-logs: 'arn:aws:s3:::logs', " + role:                                   `a flow log with a bucket takes no role`,
		"clusterawsadm/flow-logs: 'arn:aws:firehose:us-east-1:123456789012:deliverystream/x'":     `it is not the ARN of a bucket`,
		"clusterawsadm/flow-logs: 'arn:aws:s3:::Logs'":                                            `it is not the ARN of a bucket`,
		"clusterawsadm/flow-logs: 'arn:aws:s3:::logs', clusterawsadm/flow-logs-traffic: rejected": `flow-logs-traffic is "rejected": there is no such value`,
		"clusterawsadm/flow-logs: 'arn:aws:s3:::logs', cluster.x-k8s.io/managed-by: terraform":    `the infrastructure is managed externally`,
	} {
		_, err := manifests.Load(t, with(annotations), input.LoadOptions{})
		require.ErrorContains(t, err, want, annotations)
	}
}
