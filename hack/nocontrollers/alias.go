// Package controllerruntime stands in for the library of that name in our
// binary. Cluster API and its provider have their types, conversions and
// webhooks in packages that can also serve them from a controller, and so
// would link a manager, caches, leader election, metrics and profiling into
// every program: 0.6 MB (docs/adr/0016-binary-size.md).
//
// What conversions and webhooks need when they are called, as the manifest's
// rules call them, is here and does what the library's does: interfaces,
// builders of schemes, requests in contexts. What runs a controller is named
// only, for the functions that nobody calls here: Missing panics there, and
// TestStandIns finds it in the binary should one of them be linked. The
// packages that only tests of other modules import are empty.
//
// test/oracle has the library itself, and the same manifests go through it.
package controllerruntime

import (
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"k8s.io/apimachinery/pkg/runtime"
)

// Log is what packages make their loggers of.
var Log = log.Log

// Manager would run controllers.
type Manager any

// WebhookBuilder would have a manager serve webhooks for a type.
type WebhookBuilder[T runtime.Object] struct{}

// NewWebhookManagedBy would begin with the webhooks of a type.
func NewWebhookManagedBy[T runtime.Object](Manager, T) *WebhookBuilder[T] { panic(admission.Missing) }

// WithValidator would add what validates the type.
func (*WebhookBuilder[T]) WithValidator(admission.Validator[T]) *WebhookBuilder[T] {
	panic(admission.Missing)
}

// WithDefaulter would add what fills in defaults.
func (*WebhookBuilder[T]) WithDefaulter(admission.Defaulter[T]) *WebhookBuilder[T] {
	panic(admission.Missing)
}

// WithCustomValidator would add what validates any type.
func (*WebhookBuilder[T]) WithCustomValidator(webhook.CustomValidator) *WebhookBuilder[T] {
	panic(admission.Missing)
}

// WithCustomDefaulter would add what fills in defaults of any type.
func (*WebhookBuilder[T]) WithCustomDefaulter(webhook.CustomDefaulter) *WebhookBuilder[T] {
	panic(admission.Missing)
}

// WithConverter would add what converts the type's versions.
func (*WebhookBuilder[T]) WithConverter(conversion.Converter) *WebhookBuilder[T] {
	panic(admission.Missing)
}

// Complete would register all that with the manager.
func (*WebhookBuilder[T]) Complete() error { panic(admission.Missing) }
