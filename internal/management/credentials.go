package management

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// DefaultNamespace is where clusterctl installs CAPA.
const DefaultNamespace = "capa-system"

// The secret that CAPA's controller reads its AWS profile from.
const (
	CredentialsSecret = "capa-manager-bootstrap-credentials"
	credentialsKey    = "credentials"
)

// hintInstalled is added where something of CAPA is missing.
const hintInstalled = "is Cluster API Provider AWS installed ('clusterctl init --infrastructure aws')?"

// Credentials is the content of the secret: the text of an AWS profile. It is
// no string, lest it is printed by accident.
type Credentials struct{ text []byte }

// Zeroed are the credentials that say that there are none: a line break, since
// the controller wants the file.
func Zeroed() Credentials { return Credentials{[]byte("\n")} }

// Reveal returns the text.
func (c Credentials) Reveal() []byte { return c.text }

// String keeps the text out of logs and errors.
func (c Credentials) String() string { return "(credentials)" }

// GoString keeps the text out of logs and errors.
func (c Credentials) GoString() string { return c.String() }

// IsZeroed reports whether there are none.
func (c Credentials) IsZeroed() bool { return string(c.text) == "\n" }

// Empty reports whether the secret has no key for them.
func (c Credentials) Empty() bool { return len(c.text) == 0 }

// isProfile reports whether a text has an AWS profile in it.
func isProfile(text []byte) bool { return regexp.MustCompile(`(?m)^\s*\[[^\]\n]+\]`).Match(text) }

// saysWho reports whether a profile says whose it is, by one of the keys of
// the AWS shared configuration that do.
func saysWho(text []byte) bool {
	return regexp.MustCompile(`(?m)^\s*(aws_access_key_id|role_arn|credential_process|web_identity_token_file|sso_session|sso_start_url|credential_source)\s*=\s*\S`).Match(text)
}

// ParseCredentials reads credentials as encode-as-profile prints them: an AWS
// profile in base64. The empty text stands for zeroed ones. Errors do not
// quote it.
func ParseCredentials(encoded string) (Credentials, error) {
	encoded = strings.TrimSpace(encoded)
	if encoded == "" {
		return Zeroed(), nil
	}
	if isProfile([]byte(encoded)) {
		return Credentials{}, errors.New("it is a profile in plain text, and has to be in base64; 'clusterawsadm bootstrap credentials encode-as-profile' prints it so")
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return Credentials{}, errors.New("it is not base64; 'clusterawsadm bootstrap credentials encode-as-profile' prints what is wanted")
	case len(bytes.TrimSpace(text)) == 0:
		return Zeroed(), nil
	case !isProfile(text):
		return Credentials{}, errors.New("what is in the base64 has no [profile]; 'clusterawsadm bootstrap credentials encode-as-profile' prints what is wanted")
	case !saysWho(text):
		return Credentials{}, errors.New("the profile in the base64 has neither aws_access_key_id nor role_arn nor anything else that says whose it is")
	}
	return Credentials{text}, nil
}

func secrets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}

// Credentials returns the credentials of CAPA's controller in a namespace.
func (c *Cluster) Credentials(ctx context.Context, namespace string) (Credentials, error) {
	secret, err := c.objects.Resource(secrets()).Namespace(namespace).Get(ctx, CredentialsSecret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Credentials{}, c.missing(ctx, "secret "+CredentialsSecret, namespace, hintInstalled)
	case err != nil:
		return Credentials{}, c.explain(err, fmt.Sprintf("read secret %s/%s", namespace, CredentialsSecret))
	}
	encoded, _, err := unstructured.NestedString(secret.Object, "data", credentialsKey)
	if err != nil {
		return Credentials{}, fmt.Errorf("secret %s/%s: its data is of another form", namespace, CredentialsSecret)
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return Credentials{}, fmt.Errorf("secret %s/%s: the key %s is not base64", namespace, CredentialsSecret, credentialsKey)
	}
	return Credentials{text}, nil
}

// SetCredentials gives CAPA's controller other credentials. It reads them when
// it starts. The secret is never made: where it is missing, CAPA is.
func (c *Cluster) SetCredentials(ctx context.Context, namespace string, to Credentials) error {
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{credentialsKey: to.text}})
	if err != nil {
		return err
	}
	_, err = c.objects.Resource(secrets()).Namespace(namespace).Patch(ctx, CredentialsSecret, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err):
		return c.missing(ctx, "secret "+CredentialsSecret, namespace, hintInstalled)
	case err != nil:
		return c.explain(err, fmt.Sprintf("change secret %s/%s", namespace, CredentialsSecret))
	}
	return nil
}
