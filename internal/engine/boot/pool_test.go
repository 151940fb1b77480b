package boot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPoolUserData checks that machines of a pool, with CAPA's template for machine
// pools, can boot with the data in one launch template: it fits, contains no key, and
// nothing specific to one machine except the name that cloud-init inserts.
func TestPoolUserData(t *testing.T) {
	m := machine(t, JoinWorker, "v1.34.2", quickStart())
	data := render(t, m)
	userData, err := Fit(data.Format, data.Content, nil)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(userData), cloudConfigHeader), "uncompressed")
	assert.Less(t, len(userData), MaxUserData/4, "with room for files")
	doc := parse(t, Data{Format: data.Format, Content: userData})
	config := doc.file(t, joinConfigPath)
	assert.Contains(t, config, "name: '"+hostname+"'")
	assert.Contains(t, config, "kind: JoinConfiguration")
	assert.Contains(t, config, "name: cloud-provider")
	assert.NotContains(t, config, "provider-id", "the cloud controller sets it on the Node")
	assert.NotContains(t, string(userData), "PRIVATE KEY")
}

// TestPoolOfFlatcar makes Ignition load data that all machines of the pool share.
func TestPoolOfFlatcar(t *testing.T) {
	data := render(t, machine(t, JoinWorker, "v1.34.2", flatcar()))
	pointer, err := IgnitionPointer(nil, "s3://bucket/machine-pool/mp-0")
	require.NoError(t, err)
	_, err = Fit(data.Format, pointer, nil)
	require.NoError(t, err)
}

func TestShape(t *testing.T) {
	shape := func(change func(*Machine)) string {
		m := machine(t, JoinWorker, "v1.34.2", everything())
		change(&m)
		s, err := Shape(m)
		require.NoError(t, err)
		return s
	}
	same := shape(func(*Machine) {})
	assert.Equal(t, same, shape(func(m *Machine) { m.Token = "abcdef.fedcba9876543210" }), "a renewed token")
	assert.NotEqual(t, same, shape(func(m *Machine) { m.Version = "v1.30.14" }))
	assert.NotEqual(t, same, shape(func(m *Machine) { m.Spec.PreKubeadmCommands = nil }))
	assert.NotEqual(
		t,
		same,
		shape(func(m *Machine) { m.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = testToken }),
		"a token of the manifest is part of the shape",
	)
	m := machine(t, JoinWorker, "v1.34.2", quickStart())
	m.Token = ""
	_, err := Shape(m)
	require.ErrorContains(t, err, "token is not of the form", "no token is generated")
}
