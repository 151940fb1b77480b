package boot

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadm "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"
)

// initDocuments returns both documents of a first machine.
func initDocuments(t *testing.T, m Machine) (*bootstrapv1.ClusterConfiguration, *upstream.AdditionalData, *bootstrapv1.InitConfiguration) {
	t.Helper()
	documents := strings.Split(parse(t, render(t, m)).file(t, initConfigPath), "---\n")
	require.Len(t, documents, 3)
	cluster, data, err := kubeadm.UnmarshalClusterConfiguration(documents[1])
	require.NoError(t, err)
	first, err := kubeadm.UnmarshalInitConfiguration(documents[2])
	require.NoError(t, err)
	return cluster, data, first
}

// joinDocument returns the document of a machine that joins.
func joinDocument(t *testing.T, m Machine) *bootstrapv1.JoinConfiguration {
	t.Helper()
	text := strings.TrimPrefix(parse(t, render(t, m)).file(t, joinConfigPath), "---\n")
	join, err := kubeadm.UnmarshalJoinConfiguration(text)
	require.NoError(t, err)
	return join
}

func TestInitConfiguration(t *testing.T) {
	for version, api := range map[string]string{"v1.30.14": "v1beta3", "v1.34.2": "v1beta4"} {
		m := machine(t, Init, version, quickStart())
		m.Cluster.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"10.96.0.0/12", "fd00::/108"}
		m.Cluster.Spec.ClusterNetwork.ServiceDomain = "k8s.example"
		cluster, data, first := initDocuments(t, m)
		assert.Contains(t, string(render(t, m).Content), "kubeadm.k8s.io/"+api)
		assert.Equal(t, testEndpoint, cluster.ControlPlaneEndpoint)
		assert.Equal(t, "prod", *data.ClusterName)
		assert.Equal(t, version, *data.KubernetesVersion)
		assert.Equal(t, "192.168.0.0/16", *data.PodSubnet)
		assert.Equal(t, "10.96.0.0/12,fd00::/108", *data.ServiceSubnet)
		assert.Equal(t, "k8s.example", *data.DNSDomain)
		require.Len(t, first.BootstrapTokens, 1)
		token := first.BootstrapTokens[0]
		assert.Equal(t, testToken, token.Token.String())
		assert.Equal(t, int32(7200), *token.TTLSeconds)
		assert.Equal(t, []string{"signing", "authentication"}, token.Usages)
		assert.Equal(t, []string{"system:bootstrappers:kubeadm:default-node-token"}, token.Groups)
	}
}

func TestTokensOfTheManifestAreKept(t *testing.T) {
	spec := quickStart()
	spec.InitConfiguration.BootstrapTokens = []bootstrapv1.BootstrapToken{{Token: bootstrapv1.BootstrapTokenString{ID: "manual", Secret: "0123456789012345"}}}
	_, _, first := initDocuments(t, machine(t, Init, "v1.34.2", spec))
	require.Len(t, first.BootstrapTokens, 2)
	assert.Equal(t, "manual.0123456789012345", first.BootstrapTokens[0].Token.String())
	assert.Equal(t, testToken, first.BootstrapTokens[1].Token.String())
}

func TestTokenThatNeverExpires(t *testing.T) {
	m := machine(t, Init, "v1.34.2", quickStart())
	m.TokenTTL = 0
	_, _, first := initDocuments(t, m)
	// kubeadm treats a missing TTL as a day, and zero as unlimited.
	require.NotNil(t, first.BootstrapTokens[0].TTLSeconds)
	assert.Zero(t, *first.BootstrapTokens[0].TTLSeconds)
	m.TokenTTL = -time.Second
	_, err := Render(m)
	assert.ErrorContains(t, err, "not a valid lifetime")
}

func TestLocalModeGate(t *testing.T) {
	for version, want := range map[string]bool{"v1.30.14": false, "v1.31.0-rc.1": true, "v1.31.0": true, "v1.35.9": true, "v1.36.0-alpha.1": false, "v1.36.0": false} {
		cluster, _, _ := initDocuments(t, machine(t, Init, version, quickStart()))
		assert.Equal(t, want, cluster.FeatureGates[localModeGate], version)
	}
	spec := quickStart()
	spec.ClusterConfiguration.FeatureGates = map[string]bool{localModeGate: false}
	cluster, _, _ := initDocuments(t, machine(t, Init, "v1.34.2", spec))
	assert.Equal(t, map[string]bool{localModeGate: false}, cluster.FeatureGates)
}

