package loader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Objects that were exported from a management cluster are accepted. The fields that controllers write (in v2.13.0 of CAPA: controllers,
// exp/controllers and pkg/cloud) are warnings at most.
func TestExported(t *testing.T) {
	files, err := filepath.Glob("testdata/exported/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		m, err := loader.Load([]input.Source{{Name: filepath.Base(file), Data: data}}, input.LoadOptions{})
		require.NoError(t, err)
		for _, w := range m.Warnings {
			quiet := strings.Contains(w.What, "has no effect") || strings.Contains(w.What, "is ignored")
			assert.True(t, quiet, "%s", w)
		}
	}
}

// Only in a VPC that exists, the carrier gateway and the pool of IPv6 addresses were found by CAPA.
func TestFoundByCAPA(t *testing.T) {
	data, err := os.ReadFile("testdata/exported/self-managed.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(data), "        id: vpc-06a4940fc7a2ee655\n", "", 1)
	_, err = loader.Load([]input.Source{{Name: "self-managed.yaml", Data: []byte(text)}}, input.LoadOptions{})
	require.ErrorContains(t, err, "spec.network.vpc.carrierGatewayId: is not supported yet")
	require.ErrorContains(t, err, "spec.network.vpc.ipv6.poolId: is not supported yet")
}
