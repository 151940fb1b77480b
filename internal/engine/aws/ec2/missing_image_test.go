package ec2_test

import (
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"

	"github.com/stretchr/testify/require"
)

// TestMissingImage plans Kubernetes versions without an image: the error names the nearest
// versions that have one.
func TestMissingImage(t *testing.T) {
	const file = "quickstart.yaml"
	for version, want := range map[string]string{
		"v1.34.99": "no image for Kubernetes v1.34.99 in us-east-1 (name capa-ami-ubuntu-24.04-?1.34.99-*, owner 819546954734, x86_64): the nearest versions with images are v1.34.13, v1.34.12, v1.34.11; use one of them, or set ami.id",
		"v1.32.14": "the nearest versions with images are v1.32.13, v1.32.12, v1.32.11;",
	} {
		t.Run(version, func(t *testing.T) {
			m := enginetest.LoadQuick(t, file)
			m.ControlPlane.Object.Spec.Version = version
			synctest.Test(t, func(t *testing.T) {
				_, err := enginetest.Open(m, enginetest.Prepared(t, m).Process()).Plan(t.Context())
				require.ErrorContains(t, err, want)
			})
		})
	}
}
