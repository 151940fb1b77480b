// Package configfiles has configuration files that components of Kubernetes 1.34 accept, and others that they refuse. Three judges have to agree
// about each file: the rules of manifests, the simulated machines, and the real components (e2e/kubernetes).
package configfiles

import (
	_ "embed"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

//go:embed cases.yaml
var cases []byte

// Case is a file that an argument of a component names.
type Case struct {
	Component, Argument string
	Word                string // of the component's error; "" if it starts
	Text                string
}

// Cases returns the files.
func Cases(t *testing.T) (all []Case) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict(cases, &all))
	require.NotEmpty(t, all)
	return all
}
