package loader_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Problems of a MachineHealthCheck in v1beta1 name its v1beta1 fields, and their lines.
func TestOlderNamesOfHealthChecks(t *testing.T) {
	const check = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineHealthCheck\nmetadata: {name: mhc}\nspec:\n  clusterName: quickstart\n" +
		"  selector: {matchLabels: {a: b}}\n  unhealthyConditions: [{type: Ready, status: Unknown, timeout: 300s}]\n"
	for field, want := range map[string]string{
		"nodeStartupTimeout: 5s":    "cluster.yaml:8: MachineHealthCheck/mhc spec.nodeStartupTimeout: 5: must be at least 30 seconds",
		"maxUnhealthy: 150x":        `cluster.yaml:8: MachineHealthCheck/mhc spec.maxUnhealthy: "150x": must be a number or a percentage`,
		"unhealthyRange: '[5-2]'":   `cluster.yaml:8: MachineHealthCheck/mhc spec.unhealthyRange: "[5-2]": the end of the range is before its start`,
		"unhealthyRange: 'quorate'": `cluster.yaml:8: MachineHealthCheck/mhc spec.unhealthyRange: "quorate": should match`,
	} {
		_, err := manifests.Load(t, check+"  "+field+"\n---\n"+manifests.Plain(t), input.LoadOptions{})
		require.ErrorContains(t, err, want)
	}
	c := manifests.MustLoad(t, check+"  remediationTemplate: {apiVersion: example.com/v1, kind: Repair, name: a}\n---\n"+manifests.Plain(t), input.LoadOptions{})
	require.Len(t, c.Warnings, 1)
	assert.Equal(t, "cluster.yaml:8: MachineHealthCheck/mhc spec.remediationTemplate: the check has no effect: external remediation needs a management cluster"+
		" — remove it, so that unhealthy machines are replaced", c.Warnings[0].String())
}
