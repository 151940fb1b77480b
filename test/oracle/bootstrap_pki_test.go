package oracle

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/cluster-api/util/secret"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

// shape has the properties that two certificates with different keys must share.
func shape(t *testing.T, content []byte) map[string]any {
	t.Helper()
	block, _ := pem.Decode(content)
	require.NotNil(t, block)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	var extensions []string
	for _, e := range c.Extensions {
		extensions = append(extensions, e.Id.String())
	}
	return map[string]any{
		"subject": c.Subject.String(), "issuer": c.Issuer.String(), "usage": c.KeyUsage, "extended": c.ExtKeyUsage, "ca": c.IsCA,
		"path": c.MaxPathLen, "zero": c.MaxPathLenZero, "extensions": extensions, "algorithm": c.SignatureAlgorithm.String(),
		"days": c.NotAfter.Sub(c.NotBefore).Round(time.Minute).String(),
	}
}

func TestPKI(t *testing.T) {
	for _, algorithm := range []bootstrapv1.EncryptionAlgorithmType{"", bootstrapv1.EncryptionAlgorithmECDSAP384} {
		theirs := secret.NewCertificatesForInitialControlPlane(
			&bootstrapv1.ClusterConfiguration{EncryptionAlgorithm: algorithm, CACertificateValidityPeriodDays: 100},
		)
		require.NoError(t, theirs.Generate())
		ours, err := boot.NewPKI(string(algorithm), 100, time.Now())
		require.NoError(t, err)
		for purpose, pair := range map[secret.Purpose]boot.KeyPair{secret.ClusterCA: ours.CA, secret.EtcdCA: ours.Etcd, secret.FrontProxyCA: ours.FrontProxy} {
			assert.Equal(t, shape(t, theirs.GetByPurpose(purpose).KeyPair.Cert), shape(t, pair.Cert), purpose)
		}
		for _, pair := range [][2][]byte{
			{theirs.GetByPurpose(secret.ServiceAccount).KeyPair.Cert, ours.ServiceAccount.Cert},
			{theirs.GetByPurpose(secret.ServiceAccount).KeyPair.Key, ours.ServiceAccount.Key},
			{theirs.GetByPurpose(secret.ClusterCA).KeyPair.Key, ours.CA.Key},
		} {
			want, _ := pem.Decode(pair[0])
			got, _ := pem.Decode(pair[1])
			assert.Equal(t, want.Type, got.Type)
		}

		want, err := theirs.GetByPurpose(secret.ClusterCA).Hashes()
		require.NoError(t, err)
		adopted := &boot.PKI{CA: boot.KeyPair{Cert: theirs.GetByPurpose(secret.ClusterCA).KeyPair.Cert}}
		got, err := adopted.CAHashes()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

func TestKubeconfig(t *testing.T) {
	pki := fixedPKI(t)
	ca, err := certs.DecodeCertPEM(pki.CA.Cert)
	require.NoError(t, err)
	key, err := certs.DecodePrivateKeyPEM(pki.CA.Key)
	require.NoError(t, err)
	theirs, err := kubeconfig.New("prod", "https://"+host+":6443", ca, key, kubeconfig.KeyEncryptionAlgorithm(bootstrapv1.EncryptionAlgorithmECDSAP256))
	require.NoError(t, err)
	content, err := boot.Kubeconfig("prod", host+":6443", pki, time.Now())
	require.NoError(t, err)
	ours, err := clientcmd.Load(content)
	require.NoError(t, err)

	want, got := theirs.AuthInfos["prod-admin"], ours.AuthInfos["prod-admin"]
	require.NotNil(t, got)
	assert.Equal(t, shape(t, want.ClientCertificateData), shape(t, got.ClientCertificateData))
	assert.Equal(t, theirs.CurrentContext, ours.CurrentContext)
	assert.Equal(t, theirs.Contexts[theirs.CurrentContext].AuthInfo, ours.Contexts[ours.CurrentContext].AuthInfo)
	assert.Equal(t, theirs.Clusters["prod"].Server, ours.Clusters["prod"].Server)
	assert.Equal(t, theirs.Clusters["prod"].CertificateAuthorityData, ours.Clusters["prod"].CertificateAuthorityData)
}
