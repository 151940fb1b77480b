package run_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// The keys of RSA do not fit into the user data of Ignition, which is not compressed: the plan says so, although the keys do not exist yet. Those of
// ECDSA do.
func TestIgnitionTooLarge(t *testing.T) {
	for algorithm, want := range map[string]string{"": "larger than the 16384 that EC2 allows", "RSA-4096": "larger than the 16384 that EC2 allows", "ECDSA-P256": ""} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Load(t, "flatcar.yaml", nil)
			m.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.EncryptionAlgorithm = bootstrapv1.EncryptionAlgorithmType(algorithm)
			m.ControlPlane.Template.Spec.Template.Spec.Ignition = &infrav1.Ignition{StorageType: infrav1.IgnitionStorageTypeOptionUnencryptedUserData, Version: "2.3"}
			a := enginetest.Account(m, enginetest.Lag)
			if want == "" {
				enginetest.MustApply(t, m, a)
				return
			}
			require.Contains(t, enginetest.Refused(t, m, a), want)
			require.Empty(t, a.Inventory())
		})
	}
}
