package management

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// DefaultNamespace is the namespace in which clusterctl installs CAPA.
const DefaultNamespace = "capa-system"

// The Secret from which CAPA's controller reads its AWS profile.
const (
	CredentialsSecret = "capa-manager-bootstrap-credentials"
	credentialsKey    = "credentials"
)

// hintInstalled is added to errors if a part of CAPA is missing.
const hintInstalled = "is Cluster API Provider AWS installed ('clusterctl init --infrastructure aws')?"

// Credentials is the content of the Secret: the text of an AWS profile. It is not a
// string, so that it is not printed by accident.
type Credentials struct{ text []byte }

// Zeroed returns empty credentials: a line break, because the controller requires the
// file.
func Zeroed() Credentials { return Credentials{[]byte("\n")} }

// Reveal returns the text.
func (c Credentials) Reveal() []byte { return c.text }

// String hides the text from logs and errors.
func (c Credentials) String() string { return "(credentials)" }

// GoString hides the text from logs and errors.
func (c Credentials) GoString() string { return c.String() }

// IsZeroed reports whether the credentials are those of Zeroed.
func (c Credentials) IsZeroed() bool { return string(c.text) == "\n" }

// Empty reports whether the Secret has no credentials.
func (c Credentials) Empty() bool { return len(c.text) == 0 }

// isProfile reports whether a text contains an AWS profile.
func isProfile(text []byte) bool { return regexp.MustCompile(`(?m)^\s*\[[^\]\n]+\]`).Match(text) }

// saysWho reports whether a profile contains credentials or a source of credentials, by
// the keys of the AWS shared configuration.
func saysWho(text []byte) bool {
	return regex.Of(`(?m)^\s*(aws_access_key_id|role_arn|credential_process|web_identity_token_file|sso_session|sso_start_url|credential_source)\s*=\s*\S`).
		Match(text)
}

// ParseCredentials parses the output of encode-as-profile: an AWS profile in base64. An
// empty text means Zeroed. Errors do not contain the text.
func ParseCredentials(encoded string) (Credentials, error) {
	encoded = strings.TrimSpace(encoded)
	if encoded == "" {
		return Zeroed(), nil
	}
	if isProfile([]byte(encoded)) {
		return Credentials{}, errors.New("the profile is plain text and must be base64; use the output of 'clusterawsadm bootstrap credentials encode-as-profile'")
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return Credentials{}, errors.New("the value is not base64; use the output of 'clusterawsadm bootstrap credentials encode-as-profile'")
	case len(bytes.TrimSpace(text)) == 0:
		return Zeroed(), nil
	case !isProfile(text):
		return Credentials{}, errors.New("the decoded value has no [profile]; use the output of 'clusterawsadm bootstrap credentials encode-as-profile'")
	case !saysWho(text):
		return Credentials{}, errors.New("the decoded profile has no aws_access_key_id, role_arn or other source of credentials")
	}
	return Credentials{text}, nil
}

// Credentials returns the credentials of CAPA's controller in a namespace.
func (c *Cluster) Credentials(ctx context.Context, namespace string) (Credentials, error) {
	secret, err := c.objects.Resource(core("secrets")).Namespace(namespace).Get(ctx, CredentialsSecret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Credentials{}, c.missing(ctx, "secret "+CredentialsSecret, namespace, hintInstalled)
	case err != nil:
		return Credentials{}, c.explain(err, fmt.Sprintf("read secret %s/%s", namespace, CredentialsSecret))
	}
	encoded, _, err := unstructured.NestedString(secret.Object, "data", credentialsKey)
	if err != nil {
		return Credentials{}, fmt.Errorf("secret %s/%s: its data is invalid", namespace, CredentialsSecret)
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return Credentials{}, fmt.Errorf("secret %s/%s: the key %s is not base64", namespace, CredentialsSecret, credentialsKey)
	}
	return Credentials{text}, nil
}

// SetCredentials changes the credentials of CAPA's controller, which reads them when it
// starts. It does not create the Secret: if it does not exist, CAPA is not installed.
func (c *Cluster) SetCredentials(ctx context.Context, namespace string, to Credentials) error {
	err := c.patch(ctx, core("secrets"), namespace, CredentialsSecret, map[string]any{"data": map[string][]byte{credentialsKey: to.text}})
	switch {
	case apierrors.IsNotFound(err):
		return c.missing(ctx, "secret "+CredentialsSecret, namespace, hintInstalled)
	case err != nil:
		return c.explain(err, fmt.Sprintf("change secret %s/%s", namespace, CredentialsSecret))
	}
	return nil
}
