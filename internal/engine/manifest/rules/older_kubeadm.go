package rules

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// newerConfiguration is the first minor version of Kubernetes whose kubeadm reads v1beta4. For older ones, Cluster API writes
// v1beta3, and leaves out what it does not have (bootstrap/kubeadm/pkg/types/upstreamv1beta3/conversion.go).
const newerConfiguration = 31

// warnOlderKubeadm warns of settings that the kubeadm of an older Kubernetes does not have.
func (c *checks) warnOlderKubeadm(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, v kubernetesVersion) {
	if v.minor == 0 || v.minor >= newerConfiguration {
		return
	}
	config, init, join := &spec.ClusterConfiguration, &spec.InitConfiguration, &spec.JoinConfiguration
	for _, x := range []struct {
		path string
		set  bool
	}{
		{".clusterConfiguration.encryptionAlgorithm", config.EncryptionAlgorithm != ""},
		{".clusterConfiguration.certificateValidityPeriodDays", config.CertificateValidityPeriodDays != 0},
		{".clusterConfiguration.caCertificateValidityPeriodDays", config.CACertificateValidityPeriodDays != 0},
		{".clusterConfiguration.apiServer.extraEnvs", config.APIServer.ExtraEnvs != nil},
		{".clusterConfiguration.controllerManager.extraEnvs", config.ControllerManager.ExtraEnvs != nil},
		{".clusterConfiguration.scheduler.extraEnvs", config.Scheduler.ExtraEnvs != nil},
		{".clusterConfiguration.etcd.local.extraEnvs", config.Etcd.Local.ExtraEnvs != nil},
		{".initConfiguration.nodeRegistration.imagePullSerial", init.NodeRegistration.ImagePullSerial != nil},
		{".joinConfiguration.nodeRegistration.imagePullSerial", join.NodeRegistration.ImagePullSerial != nil},
	} {
		if x.set {
			const fix = "remove it, or use a newer version"
			c.warn(o.Problem(prefix+x.path, "has no effect: kubeadm of "+v.text+" does not have it, and that of Kubernetes 1.31 has", fix))
		}
	}
}
