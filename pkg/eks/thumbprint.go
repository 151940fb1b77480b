package eks

import (
	"context"
	"crypto/sha1" //nolint:gosec // what IAM asks for
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
)

// Thumbprint returns what IAM knows the certificates of an OIDC issuer by: the
// SHA-1 of the last one it shows, 40 hexadecimal digits. The issuer is an https
// URL, as in identity.oidc.issuer of a cluster; dial opens a connection to it,
// as net.Dialer's DialContext; roots are the authorities to trust, nil for the
// system's.
//
// IAM needs it only of issuers whose certificates are not signed by one of the
// well-known authorities, and EKS's are; it finds it out itself where
// CreateOpenIDConnectProvider is given none. CAPA always looks it up, for
// which the issuer has to be in reach.
func Thumbprint(ctx context.Context, issuer string, dial func(ctx context.Context, network, address string) (net.Conn, error), roots *x509.CertPool) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return "", fmt.Errorf("OIDC issuer: %w", err)
	}
	if u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("OIDC issuer %q is no https URL", issuer)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return "", fmt.Errorf("OIDC issuer %s: %w", u.Host, err)
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	client := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err := client.HandshakeContext(ctx); err != nil {
		return "", fmt.Errorf("OIDC issuer %s: %w", u.Host, err)
	}
	shown := client.ConnectionState().PeerCertificates // never empty after a handshake
	sum := sha1.Sum(shown[len(shown)-1].Raw)           //nolint:gosec // what IAM asks for
	return hex.EncodeToString(sum[:]), nil
}
