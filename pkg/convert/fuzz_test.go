package convert_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
)

// Any text is refused, or converted once and for all.
func FuzzFile(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "../../internal/engine/manifest/loader/testdata/good/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := convert.File("in.yaml", data)
		if err != nil {
			return
		}
		if r.Converted == 0 && len(r.Notes) == 0 {
			require.Equal(t, string(data), string(r.Text))
		}
		again, err := convert.File("in.yaml", r.Text)
		require.NoError(t, err)
		require.Equal(t, string(r.Text), string(again.Text))
	})
}