func TestJoinDiscovery(t *testing.T) {
	hashes, err := fixedPKI(t).CAHashes()
	require.NoError(t, err)
	verify := false // the types read a missing unsafeSkipCAVerification as false
	for _, role := range []Role{JoinControlPlane, JoinWorker} {
		join := joinDocument(t, machine(t, role, "v1.34.2", quickStart()))
		assert.Equal(
			t,
			bootstrapv1.BootstrapTokenDiscovery{Token: testToken, APIServerEndpoint: testEndpoint, CACertHashes: hashes, UnsafeSkipCAVerification: &verify},
			join.Discovery.BootstrapToken,
		)
		assert.Equal(t, role == JoinControlPlane, join.ControlPlane != nil)
		assert.Nil(t, join.NodeRegistration.Taints)
	}
}

func TestDiscoveryOfTheManifestIsKept(t *testing.T) {
	spec, verify := quickStart(), false
	own := bootstrapv1.BootstrapTokenDiscovery{
		Token: "manual.0123456789012345", APIServerEndpoint: "other:443", CACertHashes: []string{"sha256:00"}, UnsafeSkipCAVerification: &verify,
	}
	spec.JoinConfiguration.Discovery.BootstrapToken = own
	m := machine(t, JoinWorker, "v1.34.2", spec)
	m.Token = ""
	assert.Equal(t, own, joinDocument(t, m).Discovery.BootstrapToken)
}

func TestDiscoveryFile(t *testing.T) {
	spec := quickStart()
	spec.JoinConfiguration.Discovery.File = bootstrapv1.FileDiscovery{
		KubeConfigPath: "/etc/kubernetes/discovery.conf",
		KubeConfig: bootstrapv1.FileDiscoveryKubeConfig{User: bootstrapv1.KubeConfigUser{
			Exec: bootstrapv1.KubeConfigAuthExec{Command: "get-token", Args: []string{"--x"}, Env: []bootstrapv1.KubeConfigAuthExecEnv{{Name: "A", Value: "b"}}},
		}},
	}
	m := machine(t, JoinControlPlane, "v1.34.2", spec)
	join := joinDocument(t, m)
	assert.Equal(t, "/etc/kubernetes/discovery.conf", join.Discovery.File.KubeConfigPath)
	assert.False(t, join.Discovery.BootstrapToken.IsDefined())
	golden(t, "discovery.conf", []byte(parse(t, render(t, m)).file(t, "/etc/kubernetes/discovery.conf")))

	// Without the field, the file is part of the manifest.
	m.Spec.JoinConfiguration.Discovery.File.KubeConfig = bootstrapv1.FileDiscoveryKubeConfig{}
	for _, f := range parse(t, render(t, m)).WriteFiles {
		assert.NotEqual(t, "/etc/kubernetes/discovery.conf", f.Path)
	}
}

func TestMachinesWaitForEachOther(t *testing.T) {
	timeouts := joinDocument(t, machine(t, JoinControlPlane, "v1.34.2", quickStart())).Timeouts
	assert.Equal(t, int32(1200), *timeouts.DiscoverySeconds)
	assert.Equal(t, int32(1200), *timeouts.TLSBootstrapSeconds)
	assert.Equal(t, int32(600), *timeouts.EtcdAPICallSeconds)
	assert.Nil(t, joinDocument(t, machine(t, JoinWorker, "v1.34.2", quickStart())).Timeouts.EtcdAPICallSeconds)

	old := string(render(t, machine(t, JoinWorker, "v1.30.14", quickStart())).Content)
	assert.Contains(t, old, "timeout: 20m0s")

	spec, own := quickStart(), int32(60)
	spec.JoinConfiguration.Timeouts = bootstrapv1.Timeouts{DiscoverySeconds: &own, TLSBootstrapSeconds: &own, EtcdAPICallSeconds: &own}
	timeouts = joinDocument(t, machine(t, JoinControlPlane, "v1.34.2", spec)).Timeouts
	assert.Equal(t, spec.JoinConfiguration.Timeouts, timeouts)
}

func TestHealthCheckTimeoutOldAndNew(t *testing.T) {
	spec, seconds := quickStart(), int32(300)
	spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = &seconds
	assert.Contains(t, string(render(t, machine(t, Init, "v1.30.14", spec)).Content), "timeoutForControlPlane: 5m0s")
	assert.Contains(t, string(render(t, machine(t, Init, "v1.34.2", spec)).Content), "controlPlaneComponentHealthCheck: 5m0s")
}
