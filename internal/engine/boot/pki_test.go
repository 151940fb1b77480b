package boot

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func testNow() time.Time { return time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC) }

func certificate(t *testing.T, content []byte) *x509.Certificate {
	t.Helper()
	certificates, err := parseCerts(content)
	require.NoError(t, err)
	require.Len(t, certificates, 1)
	return certificates[0]
}

func TestNewPKI(t *testing.T) {
	p, err := NewPKI("", 0, testNow())
	require.NoError(t, err)
	for name, ca := range map[string]KeyPair{"ca": p.CA, "etcd": p.Etcd, "front-proxy": p.FrontProxy} {
		c := certificate(t, ca.Cert)
		assert.Equal(t, "CN=kubernetes", c.Subject.String(), name)
		assert.Zero(t, c.SerialNumber.Sign(), name)
		assert.Equal(t, testNow().Add(-5*time.Minute), c.NotBefore, name)
		assert.Equal(t, testNow().AddDate(0, 0, 3650), c.NotAfter, name)
		assert.Equal(t, x509.KeyUsageKeyEncipherment|x509.KeyUsageDigitalSignature|x509.KeyUsageCertSign, c.KeyUsage, name)
		assert.True(t, c.IsCA && c.BasicConstraintsValid && c.MaxPathLenZero, name)
		assert.Zero(t, c.MaxPathLen, name)
		require.NoError(t, c.CheckSignatureFrom(c), name)
		public, ok := c.PublicKey.(*rsa.PublicKey)
		require.True(t, ok, name)
		assert.Equal(t, 2048, public.N.BitLen(), name)
		block, _ := pem.Decode(ca.Key)
		assert.Equal(t, "RSA PRIVATE KEY", block.Type, name)
	}
	block, _ := pem.Decode(p.ServiceAccount.Cert)
	assert.Equal(t, "PUBLIC KEY", block.Type)
	assert.NotEqual(t, p.CA.Key, p.Etcd.Key)
	for name, content := range p.Marshal() {
		assert.LessOrEqual(t, len(content), 4096, name)
	}
}

func TestNewPKIAlgorithms(t *testing.T) {
	p, err := NewPKI("ECDSA-P384", 30, testNow())
	require.NoError(t, err)
	c := certificate(t, p.CA.Cert)
	public, ok := c.PublicKey.(*ecdsa.PublicKey)
	require.True(t, ok)
	assert.Equal(t, 384, public.Curve.Params().BitSize)
	assert.Equal(t, testNow().AddDate(0, 0, 30), c.NotAfter)
	block, _ := pem.Decode(p.CA.Key)
	assert.Equal(t, "EC PRIVATE KEY", block.Type)

	_, err = NewPKI("DSA", 0, testNow())
	assert.ErrorContains(t, err, `encryptionAlgorithm "DSA"`)
}

func TestPKIRoundTrip(t *testing.T) {
	p := fixedPKI(t)
	entries := p.Marshal()
	assert.Len(t, entries, 8)
	back, err := ParsePKI(entries)
	require.NoError(t, err)
	assert.Equal(t, p, back)
}

func TestParsePKIFindsDamage(t *testing.T) {
	other, err := NewPKI("ECDSA-P256", 0, testNow())
	require.NoError(t, err)
	for name, want := range map[string]string{
		"ca.crt": "cluster CA", "ca.key": "cluster CA", "etcd-ca.key": "etcd CA",
		"front-proxy-ca.crt": "front-proxy CA", "sa.pub": "service-account key", "sa.key": "service-account key",
	} {
		missing := fixedPKI(t).Marshal()
		delete(missing, name)
		_, err := ParsePKI(missing)
		require.ErrorContains(t, err, want, name)

		cut := fixedPKI(t).Marshal()
		cut[name] = cut[name][:60]
		_, err = ParsePKI(cut)
		require.ErrorContains(t, err, want, name)

		mixed := fixedPKI(t).Marshal()
		mixed[name] = other.Marshal()[name]
		_, err = ParsePKI(mixed)
		require.ErrorContains(t, err, "do not match", name)
	}
}

func TestGivenPKIIsKept(t *testing.T) {
	fixed := fixedPKI(t)
	given := GivenPKI("prod", map[string]*corev1.Secret{
		"prod-ca":  {Data: map[string][]byte{"tls.crt": fixed.CA.Cert, "tls.key": fixed.CA.Key}},
		"prod-sa":  {Data: map[string][]byte{"tls.crt": fixed.ServiceAccount.Cert, "tls.key": fixed.ServiceAccount.Key}},
		"other-ca": {Data: map[string][]byte{"tls.crt": []byte("no")}},
	})
	require.NoError(t, given.Complete("ECDSA-P256", 0, testNow()))
	assert.Equal(t, fixed.CA, given.CA)
	assert.Equal(t, fixed.ServiceAccount, given.ServiceAccount)
	assert.NotEmpty(t, given.Etcd.Key)

	external := GivenPKI("prod", map[string]*corev1.Secret{
		"prod-etcd":                  {Data: map[string][]byte{"tls.crt": fixed.Etcd.Cert}},
		"prod-apiserver-etcd-client": {Data: map[string][]byte{"tls.crt": fixed.FrontProxy.Cert, "tls.key": fixed.FrontProxy.Key}},
	})
	require.NoError(t, external.Complete("ECDSA-P256", 0, testNow()))
	assert.Equal(t, fixed.Etcd.Cert, external.Etcd.Cert)
	assert.Empty(t, external.Etcd.Key)
	external.Etcd = KeyPair{}
	require.ErrorContains(t, external.Complete("ECDSA-P256", 0, testNow()), "etcd CA")

	half := GivenPKI("prod", map[string]*corev1.Secret{"prod-ca": {Data: map[string][]byte{"tls.crt": fixed.CA.Cert}}})
	require.ErrorContains(t, half.Complete("ECDSA-P256", 0, testNow()), "cluster CA")
}

