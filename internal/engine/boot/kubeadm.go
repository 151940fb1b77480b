package boot

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/blang/semver/v4"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadm "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"
	"sigs.k8s.io/yaml"
)

// How long a machine waits for others. All machines are launched at the same time, so a
// joining machine may be up long before the first control-plane machine answers.
// kubeadm's defaults are five minutes, and two for etcd.
const (
	// joinTimeout covers the slowest start of a first control-plane machine: a load
	// balancer that becomes active, image pulls, kubeadm init.
	joinTimeout = 20 * time.Minute

	// etcdTimeout covers the joins of the other control-plane machines: etcd accepts one
	// new member at a time, and kubeadm retries.
	etcdTimeout = 10 * time.Minute
)

// localModeGate is the kubeadm feature gate that makes the kubelet of a control-plane
// machine use the local API server. Without it, during an upgrade, a 1.31 kubelet may use
// a 1.30 API server, which the version skew policy forbids.
const localModeGate = "ControlPlaneKubeletLocalMode"

// tokenGroup is the group of machines with a bootstrap token, as in kubeadm and Cluster
// API.
const tokenGroup = "system:bootstrappers:kubeadm:default-node-token"

// kubeadmConfig returns the documents for kubeadm. It sets the fields of spec that
// Cluster API's controllers would set.
func (m Machine) kubeadmConfig(version semver.Version, spec *bootstrapv1.KubeadmConfigSpec) (string, error) {
	if m.Role == Init {
		return m.initConfig(version, spec)
	}
	return m.joinConfig(version, spec)
}

// initConfig returns ClusterConfiguration and InitConfiguration.
func (m Machine) initConfig(version semver.Version, spec *bootstrapv1.KubeadmConfigSpec) (string, error) {
	defaultLocalMode(version, &spec.ClusterConfiguration)
	if spec.ClusterConfiguration.ControlPlaneEndpoint == "" {
		spec.ClusterConfiguration.ControlPlaneEndpoint = m.Endpoint
	}
	if err := m.addToken(&spec.InitConfiguration); err != nil {
		return "", err
	}
	cluster, err := kubeadm.MarshalClusterConfigurationForVersion(&spec.ClusterConfiguration, version, m.clusterData(spec))
	if err != nil {
		return "", fmt.Errorf("clusterConfiguration: %w", err)
	}
	first, err := kubeadm.MarshalInitConfigurationForVersion(&spec.InitConfiguration, version)
	if err != nil {
		return "", fmt.Errorf("initConfiguration: %w", err)
	}
	return "---\n" + cluster + "---\n" + first, nil
}

// clusterData returns the fields of kubeadm's ClusterConfiguration that Cluster API
// stores in the Cluster and the Machine.
func (m Machine) clusterData(spec *bootstrapv1.KubeadmConfigSpec) *upstream.AdditionalData {
	network := m.Cluster.Spec.ClusterNetwork
	data := &upstream.AdditionalData{
		ClusterName:       &m.Cluster.Name,
		KubernetesVersion: &m.Version,
		// In v1beta3 only, this is a field of ClusterConfiguration.
		ControlPlaneComponentHealthCheckSeconds: spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds,
	}
	if network.ServiceDomain != "" {
		data.DNSDomain = &network.ServiceDomain
	}
	if len(network.Services.CIDRBlocks) > 0 {
		services := network.Services.String()
		data.ServiceSubnet = &services
	}
	if len(network.Pods.CIDRBlocks) > 0 {
		pods := network.Pods.String()
		data.PodSubnet = &pods
	}
	return data
}

// defaultLocalMode enables localModeGate in the versions that have it: from 1.31 to 1.35.
// From 1.36 on it is always enabled, and kubeadm rejects the name.
func defaultLocalMode(version semver.Version, config *bootstrapv1.ClusterConfiguration) {
	if version.Major != 1 || version.Minor < 31 || version.Minor >= 36 {
		return
	}
	if _, set := config.FeatureGates[localModeGate]; set {
		return
	}
	if config.FeatureGates == nil {
		config.FeatureGates = map[string]bool{}
	}
	config.FeatureGates[localModeGate] = true
}

// JoinsByToken reports whether the machine joins with the token that this program
// creates.
func (m Machine) JoinsByToken() bool { return m.Role != Init && ByToken(&m.Spec) }

// ByToken reports whether joining machines use the token that this program creates. The
// manifest may set another token, or a file.
func ByToken(spec *bootstrapv1.KubeadmConfigSpec) bool {
	d := spec.JoinConfiguration.Discovery
	return d.BootstrapToken.Token == "" && d.File.KubeConfigPath == ""
}

// addToken makes kubeadm init create the token, in addition to those of the manifest.
func (m Machine) addToken(config *bootstrapv1.InitConfiguration) error {
	if m.Token == "" {
		return nil
	}
	id, secret, err := splitToken(m.Token)
	if err != nil {
		return err
	}
	seconds := m.TokenTTL / time.Second
	if seconds < 0 || seconds > math.MaxInt32 {
		return fmt.Errorf("%s is not a valid lifetime of a bootstrap token", m.TokenTTL)
	}
	ttl := int32(seconds)
	config.BootstrapTokens = append(config.BootstrapTokens, bootstrapv1.BootstrapToken{
		Token:       bootstrapv1.BootstrapTokenString{ID: id, Secret: secret},
		Description: TokenDescription,
		TTLSeconds:  &ttl,
		Usages:      []string{"signing", "authentication"},
		Groups:      []string{tokenGroup},
	})
	return nil
}

