package eks

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// issuer is a TLS server that presents several certificates, as EKS does. roots trusts
// it, and dial connects to it under the name in its certificate.
func issuer(t *testing.T) (last *x509.Certificate, roots *x509.CertPool, dial func(context.Context, string, string) (net.Conn, error), dialled *string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are expected
	server.StartTLS()
	t.Cleanup(server.Close)
	roots = x509.NewCertPool()
	roots.AddCert(server.Certificate())
	last = authority(t)
	server.TLS.Certificates[0].Certificate = append(server.TLS.Certificates[0].Certificate, last.Raw)
	dialled = new(string)
	return last, roots, func(ctx context.Context, network, address string) (net.Conn, error) {
		*dialled = address
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}, dialled
}

// authority returns another certificate: that of the PKI in the testdata of package boot.
func authority(t *testing.T) *x509.Certificate {
	t.Helper()
	const text = `-----BEGIN CERTIFICATE-----
MIIBYDCCAQagAwIBAgIBADAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwprdWJlcm5l
dGVzMCAXDTI1MTIzMTIzNTUwMFoYDzIxMjUxMjA4MDAwMDAwWjAVMRMwEQYDVQQD
EwprdWJlcm5ldGVzMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEn0yT06HgA28A
q6zoNHoJx3l7YPS4stfqBJHUGmG397q2ZRGk9EO10XRSRSBXHnXOg2UpXOHxyk8d
dkBE9wK56aNFMEMwDgYDVR0PAQH/BAQDAgKkMBIGA1UdEwEB/wQIMAYBAf8CAQAw
HQYDVR0OBBYEFCnHngOGwggO+WlPe5Zd+eLZ+/aJMAoGCCqGSM49BAMCA0gAMEUC
IQCxHykyoLBjUhyzf+dPNpoHoFmFC1o8Z994uD1B1a/+qgIgcdm2vcx7xIxyOz8O
lWfwHwzjU8JMXccur75U9HdcRGg=
-----END CERTIFICATE-----`
	block, _ := pem.Decode([]byte(text))
	require.NotNil(t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

func TestThumbprint(t *testing.T) {
	last, roots, dial, dialled := issuer(t)
	got, err := Thumbprint(t.Context(), "https://example.com/id/0123ABCD", dial, roots)
	require.NoError(t, err)
	sum := sha1.Sum(last.Raw)
	assert.Equal(t, hex.EncodeToString(sum[:]), got)
	assert.Equal(t, "example.com:443", *dialled)

	_, err = Thumbprint(t.Context(), "https://example.com:8443/id", dial, roots)
	require.NoError(t, err)
	assert.Equal(t, "example.com:8443", *dialled)
}

func TestThumbprintErrors(t *testing.T) {
	_, roots, dial, _ := issuer(t)
	_, err := Thumbprint(t.Context(), "https://other.org", dial, roots)
	var wrong x509.HostnameError
	require.ErrorAs(t, err, &wrong, "the certificate is not for that name")
	_, err = Thumbprint(t.Context(), "https://example.com", dial, x509.NewCertPool())
	var unknown *tls.CertificateVerificationError
	require.ErrorAs(t, err, &unknown)
	for _, url := range []string{"http://example.com", "example.com", "https:///id"} {
		_, err = Thumbprint(t.Context(), url, dial, roots)
		require.ErrorContains(t, err, "is not an https URL")
	}
	_, err = Thumbprint(t.Context(), "https://example.com", func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }, roots)
	require.EqualError(t, err, "OIDC issuer example.com: no route")
}