func TestCAHashes(t *testing.T) {
	p := fixedPKI(t)
	p.CA.Cert = append(append([]byte{}, p.CA.Cert...), p.Etcd.Cert...)
	hashes, err := p.CAHashes()
	require.NoError(t, err)
	require.Len(t, hashes, 2)
	for _, hash := range hashes {
		digest, err := hex.DecodeString(hash[len("sha256:"):])
		require.NoError(t, err)
		assert.Len(t, digest, 32)
	}
	assert.NotEqual(t, hashes[0], hashes[1])
}

func TestNewToken(t *testing.T) {
	seen := map[string]bool{}
	random := bytes.NewReader(bytes.Repeat([]byte("\x00\xff\x01\xfb\xfc\x24abcdefghijklmnopqrstuvwxyz"), 100))
	for range 50 {
		token, err := NewToken(random)
		require.NoError(t, err)
		assert.Regexp(t, `^[a-z0-9]{6}\.[a-z0-9]{16}$`, token)
		seen[token] = true
	}
	assert.Greater(t, len(seen), 1)

	_, err := NewToken(iotest.ErrReader(errors.New("no entropy")))
	assert.ErrorContains(t, err, "no entropy")
}

func TestTokenSecret(t *testing.T) {
	secret, err := TokenSecret(testToken, testNow().Add(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, "kube-system/bootstrap-token-abcdef", secret.Namespace+"/"+secret.Name)
	assert.Equal(t, corev1.SecretType("bootstrap.kubernetes.io/token"), secret.Type)
	assert.Equal(t, map[string]string{
		"token-id": "abcdef", "token-secret": "0123456789abcdef", "expiration": "2026-11-20T11:00:00Z",
		"usage-bootstrap-signing": "true", "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token", "description": TokenDescription,
	}, secret.StringData)

	secret, err = TokenSecret(testToken, time.Time{})
	require.NoError(t, err)
	assert.NotContains(t, secret.StringData, "expiration")
	_, err = TokenSecret("nonsense", testNow())
	assert.ErrorContains(t, err, "not of the form")
}

func TestSecretsAreNotPrinted(t *testing.T) {
	p := fixedPKI(t)
	data := render(t, machine(t, Init, "v1.34.2", quickStart()))
	for _, format := range []string{"%v", "%+v", "%s"} {
		out := fmt.Sprintf(format, *p) + fmt.Sprintf(format, data)
		assert.NotContains(t, out, "PRIVATE KEY")
		assert.NotContains(t, out, "45 45 45", "PEM printed as bytes")
	}
}

func TestKubeconfig(t *testing.T) {
	p := fixedPKI(t)
	content, err := Kubeconfig("prod", "api.example.com:6443", p, testNow())
	require.NoError(t, err)
	config, err := clientcmd.Load(content)
	require.NoError(t, err)
	assert.Equal(t, "prod-admin@prod", config.CurrentContext)
	assert.Equal(t, "prod", config.Contexts["prod-admin@prod"].Cluster)
	assert.Equal(t, "https://api.example.com:6443", config.Clusters["prod"].Server)
	assert.Equal(t, p.CA.Cert, config.Clusters["prod"].CertificateAuthorityData)

	user := config.AuthInfos["prod-admin"]
	c := certificate(t, user.ClientCertificateData)
	ca := certificate(t, p.CA.Cert)
	assert.Equal(t, "CN=kubernetes-admin,O=system:masters", c.Subject.String())
	assert.Equal(t, ca.NotBefore, c.NotBefore)
	assert.Equal(t, testNow().AddDate(0, 0, 365), c.NotAfter)
	assert.Positive(t, c.SerialNumber.Sign())
	require.NoError(t, matches(user.ClientKeyData, c.PublicKey))

	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err = c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: testNow(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)

	p.CA.Key = nil
	_, err = Kubeconfig("prod", "api.example.com:6443", p, testNow())
	assert.ErrorContains(t, err, "private key")
}

// A certificate is valid until half a year is left, if it fits the cluster.
func TestDue(t *testing.T) {
	p := fixedPKI(t)
	made := func(p *PKI) (certificate, key []byte) {
		certificate, key, err := adminCertificate(p, testNow())
		require.NoError(t, err)
		return certificate, key
	}
	cert, key := made(p)
	for _, c := range []struct {
		why       string
		cert, key []byte
		ca        []byte
		days      int
	}{
		{"", cert, key, p.CA.Cert, 0},
		{"", cert, key, p.CA.Cert, 182},
		{"half of its lifetime has passed", cert, key, p.CA.Cert, 183},
		{"it has expired", cert, key, p.CA.Cert, 366},
		{"it is not signed by the CA of this cluster", cert, key, p.FrontProxy.Cert, 0},
		{"it is not signed by the CA of this cluster", cert, key, nil, 0},
		{"certificate and key do not match", cert, p.CA.Key, p.CA.Cert, 0},
		{"certificate and key do not match", nil, nil, p.CA.Cert, 0},
	} {
		until, why := Due(c.cert, c.key, c.ca, testNow().AddDate(0, 0, c.days))
		assert.Equal(t, c.why, why)
		if c.cert != nil && c.why != "certificate and key do not match" {
			assert.Equal(t, testNow().AddDate(0, 0, 365), until)
		}
	}
}