// joinConfig returns JoinConfiguration.
//
// Cluster API gives workers the taint node.cluster.x-k8s.io/uninitialized, and its
// Machine controller removes it after it has copied labels to the Node. Without a
// controller, nothing would remove the taint and no pod would be scheduled, so it is not
// set.
func (m Machine) joinConfig(version semver.Version, spec *bootstrapv1.KubeadmConfigSpec) (string, error) {
	join := &spec.JoinConfiguration
	switch {
	case m.Role == JoinControlPlane && join.ControlPlane == nil:
		join.ControlPlane = &bootstrapv1.JoinControlPlane{}
	case m.Role == JoinWorker && join.ControlPlane != nil:
		return "", errors.New("joinConfiguration.controlPlane is set, but the machine is a worker")
	}
	if err := m.defaultDiscovery(&join.Discovery); err != nil {
		return "", err
	}
	defaultTimeouts(m.Role, &join.Timeouts)
	out, err := kubeadm.MarshalJoinConfigurationForVersion(join, version)
	if err != nil {
		return "", fmt.Errorf("joinConfiguration: %w", err)
	}
	return "---\n" + out, nil
}

// defaultTimeouts raises the timeouts that the manifest does not set. v1beta3 has only
// discovery.timeout, which is the field tlsBootstrapSeconds of the types.
func defaultTimeouts(role Role, timeouts *bootstrapv1.Timeouts) {
	patience := int32(joinTimeout / time.Second)
	if timeouts.DiscoverySeconds == nil {
		timeouts.DiscoverySeconds = &patience
	}
	if timeouts.TLSBootstrapSeconds == nil {
		timeouts.TLSBootstrapSeconds = &patience
	}
	if role == JoinControlPlane && timeouts.EtcdAPICallSeconds == nil {
		etcd := int32(etcdTimeout / time.Second)
		timeouts.EtcdAPICallSeconds = &etcd
	}
}

// defaultDiscovery sets how a joining machine finds and trusts the API server. As in
// Cluster API, values of the manifest are kept.
func (m Machine) defaultDiscovery(discovery *bootstrapv1.Discovery) error {
	if discovery.File.IsDefined() {
		m.defaultDiscoveryFile(&discovery.File.KubeConfig)
		return nil
	}
	bootstrap := &discovery.BootstrapToken
	if len(bootstrap.CACertHashes) == 0 {
		hashes, err := m.PKI.CAHashes()
		if err != nil {
			return err
		}
		bootstrap.CACertHashes = hashes
	}
	if bootstrap.APIServerEndpoint == "" {
		bootstrap.APIServerEndpoint = m.Endpoint
	}
	if bootstrap.Token != "" {
		return nil
	}
	if _, _, err := splitToken(m.Token); err != nil {
		return err
	}
	bootstrap.Token = m.Token
	return nil
}

// defaultDiscoveryFile completes discovery.file.kubeConfig. Without that field, the file
// is part of the manifest.
func (m Machine) defaultDiscoveryFile(config *bootstrapv1.FileDiscoveryKubeConfig) {
	if !config.IsDefined() {
		return
	}
	if config.Cluster.Server == "" {
		config.Cluster.Server = "https://" + m.Endpoint
	}
	if len(config.Cluster.CertificateAuthorityData) == 0 {
		config.Cluster.CertificateAuthorityData = m.PKI.CA.Cert
	}
}

// discoveryKubeconfig returns the file that discovery.file.kubeConfig describes: one
// cluster, user and context, all with the name "default". Without the field it returns no
// file.
func discoveryKubeconfig(discovery bootstrapv1.FileDiscovery) ([]bootstrapv1.File, error) {
	config := discovery.KubeConfig
	if !config.IsDefined() {
		return nil, nil
	}
	const name = "default"
	out, err := yaml.Marshal(clientcmdv1.Config{
		CurrentContext: name,
		Contexts:       []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: name}}},
		Clusters: []clientcmdv1.NamedCluster{{Name: name, Cluster: clientcmdv1.Cluster{
			Server:                   config.Cluster.Server,
			TLSServerName:            config.Cluster.TLSServerName,
			InsecureSkipTLSVerify:    isTrue(config.Cluster.InsecureSkipTLSVerify),
			CertificateAuthorityData: config.Cluster.CertificateAuthorityData,
			ProxyURL:                 config.Cluster.ProxyURL,
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: discoveryUser(config.User)}},
	})
	if err != nil {
		return nil, fmt.Errorf("joinConfiguration.discovery.file.kubeConfig: %w", err)
	}
	return []bootstrapv1.File{{
		Path:        discovery.KubeConfigPath,
		Owner:       "root:root",
		Permissions: "0640",
		Content:     string(out),
	}}, nil
}

// discoveryUser converts the user of discovery.file.kubeConfig.
func discoveryUser(user bootstrapv1.KubeConfigUser) clientcmdv1.AuthInfo {
	var out clientcmdv1.AuthInfo
	if user.AuthProvider.IsDefined() {
		out.AuthProvider = &clientcmdv1.AuthProviderConfig{Name: user.AuthProvider.Name, Config: user.AuthProvider.Config}
	}
	if !user.Exec.IsDefined() {
		return out
	}
	out.Exec = &clientcmdv1.ExecConfig{
		Command:            user.Exec.Command,
		Args:               user.Exec.Args,
		APIVersion:         user.Exec.APIVersion,
		ProvideClusterInfo: isTrue(user.Exec.ProvideClusterInfo),
		InteractiveMode:    clientcmdv1.NeverExecInteractiveMode,
	}
	if out.Exec.APIVersion == "" {
		out.Exec.APIVersion = "client.authentication.k8s.io/v1"
	}
	for _, env := range user.Exec.Env {
		out.Exec.Env = append(out.Exec.Env, clientcmdv1.ExecEnvVar{Name: env.Name, Value: env.Value})
	}
	return out
}

// isTrue returns an optional boolean whose default is false.
func isTrue(b *bool) bool { return b != nil && *b }
