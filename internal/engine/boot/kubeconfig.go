package boot

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-api/util/certs"
)

// clientCertificateLifetime is the lifetime of the administrator's certificate in Cluster
// API.
const clientCertificateLifetime = 365 * 24 * time.Hour

// Kubeconfig creates the administrator's kubeconfig as Cluster API does: a client
// certificate for kubernetes-admin in system:masters, signed by the cluster CA with a key
// of the same algorithm, valid for a year; user <cluster>-admin, context
// <cluster>-admin@<cluster>. The endpoint is "host:port". Every call creates a new key.
func Kubeconfig(cluster, endpoint string, p *PKI, now time.Time) ([]byte, error) {
	certificate, key, err := adminCertificate(p, now)
	if err != nil {
		return nil, err
	}
	user := cluster + "-admin"
	context := user + "@" + cluster
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			cluster: {Server: "https://" + endpoint, CertificateAuthorityData: p.CA.Cert},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			user: {ClientCertificateData: certificate, ClientKeyData: key},
		},
		Contexts: map[string]*clientcmdapi.Context{
			context: {Cluster: cluster, AuthInfo: user},
		},
		CurrentContext: context,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the kubeconfig: %w", err)
	}
	return out, nil
}

// ClientCertificate creates an administrator's certificate for one run, in the group
// system:masters, and its key, both PEM. The key is an elliptic curve key, whatever the
// algorithm of the CA, because it is created in every run.
func ClientCertificate(p *PKI, now time.Time) (certificate, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return p.administrator(signer, "clusterawsadm", now.Add(runCertificateLifetime))
}

// runCertificateLifetime is longer than any run.
const runCertificateLifetime = 24 * time.Hour

// adminCertificate creates the administrator's certificate and key, both PEM.
func adminCertificate(p *PKI, now time.Time) (certificate, key []byte, err error) {
	authorities, err := parseCerts(p.CA.Cert)
	if err != nil {
		return nil, nil, fmt.Errorf("cluster CA: %w", err)
	}
	signer, err := newKey(algorithmOf(authorities[0].PublicKey))
	if err != nil {
		return nil, nil, err
	}
	return p.administrator(signer, "kubernetes-admin", now.Add(clientCertificateLifetime))
}

// EtcdTLS returns the TLS settings of a client of the stacked etcd for one run. kubeadm's
// certificates of etcd servers are valid for the name localhost.
func (p *PKI) EtcdTLS(now time.Time) (*tls.Config, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, key, err := p.Etcd.signClient(signer, pkix.Name{CommonName: "clusterawsadm"}, now.Add(runCertificateLifetime))
	if err != nil {
		return nil, fmt.Errorf("etcd CA: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("etcd CA: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.Etcd.Cert)
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12, Time: func() time.Time { return now },
	}, nil
}

// administrator signs the certificate of a member of system:masters.
func (p *PKI) administrator(signer crypto.Signer, name string, until time.Time) (certificate, key []byte, err error) {
	certificate, key, err = p.CA.signClient(signer, pkix.Name{CommonName: name, Organization: []string{"system:masters"}}, until)
	if err != nil {
		return nil, nil, fmt.Errorf("cluster CA: %w", err)
	}
	return certificate, key, nil
}

// signClient signs the certificate of a client with the key of an authority. Both results are PEM.
func (k KeyPair) signClient(signer crypto.Signer, subject pkix.Name, until time.Time) (certificate, key []byte, err error) {
	authorities, err := parseCerts(k.Cert)
	if err != nil {
		return nil, nil, err
	}
	ca := authorities[0]
	caKey, err := certs.DecodePrivateKeyPEM(k.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("parse the private key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64))
	if err != nil {
		return nil, nil, fmt.Errorf("create a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    ca.NotBefore,
		NotAfter:     until.UTC(),
		KeyUsage:     x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, signer.Public(), caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a client certificate: %w", err)
	}
	key, err = certs.EncodePrivateKeyPEMFromSigner(signer)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, nil
}

// Due returns the expiry of an administrator's certificate, and the reason to renew it:
// "" while it is valid for more than half a year. The beginning of its validity is that
// of its CA, so it does not show its age. All arguments are PEM.
func Due(certificate, key, ca []byte, now time.Time) (until time.Time, why string) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return until, "certificate and key do not match"
	}
	until = pair.Leaf.NotAfter
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	switch {
	case now.After(until):
		return until, "it has expired"
	case err != nil:
		return until, "it is not signed by the CA of this cluster"
	case !slices.Contains(pair.Leaf.Subject.Organization, "system:masters"):
		return until, "it is not an administrator's"
	case until.Sub(now) <= clientCertificateLifetime/2:
		return until, "half of its lifetime has passed"
	}
	return until, ""
}
