package boot

import (
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadm "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
)

// kubeadmVersions has versions with both kubeadm APIs.
func kubeadmVersions() []string {
	return []string{"v1.28.15", "v1.29.10", "v1.30.4", "v1.31.2", "v1.32.4", "v1.33.0", "v1.34.2"}
}

// configs returns configurations as in manifests.
func configs() map[string]func(*bootstrapv1.ClusterConfiguration) {
	args := func(pairs ...string) (out []bootstrapv1.Arg) {
		for _, p := range pairs {
			name, value, _ := strings.Cut(p, "=")
			out = append(out, bootstrapv1.Arg{Name: name, Value: &value})
		}
		return out
	}
	no, yes := false, true
	volume := bootstrapv1.HostPathMount{Name: "audit", HostPath: "/var/log/k", MountPath: "/var/log/k"}
	read, written := volume, volume
	read.ReadOnly, written.ReadOnly = &yes, &no
	return map[string]func(*bootstrapv1.ClusterConfiguration){
		"nothing": func(*bootstrapv1.ClusterConfiguration) {},
		"args":    func(c *bootstrapv1.ClusterConfiguration) { c.APIServer.ExtraArgs = args("v=2", "audit-log-path=/a") },
		"args of three": func(c *bootstrapv1.ClusterConfiguration) {
			c.Scheduler.ExtraArgs = args("v=2", "profiling=false")
			c.ControllerManager.ExtraArgs = args("z=1", "cloud-provider=external")
			c.Etcd.Local.ExtraArgs = args("quota=1", "auto=2")
		},
		"webhook": func(c *bootstrapv1.ClusterConfiguration) {
			c.APIServer.ExtraArgs = args("authorization-mode=Node,RBAC,Webhook")
		},
		"volumes": func(c *bootstrapv1.ClusterConfiguration) {
			c.APIServer.ExtraVolumes = []bootstrapv1.HostPathMount{volume}
			c.ControllerManager.ExtraVolumes, c.Scheduler.ExtraVolumes = c.APIServer.ExtraVolumes, c.APIServer.ExtraVolumes
		},
		"volumes written": func(c *bootstrapv1.ClusterConfiguration) {
			c.APIServer.ExtraVolumes = []bootstrapv1.HostPathMount{written}
		},
		"volumes read only": func(c *bootstrapv1.ClusterConfiguration) {
			c.APIServer.ExtraVolumes = []bootstrapv1.HostPathMount{read}
		},
		"algorithm": func(c *bootstrapv1.ClusterConfiguration) {
			c.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256
		},
		"days":           func(c *bootstrapv1.ClusterConfiguration) { c.CertificateValidityPeriodDays = 200 },
		"days of the CA": func(c *bootstrapv1.ClusterConfiguration) { c.CACertificateValidityPeriodDays = 2000 },
		"environment": func(c *bootstrapv1.ClusterConfiguration) {
			env := []bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: "HTTP_PROXY", Value: "x"}}}
			c.APIServer.ExtraEnvs, c.ControllerManager.ExtraEnvs = &env, &[]bootstrapv1.EnvVar{}
		},
		"names":      func(c *bootstrapv1.ClusterConfiguration) { c.APIServer.CertSANs = []string{"z.example", "a.example"} },
		"gates":      func(c *bootstrapv1.ClusterConfiguration) { c.FeatureGates = map[string]bool{"EtcdLearnerMode": true} },
		"repository": func(c *bootstrapv1.ClusterConfiguration) { c.ImageRepository = "mirror.example/k8s" },
		"etcd":       func(c *bootstrapv1.ClusterConfiguration) { c.Etcd.Local.ImageTag = "3.5.10-0" },
		"external etcd": func(c *bootstrapv1.ClusterConfiguration) {
			c.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://b", "https://a"}, CAFile: "/ca", CertFile: "/crt", KeyFile: "/key"}
		},
	}
}

// lacking lists the fields that kubeadm's API before 1.31 does not have, or that do not
// change the configuration.
func lacking(version string) []string {
	if semver.MustParse(version[1:]).Minor < 31 {
		return []string{"nothing", "algorithm", "days", "days of the CA", "environment"}
	}
	return []string{"nothing"}
}

