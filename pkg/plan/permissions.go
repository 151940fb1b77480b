package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Permissions says what IAM allows the caller of what a plan needs.
type Permissions struct {
	// Principal is the ARN of the user or the role whose policies were simulated; "" if none
	// could be.
	Principal string `json:"principal,omitempty"`
	// Unknown says why IAM did not answer; "" if it did.
	Unknown string `json:"unknown,omitempty"`
	// Actions is the number of actions that the plan needs.
	Actions int    `json:"actions"`
	Lacking []Lack `json:"lacking"`
	// Policy allows the missing permissions; nil: nothing is lacking, or other
	// policies prevent it.
	Policy *PolicyDocument `json:"policy,omitempty"`
}

// NotAllowed is Lack.Why if no policy of the caller allows an action: one that does is the
// remedy.
const NotAllowed = "no policy allows it"

// Lack is an action that the caller lacks.
type Lack struct {
	Action   string `json:"action"` // "ec2:CreateVpc"
	On       string `json:"on"`     // ARN of what it acts on, or an example of one; "*": any
	Resource ID     `json:"resource"`
	Origin   string `json:"origin,omitempty"` // the part of the manifest that the resource comes from
	Why      string `json:"why"`              // "no policy allows it"
	// Maybe says that the run may not need the action, or that the policies have conditions
	// which the simulation does not know the values of.
	Maybe bool `json:"maybe,omitempty"`
}

// String describes the action and what needs it: "ec2:CreateVpc for vpc (demo.yaml:39): no
// policy allows it".
func (l Lack) String() string {
	at, _, _ := strings.Cut(l.Origin, " ")
	if at != "" {
		at = " (" + at + ")"
	}
	return fmt.Sprintf("%s for %s%s: %s", l.Action, l.Resource, at, l.Why)
}

// PermissionError says that the caller lacks permissions that a run needs.
type PermissionError struct{ Permissions Permissions }

func (e *PermissionError) Error() string {
	permissions := "1 permission"
	if n := len(e.Permissions.Lacking); n != 1 {
		permissions = fmt.Sprintf("%d permissions", n)
	}
	what := fmt.Sprintf("%s lacks %s that this plan needs:", e.Permissions.Principal, permissions)
	for _, l := range e.Permissions.Lacking {
		what += "\n  " + l.String()
		if l.Maybe {
			what += " (the run may not need it)"
		}
	}
	return what
}

// Prevents reports whether the run fails without the lacking actions.
func (p Permissions) Prevents() bool {
	return slices.ContainsFunc(p.Lacking, func(l Lack) bool { return !l.Maybe })
}

// PolicyDocument is an IAM policy document.
type PolicyDocument struct {
	Version   string            `json:"Version"`
	Statement []PolicyStatement `json:"Statement"`
}

// PolicyStatement is a statement of a policy document. All allow.
type PolicyStatement struct {
	Sid       string                         `json:"Sid"`
	Effect    string                         `json:"Effect"`
	Action    []string                       `json:"Action"`
	Resource  []string                       `json:"Resource"`
	Condition map[string]map[string][]string `json:"Condition,omitempty"`
}
