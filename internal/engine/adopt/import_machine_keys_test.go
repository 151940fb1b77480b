package adopt_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// KeyFiles reads the keys of a cluster, whether its machines run etcd or not, and says which
// files are missing.
func TestKeyFiles(t *testing.T) {
	const common = "ca.crt ca.key etcd/ca.crt front-proxy-ca.crt front-proxy-ca.key sa.key sa.pub"
	const client = " apiserver-etcd-client.crt apiserver-etcd-client.key"
	for _, x := range []struct{ what, files, keys, missing string }{
		{"etcd on the machines", common + " etcd/ca.key" + client + " apiserver.crt", common + " etcd/ca.key", ""},
		{"etcd elsewhere", common + client, common + client, ""},
		{"no key of etcd", common, "", "there is no etcd/ca.key"},
		{"a part of the client", common + " apiserver-etcd-client.crt", "", "there is no apiserver-etcd-client.key"},
		{"nothing", "apiserver.crt", "", "there is no ca.crt, ca.key, etcd/ca.crt, etcd/ca.key, front-proxy-ca.crt, front-proxy-ca.key, sa.key, sa.pub"},
	} {
		t.Run(x.what, func(t *testing.T) {
			pki := fstest.MapFS{}
			for _, name := range strings.Fields(x.files) {
				pki[name] = &fstest.MapFile{Data: []byte(name)}
			}
			keys, err := adopt.KeyFiles(pki)
			if x.missing != "" {
				require.EqualError(t, err, x.missing)
				return
			}
			require.NoError(t, err)
			assert.ElementsMatch(t, strings.Fields(x.keys), slices.Collect(maps.Keys(keys)))
			assert.Equal(t, "sa.pub", string(keys["sa.pub"]))
		})
	}
}
