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

// UnknownKindError says that an API server does not serve a kind. After a
// CustomResourceDefinition is created, this takes a moment to change.
type UnknownKindError struct{ Kind schema.GroupVersionKind }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the API server does not serve the kind %s of %s", e.Kind.Kind, e.Kind.GroupVersion())
}

// served caches the kinds that an API server serves, by group and version. Missing kinds
// are not cached: they may be added at any time.
type served struct {
	mu    sync.Mutex
	lists map[schema.GroupVersion]metav1.APIResourceList
}

// Kind returns the client for the objects of the kind and namespace of o. An object of a
// namespaced kind without a namespace is in the default namespace.
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

// Apply sends a server-side apply of an object, and returns the result. With dry, the API
// server changes nothing and returns what the result would be.
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
