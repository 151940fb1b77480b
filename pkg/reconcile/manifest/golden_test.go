package manifest_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"clusterawsadm/pkg/reconcile/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

// The whole text that people see for wrong input is kept under testdata.
func TestProblemsGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/wrong/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			data, err := os.ReadFile(input)
			require.NoError(t, err)
			_, err = manifest.Load([]manifest.Source{{Name: filepath.Base(input), Data: data}}, manifest.Options{})
			var invalid *manifest.InvalidError
			require.ErrorAs(t, err, &invalid)
			golden := input[:len(input)-len(".yaml")] + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), invalid.Error()+"\n")
		})
	}
}
