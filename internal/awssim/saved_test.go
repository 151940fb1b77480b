package awssim

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that an older version saved keeps all its values when it is loaded and saved again.
// testdata/saved.json has a value for every field that IAM, ELB and EKS had then; what the name
// of a field means may not change, because users keep these files.
func TestStateOfAnOlderVersion(t *testing.T) {
	file, err := os.ReadFile("testdata/saved.json")
	require.NoError(t, err)
	state := &State{}
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(state))
	raw, err := json.Marshal(state)
	require.NoError(t, err)
	var want, got any
	require.NoError(t, json.Unmarshal(file, &want))
	require.NoError(t, json.Unmarshal(raw, &got))
	keeps(t, "", want, got)
}

// keeps checks that each value is there. There may be others: newer fields.
func keeps(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for k, v := range want {
			if assert.Contains(t, fields, k, path) {
				keeps(t, path+"."+k, v, fields[k])
			}
		}
	case []any:
		list, _ := got.([]any)
		require.Len(t, list, len(want), path)
		for i := range want {
			keeps(t, path, want[i], list[i])
		}
	default:
		assert.Equal(t, want, got, path)
	}
}
