package boot

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/secret"
)

// KeyPair is a certificate and its private key, both PEM. For the service account, Cert
// is the public key.
type KeyPair struct{ Cert, Key []byte }

// String hides the key from logs and messages.
func (k KeyPair) String() string { return "key pair" }

// PKI has the keys that all control-plane machines of a cluster share. If they are lost,
// no machine can join any more.
type PKI struct {
	CA, Etcd, FrontProxy, ServiceAccount KeyPair

	// EtcdClient is the API server's client certificate for an external etcd. It always
	// comes from the manifest; if it is set, Etcd has no key.
	EtcdClient KeyPair
}

// defaultCADays is kubeadm's lifetime of certificate authorities, ten years.
const defaultCADays = 3650

// clockSkew is how long before its creation a certificate is valid, as in Cluster API:
// machines whose clock is slow must accept it.
const clockSkew = 5 * time.Minute

// NewPKI creates all keys and certificates of a new cluster. algorithm is
// clusterConfiguration.encryptionAlgorithm (empty for RSA-2048); validityDays is
// caCertificateValidityPeriodDays (0 for ten years).
func NewPKI(algorithm string, validityDays int32, now time.Time) (*PKI, error) {
	p := &PKI{}
	return p, p.Complete(algorithm, validityDays, now)
}

// GivenPKI returns the key pairs in the manifest: the Secrets <cluster>-ca, -etcd,
// -proxy, -sa and -apiserver-etcd-client with the keys tls.crt and tls.key, as in Cluster
// API. Missing pairs are empty; Complete creates them.
func GivenPKI(cluster string, secrets map[string]*corev1.Secret) *PKI {
	p := &PKI{}
	for purpose, pair := range p.Pairs() {
		if s := secrets[secret.Name(cluster, purpose)]; s != nil {
			pair.Cert, pair.Key = s.Data[secret.TLSCrtDataName], s.Data[secret.TLSKeyDataName]
		}
	}
	return p
}

// Pairs returns the key pairs with their purposes in Cluster API. Pairs may be empty.
func (p *PKI) Pairs() iter.Seq2[secret.Purpose, *KeyPair] {
	return func(yield func(secret.Purpose, *KeyPair) bool) {
		_ = yield(secret.ClusterCA, &p.CA) &&
			yield(secret.EtcdCA, &p.Etcd) &&
			yield(secret.FrontProxyCA, &p.FrontProxy) &&
			yield(secret.ServiceAccount, &p.ServiceAccount) &&
			yield(secret.APIServerEtcdClient, &p.EtcdClient)
	}
}

// Secrets returns the Secrets from which GivenPKI reads the keys, as YAML documents.
func (p *PKI) Secrets(namespace, cluster string) (out []byte, err error) {
	for purpose, pair := range p.Pairs() {
		if len(pair.Cert) == 0 {
			continue
		}
		data := map[string][]byte{secret.TLSCrtDataName: pair.Cert}
		if len(pair.Key) > 0 { // that of the CA of an external etcd is not known
			data[secret.TLSKeyDataName] = pair.Key
		}
		text, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": secret.Name(cluster, purpose), "namespace": namespace},
			"data": data,
		})
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, "---\n"...), text...), '\n')
	}
	return out, nil
}

// Complete creates the missing pairs, with the same arguments as NewPKI. It never
// replaces existing pairs.
func (p *PKI) Complete(algorithm string, validityDays int32, now time.Time) error {
	if validityDays == 0 {
		validityDays = defaultCADays
	}
	until := now.Add(time.Duration(validityDays) * 24 * time.Hour)
	for _, ca := range []*KeyPair{&p.CA, &p.Etcd, &p.FrontProxy} {
		if len(ca.Cert) > 0 || ca == &p.Etcd && len(p.EtcdClient.Cert) > 0 {
			continue
		}
		pair, err := newCA(algorithm, now.Add(-clockSkew), until)
		if err != nil {
			return err
		}
		*ca = pair
	}
	if len(p.ServiceAccount.Key) > 0 {
		return p.check()
	}
	pair, err := newServiceAccount(algorithm)
	if err != nil {
		return err
	}
	p.ServiceAccount = pair
	return p.check()
}

