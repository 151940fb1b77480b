package iam

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// Services that assume roles for EKS.
const (
	ServiceEKS     = "eks.amazonaws.com"
	ServiceEC2     = "ec2.amazonaws.com"
	ServiceFargate = "eks-fargate-pods.amazonaws.com"
	ServicePods    = "pods.eks.amazonaws.com"
)

// Distrusts says that the trust policy of a role does not let an AWS service assume it, with session tags if the service sets some; "" if it
// does, or if that is not known. Conditions are not evaluated ("AWS JSON policy elements: Principal", IAM user guide).
func (s RoleState) Distrusts(service string, tagsSessions bool) string {
	var policy struct{ Statement oneOrMore[statement] }
	if s.Trust == "" || json.Unmarshal([]byte(s.Trust), &policy) != nil {
		return ""
	}
	actions := []string{"sts:AssumeRole"}
	if tagsSessions {
		actions = append(actions, "sts:TagSession")
	}
	for _, action := range actions {
		if !slices.ContainsFunc(policy.Statement, func(x statement) bool { return x.allows(service, action) }) {
			return fmt.Sprintf(
				"the trust policy of the role %s does not let %s call %s: add it (aws iam update-assume-role-policy --role-name %[1]s), or name another role",
				s.Name,
				service,
				strings.Join(actions, " and "),
			)
		}
	}
	return ""
}

// DistrustsMachines says that EC2 may not assume the role of an instance profile, as IAM answers it, so that its machines get no credentials.
func DistrustsMachines(role types.Role) string {
	trust, err := url.QueryUnescape(aws.ToString(role.AssumeRolePolicyDocument)) // RFC 3986
	if err != nil {
		return ""
	}
	return RoleState{Name: aws.ToString(role.RoleName), Trust: trust}.Distrusts(ServiceEC2, false)
}

// statement is a part of a trust policy.
type statement struct {
	Effect       string
	Principal    principals
	NotPrincipal any
	Action       oneOrMore[string]
	NotAction    any
}

// allows reports whether a statement may let a service call an action.
func (s statement) allows(service, action string) bool {
	if s.Effect != "Allow" {
		return false
	}
	called := s.NotAction != nil || slices.ContainsFunc(s.Action, func(a string) bool {
		start, wild := strings.CutSuffix(strings.ToLower(a), "*")
		return strings.EqualFold(a, action) || wild && strings.HasPrefix(strings.ToLower(action), start)
	})
	return called && (s.NotPrincipal != nil || s.Principal.any || slices.ContainsFunc(s.Principal.Service, func(p string) bool {
		return strings.TrimSuffix(p, ".cn") == service // in China, some names of services have the suffix
	}))
}

// principals are those of a statement: services and others, or all.
type principals struct {
	Service oneOrMore[string]
	any     bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *principals) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), `"`) { // "*"
		p.any = true
		return nil
	}
	var named struct{ Service oneOrMore[string] }
	err := json.Unmarshal(data, &named)
	p.Service = named.Service
	p.any = slices.Contains(p.Service, "*")
	return err
}

// oneOrMore is a list that may be written as its only item.
type oneOrMore[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *oneOrMore[T]) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), "[") {
		return json.Unmarshal(data, (*[]T)(l))
	}
	var one T
	err := json.Unmarshal(data, &one)
	*l = oneOrMore[T]{one}
	return err
}
