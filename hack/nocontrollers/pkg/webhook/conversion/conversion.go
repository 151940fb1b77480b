// Package conversion names what would serve the conversions of a type. The
// conversions themselves are functions that are called without it.
package conversion

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Converter would serve the conversions of one type.
type Converter struct{}

// Spoke would serve those from one version and back.
type Spoke struct{}

// NewHubSpokeConverter notes nothing: there is no server.
func NewHubSpokeConverter[H runtime.Object](H, ...Spoke) Converter { return Converter{} }

// NewSpokeConverter notes nothing: there is no server.
func NewSpokeConverter[H, S client.Object](
	S, func(context.Context, H, S) error, func(context.Context, S, H) error,
) Spoke {
	return Spoke{}
}