// newCA creates a self-signed certificate authority. As in kubeadm and Cluster API, all
// three authorities have the common name "kubernetes" and the serial number 0.
func newCA(algorithm string, from, until time.Time) (KeyPair, error) {
	key, err := newKey(algorithm)
	if err != nil {
		return KeyPair{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(0),
		Subject:               pkix.Name{CommonName: "kubernetes"},
		NotBefore:             from.UTC(),
		NotAfter:              until.UTC(),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign a certificate authority: %w", err)
	}
	keyPEM, err := certs.EncodePrivateKeyPEMFromSigner(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode a private key: %w", err)
	}
	return KeyPair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, nil
}

// newServiceAccount creates the keys that sign and verify service-account tokens, without
// certificate.
func newServiceAccount(algorithm string) (KeyPair, error) {
	key, err := newKey(algorithm)
	if err != nil {
		return KeyPair{}, err
	}
	private, err := certs.EncodePrivateKeyPEMFromSigner(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode a private key: %w", err)
	}
	public, err := certs.EncodePublicKeyPEMFromSigner(key.Public())
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode a public key: %w", err)
	}
	return KeyPair{Cert: public, Key: private}, nil
}

func newKey(algorithm string) (crypto.Signer, error) {
	key, err := certs.NewSigner(bootstrapv1.EncryptionAlgorithmType(algorithm))
	if err != nil {
		return nil, fmt.Errorf("encryptionAlgorithm %q: %w", algorithm, err)
	}
	return key, nil
}

// algorithmOf returns the encryptionAlgorithm of a public key, or "" (the default) for
// keys that Cluster API would not create.
func algorithmOf(public crypto.PublicKey) string {
	switch key := public.(type) {
	case *rsa.PublicKey:
		switch key.N.BitLen() {
		case 3072:
			return string(bootstrapv1.EncryptionAlgorithmRSA3072)
		case 4096:
			return string(bootstrapv1.EncryptionAlgorithmRSA4096)
		}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return string(bootstrapv1.EncryptionAlgorithmECDSAP256)
		case elliptic.P384():
			return string(bootstrapv1.EncryptionAlgorithmECDSAP384)
		}
	}
	return ""
}

// CAHashes returns the discovery hashes of the cluster CA, one for each certificate in
// it: "sha256:" and the hexadecimal SHA-256 of the public key (SubjectPublicKeyInfo).
func (p *PKI) CAHashes() ([]string, error) {
	authorities, err := parseCerts(p.CA.Cert)
	if err != nil {
		return nil, fmt.Errorf("cluster CA: %w", err)
	}
	hashes := make([]string, 0, len(authorities))
	for _, ca := range authorities {
		sum := sha256.Sum256(ca.RawSubjectPublicKeyInfo)
		hashes = append(hashes, "sha256:"+hex.EncodeToString(sum[:]))
	}
	return hashes, nil
}

// entries lists the file names of the parts of the PKI, and the fields they are read
// into.
func (p *PKI) entries() []struct {
	name string
	at   *[]byte
} {
	return []struct {
		name string
		at   *[]byte
	}{
		{"ca.crt", &p.CA.Cert},
		{"ca.key", &p.CA.Key},
		{"etcd-ca.crt", &p.Etcd.Cert},
		{"etcd-ca.key", &p.Etcd.Key},
		{"front-proxy-ca.crt", &p.FrontProxy.Cert},
		{"front-proxy-ca.key", &p.FrontProxy.Key},
		{"sa.pub", &p.ServiceAccount.Cert},
		{"sa.key", &p.ServiceAccount.Key},
		{"apiserver-etcd-client.crt", &p.EtcdClient.Cert},
		{"apiserver-etcd-client.key", &p.EtcdClient.Key},
	}
}

