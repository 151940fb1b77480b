package secrets

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is stored is read as it was.
func TestStoredKeysAreReadAsTheyWere(t *testing.T) {
	parts := map[string][]byte{"etcd-ca.crt": []byte("the CA of an external etcd\n")}
	for _, name := range []string{"apiserver-etcd-client.crt", "apiserver-etcd-client.key", "ca.crt", "ca.key", "sa.key", "sa.pub"} {
		parts[name] = []byte("<" + name + ">\n\"\n")
	}
	values, err := pack(parts)
	require.NoError(t, err)
	read, names := &StoredKeys{Parts: map[string][]byte{}}, []string(nil)
	for _, v := range values {
		names = append(names, v.name)
		require.NoError(t, read.unpack(v.name, v.value))
	}
	assert.Equal(t, []string{"apiserver-etcd-client", "ca", "etcd-ca.crt", "sa"}, names)
	assert.Equal(t, names, read.parameters)
	assert.Equal(t, parts, read.Parts)
}

// A run of an older version, which was killed, has left a parameter for each part.
func TestKeysOfAnOlderVersionThatWasKilled(t *testing.T) {
	type stored struct{ name, value string }
	all := []stored{{"ca.key", "single"}, {"sa.key", "single"}, {"ca", `{"ca.crt":"pair","ca.key":"pair"}`}}
	for range len(all) {
		read := &StoredKeys{Parts: map[string][]byte{}}
		for _, x := range all {
			require.NoError(t, read.unpack(x.name, x.value))
		}
		assert.Equal(t, map[string][]byte{"ca.crt": []byte("pair"), "ca.key": []byte("pair"), "sa.key": []byte("single")}, read.Parts)
		all = append(all[1:], all[0])
	}
	err := (&StoredKeys{}).unpack("ca", "secret")
	require.ErrorContains(t, err, "JSON")
	require.NotContains(t, err.Error(), "secret")
}
