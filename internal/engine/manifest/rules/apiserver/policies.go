package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	policies "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// expression is a CEL expression, and the types that its value may have.
type expression struct {
	name, text string
	types      []*cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return e.types }

// admissionEnvironment has the functions and types that CEL expressions of admission may use.
//
//nolint:gochecknoglobals // constant data, which is made when it is needed first
var admissionEnvironment = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// policy checks a ValidatingAdmissionPolicy (pkg/apis/admissionregistration/validation of Kubernetes, whose compiler is in k8s.io/apiserver).
func (c *check) policy(o *admissionv1.ValidatingAdmissionPolicy) {
	s := &o.Spec
	if len(s.Validations)+len(s.AuditAnnotations) == 0 {
		c.refuse("spec.validations", "a policy needs validations or auditAnnotations", "add them")
	}
	switch {
	case s.MatchConstraints == nil:
		c.refuse("spec.matchConstraints", "a value is required", "say in resourceRules which objects the policy is about")
	case len(s.MatchConstraints.ResourceRules) == 0:
		c.refuse("spec.matchConstraints.resourceRules", "a value is required", "say which objects the policy is about")
	}
	if s.FailurePolicy != nil {
		oneOf(c, "spec.failurePolicy", *s.FailurePolicy, admissionv1.Fail, admissionv1.Ignore)
	}
	if s.MatchConstraints != nil {
		c.matched("spec.matchConstraints.", s.MatchConstraints)
	}
	c.conditions("spec.matchConditions", s.MatchConditions, s.ParamKind != nil)
	compiler, err := policies.NewCompositedCompiler(admissionEnvironment())
	if err != nil {
		return
	}
	variables := policies.OptionalVariableDeclarations{HasParams: s.ParamKind != nil, HasAuthorizer: true}
	names := make([]string, len(s.Variables))
	for i, v := range s.Variables {
		names[i] = v.Name
	}
	c.distinct("spec.variables", names)
	for i, v := range s.Variables {
		at := fmt.Sprintf("spec.variables[%d].", i)
		if !regex.Of(`^[_a-zA-Z][_a-zA-Z0-9]*$`).MatchString(v.Name) {
			c.refuse(at+"name", fmt.Sprintf("%q is not a name in CEL", v.Name), "use letters, digits and _")
			return
		}
		result := compiler.CompileAndStoreVariable(expression{v.Name, v.Expression, []*cel.Type{cel.AnyType, cel.DynType}}, variables, environment.NewExpressions)
		if !c.compiled(at+"expression", v.Expression, result) {
			return
		}
	}
	for i, v := range s.Validations {
		at := fmt.Sprintf("spec.validations[%d].", i)
		c.compile(compiler, at+"expression", v.Expression, variables, cel.BoolType)
		if v.MessageExpression != "" {
			withoutRights := policies.OptionalVariableDeclarations{HasParams: variables.HasParams}
			c.compile(compiler, at+"messageExpression", v.MessageExpression, withoutRights, cel.StringType)
		}
		if v.Reason != nil {
			oneOf(c, at+"reason", *v.Reason, "Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge")
		}
	}
	for i, a := range s.AuditAnnotations {
		c.compile(compiler, fmt.Sprintf("spec.auditAnnotations[%d].valueExpression", i), a.ValueExpression, variables, cel.StringType, cel.NullType)
	}
}

// matched checks which requests a policy is about.
func (c *check) matched(at string, m *admissionv1.MatchResources) {
	for i := range m.ResourceRules {
		c.hookRule(fmt.Sprintf("%sresourceRules[%d].", at, i), &m.ResourceRules[i].RuleWithOperations)
	}
	for i := range m.ExcludeResourceRules {
		c.hookRule(fmt.Sprintf("%sexcludeResourceRules[%d].", at, i), &m.ExcludeResourceRules[i].RuleWithOperations)
	}
	c.ruleSelectors(at, m.NamespaceSelector, m.ObjectSelector)
	isOneOf(c, at+"matchPolicy", m.MatchPolicy, admissionv1.Exact, admissionv1.Equivalent)
}

// conditions checks the conditions of a policy or a webhook. They may not use the variables of a policy.
func (c *check) conditions(at string, conditions []admissionv1.MatchCondition, params bool) {
	if len(conditions) == 0 {
		return
	}
	compiler, names := policies.NewCompiler(admissionEnvironment()), []string{}
	for i, m := range conditions {
		field := fmt.Sprintf("%s[%d].", at, i)
		c.need(field+"name", m.Name)
		if slices.Contains(names, m.Name) {
			c.refuse(field+"name", "another condition has the name "+m.Name, "change one of them")
		}
		names = append(names, m.Name)
		c.compile(compiler, field+"expression", m.Expression, policies.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}, cel.BoolType)
	}
}

// compile refuses an expression that does not compile, or whose value has another type.
func (c *check) compile(compiler policies.Compiler, field, text string, variables policies.OptionalVariableDeclarations, types ...*cel.Type) {
	c.compiled(field, text, compiler.CompileCELExpression(expression{"", text, types}, variables, environment.NewExpressions))
}

func (c *check) compiled(field, text string, result policies.CompilationResult) bool {
	switch {
	case strings.TrimSpace(text) == "":
		c.need(field, "")
	case result.Error != nil:
		detail, _, _ := strings.Cut(result.Error.Detail, "\n") // CEL draws the place in more lines
		c.refuse(field, regex.Of(`ERROR: <input>:\d+:\d+: `).ReplaceAllString(detail, ""), "correct the expression")
	default:
		return true
	}
	return false
}

// policyBinding checks a ValidatingAdmissionPolicyBinding.
func (c *check) policyBinding(o *admissionv1.ValidatingAdmissionPolicyBinding) {
	c.need("spec.policyName", o.Spec.PolicyName)
	actions := o.Spec.ValidationActions
	if len(actions) == 0 {
		c.refuse("spec.validationActions", "a value is required", "write [Deny]")
	}
	for i, a := range actions {
		oneOf(c, fmt.Sprintf("spec.validationActions[%d]", i), a, admissionv1.Deny, admissionv1.Warn, admissionv1.Audit)
	}
	if slices.Contains(actions, admissionv1.Deny) && slices.Contains(actions, admissionv1.Warn) {
		c.refuse("spec.validationActions", "Deny and Warn say the same twice", "remove one of them")
	}
}
