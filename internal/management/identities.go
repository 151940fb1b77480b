package management

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// identityGroup is the API group of the kinds AWSCluster…Identity.
const identityGroup = "infrastructure.cluster.x-k8s.io"

// Identities returns the AWSClusterRoleIdentities and AWSClusterStaticIdentities of the
// cluster, and the Secrets of the latter, as a manifest. Like the controller of CAPA it
// reads the Secrets in the controller's namespace.
func (c *Cluster) Identities(ctx context.Context, namespace string) (manifest []byte, err error) {
	var all []unstructured.Unstructured
	for _, kind := range []string{"AWSClusterRoleIdentity", "AWSClusterStaticIdentity"} {
		gvr, err := c.kind(ctx, identityGroup, kind)
		if err != nil {
			return nil, err
		}
		list, err := c.objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, c.explain(err, "list "+gvr.Resource)
		}
		all = append(all, list.Items...)
	}
	secretsSeen := map[string]bool{}
	for _, identity := range all {
		name, _, _ := unstructured.NestedString(identity.Object, "spec", "secretRef")
		if name == "" || secretsSeen[name] {
			continue
		}
		secretsSeen[name] = true
		secret, err := c.objects.Resource(core("secrets")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err): // an error if the manifest refers to it
			continue
		case err != nil:
			return nil, c.explain(err, fmt.Sprintf("read secret %s/%s of %s/%s", namespace, name, identity.GetKind(), identity.GetName()))
		}
		all = append(all, *secret)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, object := range all {
		text.WriteString("---\n")
		if err := encoder.Encode(object.Object); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}
