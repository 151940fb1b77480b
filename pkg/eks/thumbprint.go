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

// Thumbprint returns the thumbprint of an OIDC issuer for IAM: the SHA-1 of the last
// certificate that it presents, as 40 hexadecimal digits. The issuer is an https URL, as
// in identity.oidc.issuer of a cluster. dial opens the connection, like
// net.Dialer.DialContext. roots are the trusted authorities; nil means those of the
// system.
//
// IAM needs a thumbprint only for issuers whose certificates are not signed by a
// well-known authority; those of EKS are. If CreateOpenIDConnectProvider gets none, IAM
// retrieves it. CAPA always retrieves it, for which the issuer must be reachable.
func Thumbprint(
	ctx context.Context,
	issuer string,
	dial func(ctx context.Context, network, address string) (net.Conn, error),
	roots *x509.CertPool,
) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return "", fmt.Errorf("OIDC issuer: %w", err)
	}
	if u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("OIDC issuer %q is not an https URL", issuer)
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
	shown := client.ConnectionState().PeerCertificates // not empty after a handshake
	sum := sha1.Sum(shown[len(shown)-1].Raw)           //nolint:gosec // what IAM asks for
	return hex.EncodeToString(sum[:]), nil
}
