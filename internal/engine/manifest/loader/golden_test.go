package loader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// The complete messages for invalid input.
func TestProblemsGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/wrong/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, theCluster := range inputs {
		name := filepath.Base(theCluster)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(theCluster)
			require.NoError(t, err)
			_, err = loader.Load([]input.Source{{Name: name, Data: data}}, input.LoadOptions{})
			var invalid *manifest.InvalidError
			require.ErrorAs(t, err, &invalid)
			golden.Assert(t, "wrong/"+strings.TrimSuffix(name, ".yaml")+".golden", invalid.Error()+"\n")
		})
	}
}
