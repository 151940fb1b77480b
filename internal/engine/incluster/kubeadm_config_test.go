package incluster_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// For a version that kubeadm cannot upgrade to, the error says what to do instead.
func TestVersionsThatKubeadmDoesNotGoTo(t *testing.T) {
	config, err := boot.ParseClusterConfig("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.2\n")
	require.NoError(t, err)
	for to, want := range map[string]string{
		"v1.34.1": "never downgraded: set spec.version back to v1.34.2",
		"v1.33.9": "never downgraded: set spec.version back to v1.34.2",
		"v1.36.0": "one minor version at a time: the next one is v1.35",
	} {
		d := (&incluster.KubeadmConfig{Version: to}).Diff(&incluster.KubeadmConfigState{Config: config})
		require.NotEmpty(t, d, to)
		require.Contains(t, d[0].Advice, want, to)
	}
}

// Keys and etcd stay where kubeadm init has put them, as Cluster API's webhook requires.
func TestFieldsThatStayAsKubeadmInitHasSetThem(t *testing.T) {
	config, err := boot.ParseClusterConfig("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.2\n" +
		"caCertificateValidityPeriod: 87600h0m0s\ncertificatesDir: /etc/kubernetes/pki\netcd:\n  local:\n    dataDir: /var/lib/etcd\n")
	require.NoError(t, err)
	external := bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{Endpoints: []string{"https://10.0.0.5:2379"}}}
	for name, c := range map[string]struct {
		spec  bootstrapv1.ClusterConfiguration
		field string // that cannot be changed; "" for none
	}{
		"as by default": {bootstrapv1.ClusterConfiguration{CertificatesDir: "/etc/kubernetes/pki"}, ""},
		"another place for data, which new machines use": {bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{DataDir: "/data"}}}, ""},
		"another folder of certificates":                 {bootstrapv1.ClusterConfiguration{CertificatesDir: "/etc/pki"}, "certificatesDir"},
		"authorities of another age":                     {bootstrapv1.ClusterConfiguration{CACertificateValidityPeriodDays: 7300}, "caCertificateValidityPeriodDays"},
		"etcd elsewhere":                                 {bootstrapv1.ClusterConfiguration{Etcd: external}, "etcd"},
	} {
		var fixed []string
		for _, change := range (&incluster.KubeadmConfig{Version: "v1.34.2", Spec: c.spec}).Diff(&incluster.KubeadmConfigState{Config: config}) {
			if change.Remedy == plan.Replace {
				fixed = append(fixed, change.Field)
				require.Contains(t, change.Advice, "set "+c.field+" of clusterConfiguration back", name)
			}
		}
		require.Equal(t, slices.DeleteFunc([]string{c.field}, func(f string) bool { return f == "" }), append([]string{}, fixed...), name)
	}
}
