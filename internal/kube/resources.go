package kube

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// UnknownKindError says that an API server does not serve a kind, or does not
// yet: the definition of a custom resource takes a moment.
type UnknownKindError struct{ Kind schema.GroupVersionKind }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the cluster does not know the kind %s of %s", e.Kind.Kind, e.Kind.GroupVersion())
}

// served is what an API server serves, by group and version, as far as it was
// asked. What is not served now may be in a moment: that is not kept.
type served struct {
	mu    sync.Mutex
	lists map[schema.GroupVersion]metav1.APIResourceList
}

// Kind is where objects of the kind of o are, in its namespace. Objects that
// need one and name none are in the default namespace.
func (c *Client) Kind(ctx context.Context, o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	list, err := c.serves(ctx, kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	for _, r := range list.APIResources {
		if r.Kind != kind.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		if r.Namespaced && o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
		if !r.Namespaced {
			o.SetNamespace("")
		}
		return c.Objects(kind.GroupVersion().WithResource(r.Name), o.GetNamespace()), nil
	}
	c.forget(kind.GroupVersion())
	return nil, &UnknownKindError{kind}
}

func (c *Client) serves(ctx context.Context, of schema.GroupVersion) (list metav1.APIResourceList, err error) {
	c.served.mu.Lock()
	list, ok := c.served.lists[of]
	c.served.mu.Unlock()
	if ok {
		return list, nil
	}
	path := "/apis/" + of.String()
	if of.Group == "" {
		path = "/api/" + of.Version
	}
	if err := c.Get(ctx, path, &list); err != nil {
		if apierrors.IsNotFound(err) {
			return list, nil // no kinds
		}
		return list, err
	}
	c.served.mu.Lock()
	defer c.served.mu.Unlock()
	if c.served.lists == nil {
		c.served.lists = map[schema.GroupVersion]metav1.APIResourceList{}
	}
	c.served.lists[of] = list
	return list, nil
}

func (c *Client) forget(of schema.GroupVersion) {
	c.served.mu.Lock()
	defer c.served.mu.Unlock()
	delete(c.served.lists, of)
}

// Apply applies an object on the server's side, and returns it as it is then.
// With dry it only says how it would be.
func (c *Client) Apply(ctx context.Context, o *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	at, err := c.Kind(ctx, o)
	if err != nil {
		return nil, err
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return at.Apply(ctx, o.GetName(), o, options)
}
