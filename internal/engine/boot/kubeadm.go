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

// How long a machine waits for the others. All machines are launched at once,
// so a joining one may be up long before the first control plane answers.
// kubeadm would give up after five minutes (etcd: two).
const (
	// joinPatience covers the slowest start of a first control plane: a load
	// balancer that becomes active, image pulls, kubeadm init.
	joinPatience = 20 * time.Minute

	// etcdPatience covers the other control-plane machines' turns: etcd takes
	// one new member at a time, and kubeadm asks again until its own turn.
	etcdPatience = 10 * time.Minute
)

// localModeGate is the kubeadm feature gate that makes the kubelet of a
// control-plane machine talk to its own API server. Without it a 1.31 kubelet
// may talk to a 1.30 API server during an upgrade, which it cannot.
const localModeGate = "ControlPlaneKubeletLocalMode"

// tokenGroup is the group of who shows the bootstrap token, that of kubeadm and
// Cluster API.
const tokenGroup = "system:bootstrappers:kubeadm:default-node-token"

// kubeadmConfig returns the documents kubeadm reads. It fills in spec what
// Cluster API's controllers would fill in.
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

// clusterData is what kubeadm's ClusterConfiguration holds and Cluster API
// keeps in the Cluster and the Machine.
func (m Machine) clusterData(spec *bootstrapv1.KubeadmConfigSpec) *upstream.AdditionalData {
	network := m.Cluster.Spec.ClusterNetwork
	data := &upstream.AdditionalData{
		ClusterName:       &m.Cluster.Name,
		KubernetesVersion: &m.Version,
		// A field of ClusterConfiguration only in v1beta3.
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

// defaultLocalMode switches localModeGate on where it exists: from 1.31, and
// before 1.36, in which it is always on and kubeadm refuses the name.
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

// JoinsByToken reports whether the machine joins with the token that we make.
func (m Machine) JoinsByToken() bool { return m.Role != Init && ByToken(&m.Spec) }

// ByToken reports whether machines that join do so with the token that we make:
// the manifest may give another, or a file.
func ByToken(spec *bootstrapv1.KubeadmConfigSpec) bool {
	d := spec.JoinConfiguration.Discovery
	return d.BootstrapToken.Token == "" && d.File.KubeConfigPath == ""
}

// addToken makes kubeadm init create our token beside those of the manifest.
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
		return fmt.Errorf("a bootstrap token cannot live for %s", m.TokenTTL)
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
// Cluster API gives workers the taint node.cluster.x-k8s.io/uninitialized,
// which its Machine controller removes when it has copied labels to the Node.
// Here nothing runs after the cluster is up, nobody would remove it, and no pod
// would ever be scheduled: it is not added.
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
	defaultPatience(m.Role, &join.Timeouts)
	out, err := kubeadm.MarshalJoinConfigurationForVersion(join, version)
	if err != nil {
		return "", fmt.Errorf("joinConfiguration: %w", err)
	}
	return "---\n" + out, nil
}

// defaultPatience raises the timeouts that the manifest leaves open. In
// v1beta3 there is only discovery.timeout, which the types take from
// tlsBootstrapSeconds.
func defaultPatience(role Role, timeouts *bootstrapv1.Timeouts) {
	patience := int32(joinPatience / time.Second)
	if timeouts.DiscoverySeconds == nil {
		timeouts.DiscoverySeconds = &patience
	}
	if timeouts.TLSBootstrapSeconds == nil {
		timeouts.TLSBootstrapSeconds = &patience
	}
	if role == JoinControlPlane && timeouts.EtcdAPICallSeconds == nil {
		etcd := int32(etcdPatience / time.Second)
		timeouts.EtcdAPICallSeconds = &etcd
	}
}

// defaultDiscovery fills in how a joining machine finds the API server and
// trusts it. What the manifest says stays, as in Cluster API.
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

// defaultDiscoveryFile completes discovery.file.kubeConfig. Without that block
// the manifest brings the file itself.
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

// discoveryKubeconfig returns the file that discovery.file.kubeConfig
// describes: one cluster, user and context, all named default. It returns none
// when the block is not there.
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

// discoveryUser translates the user of discovery.file.kubeConfig.
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

// isTrue reads an optional boolean whose default is false.
func isTrue(b *bool) bool { return b != nil && *b }
