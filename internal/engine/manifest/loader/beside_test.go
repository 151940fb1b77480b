package loader_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// The error of a file of another tool in a folder with a manifest says how to leave it out.
func TestFilesBesideManifests(t *testing.T) {
	cluster := input.Source{Name: "folder/cluster.yaml", Data: []byte(manifests.Read(t, "../../../../configs/quickstart.yaml"))}
	const leave = "leave it out, and name the manifests one by one, each with -f; or "
	for name, text := range map[string]string{"values.yaml": "replicaCount: 3\n", "clusterctl.yaml": "providers: []\n"} {
		other := input.Source{Name: "folder/" + name, Data: []byte(text)}
		_, err := loader.Load([]input.Source{other, cluster}, input.LoadOptions{})
		require.ErrorContains(t, err, leave, name)
		_, err = loader.Load([]input.Source{other}, input.LoadOptions{})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), leave, name)
	}
}
