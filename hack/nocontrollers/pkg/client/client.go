// Package client has the interfaces through which Cluster API's packages read
// and write objects when a controller hands them a client.
package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectKey names an object in its namespace.
type ObjectKey = types.NamespacedName

// Object is whatever the API server keeps.
type Object interface {
	metav1.Object
	runtime.Object
}

// GetOption is an option of reading.
type GetOption any

// CreateOption is an option of making.
type CreateOption any

// Reader reads objects.
type Reader interface {
	Get(ctx context.Context, key ObjectKey, into Object, opts ...GetOption) error
}

// Client reads and makes objects.
type Client interface {
	Reader
	Create(ctx context.Context, object Object, opts ...CreateOption) error
}
