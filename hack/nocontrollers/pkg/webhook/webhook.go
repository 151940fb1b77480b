// Package webhook has the interfaces of webhooks for any type.
package webhook

import "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

type (
	// CustomValidator says whether an object is valid.
	CustomValidator = admission.CustomValidator
	// CustomDefaulter fills in what an object leaves out.
	CustomDefaulter = admission.CustomDefaulter
)