// Marshal returns the PKI as one entry for each file: ca.crt, ca.key, etcd-ca.crt, …
// Empty parts are omitted. With any algorithm, entries from NewPKI are smaller than the
// 4,096 characters of a standard SSM parameter.
func (p *PKI) Marshal() map[string][]byte {
	out := map[string][]byte{}
	for _, e := range p.entries() {
		if len(*e.at) > 0 {
			out[e.name] = *e.at
		}
	}
	return out
}

// ParsePKI is the inverse of Marshal. It checks that every certificate matches its key,
// because otherwise a damaged CA would be noticed only when machines fail to join. It
// ignores unknown names.
func ParsePKI(entries map[string][]byte) (*PKI, error) {
	p := &PKI{}
	for _, e := range p.entries() {
		*e.at = entries[e.name]
	}
	return p, p.check()
}

// check returns an error for pairs that are missing or do not match. The CA of an
// external etcd has no key here.
func (p *PKI) check() error {
	external := len(p.EtcdClient.Cert) > 0
	var problems []error
	report := func(name string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	report("cluster CA", p.CA.check())
	report("front-proxy CA", p.FrontProxy.check())
	report("service-account key", checkServiceAccount(p.ServiceAccount))
	if external {
		report("API server's etcd client certificate", p.EtcdClient.check())
	}
	if external && len(p.Etcd.Key) == 0 {
		_, err := parseCerts(p.Etcd.Cert)
		report("etcd CA", err)
	} else {
		report("etcd CA", p.Etcd.check())
	}
	return errors.Join(problems...)
}

// check returns an error if the key does not match the certificate.
func (k KeyPair) check() error {
	certificates, err := parseCerts(k.Cert)
	if err != nil {
		return err
	}
	return matches(k.Key, certificates[0].PublicKey)
}

// checkServiceAccount returns an error if the two keys do not match.
func checkServiceAccount(k KeyPair) error {
	block, _ := pem.Decode(k.Cert)
	if block == nil {
		return errors.New("no PEM public key")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("parse the public key: %w", err)
	}
	return matches(k.Key, public)
}

// matches returns an error if the private key does not match the public one.
func matches(key []byte, public crypto.PublicKey) error {
	private, err := certs.DecodePrivateKeyPEM(key)
	if err != nil {
		return fmt.Errorf("parse the private key: %w", err)
	}
	own, ok := private.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !own.Equal(public) {
		return errors.New("certificate and private key do not match")
	}
	return nil
}

// parseCerts parses a bundle of at least one certificate.
func parseCerts(bundle []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse a certificate: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("no PEM certificate")
	}
	return out, nil
}

// pkiFiles returns the key and certificate files of a machine, in Cluster API's order. A
// worker needs none: it gets the CA by discovery.
func (m Machine) pkiFiles(config bootstrapv1.ClusterConfiguration) ([]bootstrapv1.File, error) {
	if m.Role == JoinWorker {
		return nil, nil
	}
	if err := m.PKI.check(); err != nil {
		return nil, err
	}
	pairs := maps.Collect(m.PKI.Pairs())
	layout := secret.NewControlPlaneJoinCerts(&config)
	for _, c := range layout {
		pair := pairs[c.Purpose]
		if pair == nil || len(pair.Cert) == 0 {
			return nil, fmt.Errorf("clusterConfiguration.etcd.external needs the secret %s", secret.Name(m.Cluster.Name, c.Purpose))
		}
		c.KeyPair = &certs.KeyPair{Cert: pair.Cert, Key: pair.Key}
		if c.KeyFile == "" {
			// The machines do not need the key of an external etcd's CA.
			c.KeyPair.Key = nil
		}
	}
	return layout.AsFiles(), nil
}

// Password returns a password for a purpose, which everybody with the keys of the cluster can
// compute.
func (p *PKI) Password(purpose string) (string, error) {
	key, err := hkdf.Key(sha256.New, p.ServiceAccount.Key, nil, "clusterawsadm "+purpose, sha256.Size)
	return hex.EncodeToString(key), err
}
