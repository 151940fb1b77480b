package boot_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// rich sets fields that kubeadm stores in a different form than manifests, or not at all.
func rich(m *manifest.Cluster) *manifest.Cluster {
	disabled, path := "true", "/var/log/audit.log"
	c := &m.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration
	c.APIServer.ExtraArgs = []bootstrapv1.Arg{{Name: "anonymous-auth", Value: &disabled}, {Name: "audit-log-path", Value: &path}}
	c.APIServer.ExtraVolumes = []bootstrapv1.HostPathMount{{Name: "audit", HostPath: "/var/log/k", MountPath: "/var/log/k"}}
	c.APIServer.ExtraEnvs = &[]bootstrapv1.EnvVar{{EnvVar: corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy"}}}
	c.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmECDSAP256
	c.CertificateValidityPeriodDays, c.CACertificateValidityPeriodDays = 200, 2000
	return m
}

// A cluster whose manifest sets many fields is created and upgraded, from an old version
// of kubeadm's API to a new one, and has no differences afterwards.
func TestRichConfiguration(t *testing.T) {
	for _, v := range []string{"v1.30.0", "v1.32.4"} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := enginetest.Alive(t, rich(enginetest.Version(enginetest.Sized(t, 1, 1), v)))
				require.Less(t, time.Since(began), 10*time.Minute)
				enginetest.RequireDone(t, rich(enginetest.Version(enginetest.Sized(t, 1, 1), v)), a)
				for _, next := range map[string][]string{"v1.30.0": {"v1.31.0"}, "v1.32.4": {"v1.33.0"}}[v] {
					enginetest.MustRoll(t, rich(enginetest.Version(enginetest.Sized(t, 1, 1), next)), a)
					enginetest.RequireDone(t, rich(enginetest.Version(enginetest.Sized(t, 1, 1), next)), a)
				}
			})
		})
	}
}

// A field that is removed from the manifest is removed from the configuration for joining machines. The validity period of the CA certificates
// stays, because Cluster API's webhook does not permit a change of it.
func TestConfigurationOfNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := rich(enginetest.Sized(t, 1, 1))
		a := enginetest.Alive(t, before)
		_, err := enginetest.Rolling(enginetest.Sized(t, 1, 1), a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, "set caCertificateValidityPeriodDays of clusterConfiguration back")
		before.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.CACertificateValidityPeriodDays = 0
		a = enginetest.Alive(t, before)
		p, err := enginetest.Rolling(enginetest.Sized(t, 1, 1), a.Process()).Plan(t.Context())
		require.NoError(t, err)
		require.Contains(t, enginetest.Done(p), "update kubeadm-config")
	})
}
