package kubesim

import (
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// celText is an expression in the form that the compiler of k8s.io/apiserver reads.
type celText struct {
	Object

	field string
	types []*cel.Type
}

func (e celText) GetName() string          { return text(e.Object, "name") }
func (e celText) GetExpression() string    { return text(e.Object, e.field) }
func (e celText) ReturnTypes() []*cel.Type { return e.types }

//nolint:gochecknoglobals // constant data, which is made when it is needed first
var celBase = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// wrongPolicy says what is wrong with a policy, a binding of one, or the conditions of a webhook; "" for nothing
// (pkg/apis/admissionregistration/validation of Kubernetes v1.34.2).
func wrongPolicy(o Object) string {
	switch text(o, "kind") {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		for i, hook := range list(o, "webhooks") {
			if why := wrongConditions(fmt.Sprintf("webhooks[%d].matchConditions", i), list(hook, "matchConditions"), false); why != "" {
				return why
			}
		}
	case "ValidatingAdmissionPolicyBinding":
		actions := fmt.Sprint(value(o, "spec", "validationActions"))
		switch {
		case text(o, "spec", "policyName") == "":
			return "spec.policyName: Required value"
		case isEmpty(value(o, "spec", "validationActions")):
			return "spec.validationActions: Required value"
		case strings.Contains(actions, "Deny") && strings.Contains(actions, "Warn"):
			return "spec.validationActions: Invalid value: must not contain both Deny and Warn"
		}
	case "ValidatingAdmissionPolicy":
		spec, _ := o["spec"].(Object)
		return wrongValidations(spec)
	}
	return ""
}

func wrongValidations(spec Object) string {
	params := spec["paramKind"] != nil
	switch {
	case spec["matchConstraints"] == nil:
		return "spec.matchConstraints: Required value"
	case len(list(spec, "matchConstraints", "resourceRules")) == 0:
		return "spec.matchConstraints.resourceRules: Required value"
	case len(list(spec, "validations"))+len(list(spec, "auditAnnotations")) == 0:
		return "spec.validations: Required value: validations or auditAnnotations must be non-empty"
	}
	if why := wrongConditions("spec.matchConditions", list(spec, "matchConditions"), params); why != "" {
		return why
	}
	compiler, err := admissioncel.NewCompositedCompiler(celBase())
	if err != nil {
		return err.Error()
	}
	all := admissioncel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}
	for i, v := range list(spec, "variables") {
		if strings.ContainsAny(text(v, "name"), "-. ") || text(v, "name") == "" {
			return fmt.Sprintf("spec.variables[%d].name: Invalid value: %q: name is not a valid CEL identifier", i, text(v, "name"))
		}
		done := compiler.CompileAndStoreVariable(celText{v, "expression", []*cel.Type{cel.AnyType, cel.DynType}}, all, environment.NewExpressions)
		if done.Error != nil {
			return fmt.Sprintf("spec.variables[%d].expression: Invalid value: %s", i, done.Error.Detail)
		}
	}
	return wrongExpressions(compiler, spec, params)
}

// wrongExpressions says which expression of a policy does not compile; "" for none.
func wrongExpressions(compiler admissioncel.Compiler, spec Object, params bool) string {
	all := admissioncel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}
	for i, v := range list(spec, "validations") {
		if why := compileFailed(compiler, celText{v, "expression", []*cel.Type{cel.BoolType}}, all); why != "" {
			return fmt.Sprintf("spec.validations[%d].expression: %s", i, why)
		}
		without := admissioncel.OptionalVariableDeclarations{HasParams: params}
		if why := compileFailed(compiler, celText{v, "messageExpression", []*cel.Type{cel.StringType}}, without); v["messageExpression"] != nil && why != "" {
			return fmt.Sprintf("spec.validations[%d].messageExpression: %s", i, why)
		}
		if why := among("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")(v["reason"], v); why != "" {
			return fmt.Sprintf("spec.validations[%d].reason: %s", i, why)
		}
	}
	for i, a := range list(spec, "auditAnnotations") {
		if why := compileFailed(compiler, celText{a, "valueExpression", []*cel.Type{cel.StringType, cel.NullType}}, all); why != "" {
			return fmt.Sprintf("spec.auditAnnotations[%d].valueExpression: %s", i, why)
		}
	}
	return ""
}

func wrongConditions(at string, conditions []Object, params bool) string {
	if len(conditions) == 0 {
		return ""
	}
	compiler := admissioncel.NewCompiler(celBase())
	for i, x := range conditions {
		given := admissioncel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}
		if why := compileFailed(compiler, celText{x, "expression", []*cel.Type{cel.BoolType}}, given); why != "" {
			return fmt.Sprintf("%s[%d].expression: %s", at, i, why)
		}
	}
	return ""
}

func compileFailed(compiler admissioncel.Compiler, e celText, given admissioncel.OptionalVariableDeclarations) string {
	if done := compiler.CompileCELExpression(e, given, environment.NewExpressions); done.Error != nil {
		return "Invalid value: " + done.Error.Detail
	}
	return ""
}
