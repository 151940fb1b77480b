// Package templates has texts that jinja2 accepts, and others that it refuses. Three judges have to agree about each text: the rules of manifests,
// the simulated cloud-init, and jinja2 itself where it is installed.
package templates

import (
	_ "embed"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

//go:embed cases.yaml
var cases []byte

// Cases are the texts.
type Cases struct{ Accepted, Refused []string }

// All returns the texts.
func All(t *testing.T) (all Cases) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict(cases, &all))
	require.NotEmpty(t, all.Accepted)
	require.NotEmpty(t, all.Refused)
	return all
}