// initialized returns the configuration that kubeadm init stores.
func initialized(t *testing.T, c bootstrapv1.ClusterConfiguration, version string) *ClusterConfig {
	t.Helper()
	v := semver.MustParse(version[1:])
	copied := c.DeepCopy()
	defaultLocalMode(v, copied)
	text, err := kubeadm.MarshalClusterConfigurationForVersion(copied, v, machine(t, Init, version, quickStart()).clusterData(&bootstrapv1.KubeadmConfigSpec{}))
	require.NoError(t, err)
	parsed, err := ParseClusterConfig(text)
	require.NoError(t, err)
	return parsed
}

// For all versions, the result of kubeadm init does not differ from the manifest, and
// neither does the result of an upgrade.
func TestConfigOfTheManifestDoesNotDiffer(t *testing.T) {
	for _, version := range kubeadmVersions() {
		for name, set := range configs() {
			var want bootstrapv1.ClusterConfiguration
			set(&want)
			have := initialized(t, want, version)
			assert.Empty(t, have.Differs(want, version), "%s of %s", name, version)
			for _, target := range kubeadmVersions() {
				text, err := have.Upgraded(want, target)
				require.NoError(t, err)
				after, err := ParseClusterConfig(text)
				require.NoError(t, err)
				assert.Equal(t, target, after.Version)
				assert.Empty(t, after.Differs(want, target), "%s from %s to %s", name, version, target)
			}
		}
	}
}

// Every change in the manifest is detected if the kubeadm version has the field, as is
// the removal of a field. Upgraded applies both.
func TestConfigDiffers(t *testing.T) {
	for _, version := range kubeadmVersions() {
		for name, set := range configs() {
			if name == "external etcd" {
				continue // never changed in a running cluster
			}
			var one, other bootstrapv1.ClusterConfiguration
			set(&other)
			for from, to := range map[*bootstrapv1.ClusterConfiguration]*bootstrapv1.ClusterConfiguration{&one: &other, &other: &one} {
				have := initialized(t, *from, version)
				differs := have.Differs(*to, version)
				if has := !slices.Contains(lacking(version), name); has {
					assert.NotEmpty(t, differs, "%s of %s", name, version)
				} else {
					assert.Empty(t, differs, "%s of %s", name, version)
				}
				text, err := have.Upgraded(*to, version)
				require.NoError(t, err)
				after, err := ParseClusterConfig(text)
				require.NoError(t, err)
				assert.Empty(t, after.Differs(*to, version), "%s of %s, mended", name, version)
			}
		}
	}
}

// kubeadm's defaults are not a difference.
func TestConfigCompletedByKubeadm(t *testing.T) {
	old, err := ParseClusterConfig(`
apiServer: {extraArgs: {authorization-mode: "Node,RBAC"}, timeoutForControlPlane: 4m0s}
apiVersion: kubeadm.k8s.io/v1beta3
certificatesDir: /etc/kubernetes/pki
clusterName: demo
controllerManager: {}
dns: {}
etcd: {local: {dataDir: /var/lib/etcd}}
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.30.4
networking: {dnsDomain: cluster.local, serviceSubnet: 10.96.0.0/12}
scheduler: {}
`)
	require.NoError(t, err)
	assert.Empty(t, old.Differs(bootstrapv1.ClusterConfiguration{}, "v1.30.4"))
	now, err := ParseClusterConfig(`
apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: demo
controllerManager: {}
dns: {}
encryptionAlgorithm: RSA-2048
etcd: {local: {dataDir: /var/lib/etcd}}
featureGates: {ControlPlaneKubeletLocalMode: true}
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.34.2
networking: {dnsDomain: cluster.local, serviceSubnet: 10.96.0.0/12}
proxy: {}
scheduler: {}
`)
	require.NoError(t, err)
	assert.Empty(t, now.Differs(bootstrapv1.ClusterConfiguration{}, "v1.34.2"))
	assert.Equal(t, []string{"ClusterConfiguration"}, now.Differs(bootstrapv1.ClusterConfiguration{}, "latest"))
}
