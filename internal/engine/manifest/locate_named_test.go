package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// A message that begins with the name of a field is about this field, also if it quotes the value of another one.
func TestLocateByTheFirstName(t *testing.T) {
	text := manifests.Read(t, "../../../configs/eks.yaml")
	const plane, addons = "  version: v1.34\n", "  addons: [{name: coredns, version: v1.12.4-eksbuild.1, configuration: '{\"replicaCount\": 3}'}]\n"
	require.Contains(t, text, plane)
	m := manifests.MustLoad(t, strings.Replace(text, plane, plane+addons, 1), input.LoadOptions{})
	const addon = "AWSManagedControlPlane/eks spec.addons[0]"
	for message, want := range map[string]string{
		"configuration: EKS refuses it for coredns v1.12.4-eksbuild.1": addon + ".configuration",
		"EKS refuses coredns":               addon + ".name",
		"nothing: EKS refuses coredns":      addon + ".name",
		"create: coredns cannot be created": addon + ".name",
	} {
		assert.Contains(t, m.Locate(m.Origin("AWSManagedControlPlane/eks", "spec.addons[0]"), message)+" ", " "+want+" ", message)
	}
}
