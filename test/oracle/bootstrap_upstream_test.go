package oracle

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/reconcilers/kubeadmconfig"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/desiredstate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

const (
	token = "abcdef.0123456789abcdef"
	host  = "prod-apiserver.elb.us-east-1.amazonaws.com"
)

// fixedPKI is the PKI in the testdata of package boot.
func fixedPKI(t *testing.T) *boot.PKI {
	t.Helper()
	files, err := filepath.Glob("../../internal/engine/boot/testdata/pki/*")
	require.NoError(t, err)
	entries := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		entries[filepath.Base(file)] = content
	}
	p, err := boot.ParsePKI(entries)
	require.NoError(t, err)
	return p
}

// secretData is the data that contentFrom and passwdFrom refer to.
func secretData() map[string][]byte {
	return map[string][]byte{"motd": []byte("from a secret\n"), "password": []byte("$6$rounds=4096$hash")}
}

// machine returns a machine of a cluster "prod".
func machine(t *testing.T, role boot.Role, version string, spec bootstrapv1.KubeadmConfigSpec) boot.Machine {
	t.Helper()
	return boot.Machine{
		Role:    role,
		Version: version,
		Cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: metav1.NamespaceDefault},
			Spec: clusterv1.ClusterSpec{
				ClusterNetwork: clusterv1.ClusterNetwork{
					Pods:          clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16"}},
					Services:      clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/12", "fd00::/108"}},
					ServiceDomain: "k8s.example",
				},
				ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: host, Port: 6443},
			},
		},
		Spec:     spec,
		Endpoint: host + ":6443",
		PKI:      fixedPKI(t),
		Token:    token,
		TokenTTL: time.Hour,
		Secret:   func(_, key string) ([]byte, error) { return secretData()[key], nil },
	}
}

// alwaysLocked gives every machine the init lock.
type alwaysLocked struct{}

func (alwaysLocked) Lock(context.Context, *clusterv1.Cluster, *clusterv1.Machine) bool { return true }

func (alwaysLocked) Unlock(context.Context, *clusterv1.Cluster) bool { return true }

// upstream returns the result of Cluster API's controllers for a machine: the control
// plane's KubeadmConfig, then the bootstrap provider's reconciler with an API server that
// only stores objects.
func upstream(t *testing.T, m boot.Machine) []byte {
	t.Helper()
	cluster := m.Cluster.DeepCopy()
	provisioned := true
	cluster.Status.Initialization.InfrastructureProvisioned = &provisioned
	if m.Role != boot.Init {
		cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Test"}}
	}
	labels := map[string]string{clusterv1.ClusterNameLabel: cluster.Name}
	if m.Role != boot.JoinWorker {
		labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	owner := &clusterv1.Machine{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: cluster.Namespace, Labels: labels, UID: "1"},
		Spec:       clusterv1.MachineSpec{ClusterName: cluster.Name, Version: m.Version},
	}
	config := kubeadmConfig(t, m)
	config.OwnerReferences = []metav1.OwnerReference{{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}}
	// With a token, it does not request one from the workload cluster.
	config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = m.Token

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	objects := append(pkiSecrets(m), cluster, owner, config,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "extra", Namespace: cluster.Namespace}, Data: secretData()})
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(cluster, owner, config).Build()
	reconciler := &kubeadmconfig.Reconciler{Client: api, SecretCachingClient: api, APIReader: api, KubeadmInitLock: alwaysLocked{}, TokenTTL: time.Hour}
	// The first call only records that the object is not paused.
	for range 2 {
		_, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
		require.NoError(t, err)
	}
	var data corev1.Secret
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(config), &data))
	return data.Data["value"]
}

// kubeadmConfig is the object that the control plane's controller or a MachineSet would
// create.
func kubeadmConfig(t *testing.T, m boot.Machine) *bootstrapv1.KubeadmConfig {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "m", Namespace: m.Cluster.Namespace}
	if m.Role == boot.JoinWorker {
		return &bootstrapv1.KubeadmConfig{ObjectMeta: meta, Spec: *m.Spec.DeepCopy()}
	}
	kcp := &controlplanev1.KubeadmControlPlane{
		ObjectMeta: meta,
		Spec:       controlplanev1.KubeadmControlPlaneSpec{Version: m.Version, KubeadmConfigSpec: *m.Spec.DeepCopy()},
	}
	config, err := desiredstate.ComputeDesiredKubeadmConfig(kcp, m.Cluster, m.Role == boot.JoinControlPlane, "m", nil)
	require.NoError(t, err)
	return config
}

// pkiSecrets are the Secrets in which Cluster API stores the PKI.
func pkiSecrets(m boot.Machine) []client.Object {
	var out []client.Object
	for purpose, pair := range map[string]boot.KeyPair{"ca": m.PKI.CA, "etcd": m.PKI.Etcd, "proxy": m.PKI.FrontProxy, "sa": m.PKI.ServiceAccount} {
		out = append(out, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: m.Cluster.Name + "-" + purpose, Namespace: m.Cluster.Namespace},
			Data:       map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key},
		})
	}
	return out
}
