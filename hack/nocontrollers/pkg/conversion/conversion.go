// Package conversion has the interfaces of types that convert themselves.
package conversion

import "k8s.io/apimachinery/pkg/runtime"

// Hub marks the version that the others are converted to and from.
type Hub interface {
	runtime.Object
	Hub()
}

// Convertible is a version that can become the hub's and be made of it.
type Convertible interface {
	runtime.Object
	ConvertTo(dst Hub) error
	ConvertFrom(src Hub) error
}
