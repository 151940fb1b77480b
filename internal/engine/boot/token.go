package boot

import (
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Sizes in Kubernetes' pattern for bootstrap tokens, [a-z0-9]{6}\.[a-z0-9]{16}.
const (
	tokenIDSize     = 6
	tokenSecretSize = 16
	tokenAlphabet   = "0123456789abcdefghijklmnopqrstuvwxyz"
)

// NewToken creates a bootstrap token, "abcdef.0123456789abcdef". random is
// crypto/rand.Reader except in tests.
func NewToken(random io.Reader) (string, error) {
	// The largest multiple of the alphabet's size that fits in a byte. Larger values
	// would make the first letters more likely.
	const limit = byte(256 / len(tokenAlphabet) * len(tokenAlphabet))
	token := make([]byte, 0, tokenIDSize+1+tokenSecretSize)
	one := make([]byte, 1)
	for len(token) < cap(token) {
		if len(token) == tokenIDSize {
			token = append(token, '.')
			continue
		}
		if _, err := io.ReadFull(random, one); err != nil {
			return "", fmt.Errorf("create a bootstrap token: %w", err)
		}
		if one[0] < limit {
			token = append(token, tokenAlphabet[int(one[0])%len(tokenAlphabet)])
		}
	}
	return string(token), nil
}

// TokenSecret returns the Secret that adds a bootstrap token to a running cluster, like
// that of kubeadm init. If expires is the zero time, the token never expires.
func TokenSecret(token string, expires time.Time) (*corev1.Secret, error) {
	id, secret, err := splitToken(token)
	if err != nil {
		return nil, err
	}
	data := map[string]string{
		bootstrapapi.BootstrapTokenIDKey:               id,
		bootstrapapi.BootstrapTokenSecretKey:           secret,
		bootstrapapi.BootstrapTokenUsageSigningKey:     "true",
		bootstrapapi.BootstrapTokenUsageAuthentication: "true",
		bootstrapapi.BootstrapTokenExtraGroupsKey:      tokenGroup,
		bootstrapapi.BootstrapTokenDescriptionKey:      TokenDescription,
	}
	if !expires.IsZero() {
		data[bootstrapapi.BootstrapTokenExpirationKey] = expires.UTC().Format(time.RFC3339)
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: bootstrapapi.BootstrapTokenSecretPrefix + id, Namespace: metav1.NamespaceSystem},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		StringData: data,
	}, nil
}

// splitToken returns the ID and the secret of a token. The error does not contain the
// token.
func splitToken(token string) (id, secret string, err error) {
	parts := regex.Of(`^([a-z0-9]{6})\.([a-z0-9]{16})$`).FindStringSubmatch(token)
	if parts == nil {
		return "", "", fmt.Errorf("the bootstrap token is not of the form [a-z0-9]{%d}.[a-z0-9]{%d}", tokenIDSize, tokenSecretSize)
	}
	return parts[1], parts[2], nil
}
