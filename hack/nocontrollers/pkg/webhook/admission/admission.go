// Package admission has the interfaces of webhooks, and the request that they
// find in their context.
package admission

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Missing is what this module panics with where the library would run a
// controller.
const Missing = "stand-in of sigs.k8s.io/controller-runtime: no controllers here"

// Warnings are shown to whoever sent the object.
type Warnings []string

// Validator says whether an object is valid.
type Validator[T runtime.Object] interface {
	ValidateCreate(ctx context.Context, object T) (Warnings, error)
	ValidateUpdate(ctx context.Context, before, after T) (Warnings, error)
	ValidateDelete(ctx context.Context, object T) (Warnings, error)
}

// Defaulter fills in what an object leaves out.
type Defaulter[T runtime.Object] interface {
	Default(ctx context.Context, object T) error
}

type (
	// CustomValidator is a Validator of objects of any type.
	CustomValidator = Validator[runtime.Object]
	// CustomDefaulter is a Defaulter of objects of any type.
	CustomDefaulter = Defaulter[runtime.Object]
)

// Request is what the API server asks.
type Request struct{ admissionv1.AdmissionRequest }

type requestKey struct{}

// NewContextWithRequest returns a context that carries a request.
func NewContextWithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFromContext returns the request that a context carries, or an error.
func RequestFromContext(ctx context.Context) (Request, error) {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		return r, nil
	}
	return Request{}, errors.New("no admission request in the context")
}
