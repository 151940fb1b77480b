package apiserver

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	invalid "k8s.io/apimachinery/pkg/util/validation/field"
)

// apiService has the fields of an APIService that are checked. Its type is in k8s.io/kube-aggregator, which is not linked.
type apiService struct {
	Metadata struct{ Name string }
	Spec     struct {
		Group, Version                        string
		GroupPriorityMinimum, VersionPriority int32
		InsecureSkipTLSVerify                 bool
		CABundle                              string
		Service                               *struct {
			Namespace, Name string
			Port            *int32
		}
	}
}

// apiServices returns the refusals of an APIService.
func (s Server) apiServices(object map[string]any) []Refusal {
	var o apiService
	if text, err := json.Marshal(object); err != nil || json.Unmarshal(text, &o) != nil {
		return nil
	}
	c := &check{Server: s}
	if name := o.Spec.Version + "." + o.Spec.Group; o.Metadata.Name != name {
		c.refuse("metadata.name", fmt.Sprintf("%q is not spec.version and spec.group, %s", o.Metadata.Name, name), "change one of them")
	}
	between(c, "spec.groupPriorityMinimum", &o.Spec.GroupPriorityMinimum, 1, 20000)
	between(c, "spec.versionPriority", &o.Spec.VersionPriority, 1, 1000)
	local := o.Spec.Service == nil
	c.when(
		o.Spec.InsecureSkipTLSVerify && (local || o.Spec.CABundle != ""),
		"spec.insecureSkipTLSVerify",
		"is set, and there is nothing to skip or caBundle",
		"remove it",
	)
	if !local {
		c.serviceReference("spec.service.", o.Spec.Service.Namespace, o.Spec.Service.Name, nil, o.Spec.Service.Port)
	}
	return c.found
}

// priorityLevel checks a PriorityLevelConfiguration (pkg/apis/flowcontrol/validation).
func (c *check) priorityLevel(o *flowcontrolv1.PriorityLevelConfiguration) {
	const exempt = "exempt"
	s := &o.Spec
	c.need("spec.type", string(s.Type))
	oneOf(c, "spec.type", s.Type, flowcontrolv1.PriorityLevelEnablementLimited, flowcontrolv1.PriorityLevelEnablementExempt)
	if s.Type == flowcontrolv1.PriorityLevelEnablementExempt {
		c.when(o.Name != exempt, "spec.type", "Exempt is only for the object with the name exempt", "write Limited")
		return
	}
	if s.Limited == nil {
		c.when(s.Type == flowcontrolv1.PriorityLevelEnablementLimited, "spec.limited", "the type Limited needs it", "set it")
		return
	}
	const at = "spec.limited."
	if n := s.Limited.NominalConcurrencyShares; n != nil {
		c.notNegative(at+"nominalConcurrencyShares", n)
	}
	between(c, at+"lendablePercent", s.Limited.LendablePercent, 0, 100)
	c.notNegative(at+"borrowingLimitPercent", s.Limited.BorrowingLimitPercent)
	r := &s.Limited.LimitResponse
	c.need(at+"limitResponse.type", string(r.Type))
	oneOf(c, at+"limitResponse.type", r.Type, flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)
	queues := r.Type == flowcontrolv1.LimitResponseTypeQueue
	c.when(queues && r.Queuing == nil, at+"limitResponse.queuing", "the type Queue needs it", "set it, at least to {}")
	c.when(!queues && r.Queuing != nil, at+"limitResponse.queuing", "is only for the type Queue", "remove it, or change the type")
}

func (c *check) flowSchema(o *flowcontrolv1.FlowSchema) {
	const most, first = 10000, 1
	s := &o.Spec
	if n := s.MatchingPrecedence; n != 0 { // by default, it is 1000
		between(c, "spec.matchingPrecedence", &n, first, most)
		c.when(n == first && o.Name != "exempt", "spec.matchingPrecedence", "1 is only for the object with the name exempt", "use a larger number")
	}
	c.need("spec.priorityLevelConfiguration.name", s.PriorityLevelConfiguration.Name)
	c.subdomain("spec.priorityLevelConfiguration.name", s.PriorityLevelConfiguration.Name)
	for i, r := range s.Rules {
		at := fmt.Sprintf("spec.rules[%d]", i)
		c.when(len(r.Subjects) == 0, at+".subjects", "at least one subject is required", "add one")
		c.when(len(r.ResourceRules)+len(r.NonResourceRules) == 0, at, "needs resourceRules or nonResourceRules", "add one of them")
		for j := range r.Subjects {
			c.flowSubject(fmt.Sprintf("%s.subjects[%d].", at, j), &r.Subjects[j])
		}
	}
}

func (c *check) flowSubject(at string, s *flowcontrolv1.Subject) {
	const user, group, account = flowcontrolv1.SubjectKindUser, flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount
	c.need(at+"kind", string(s.Kind))
	oneOf(c, at+"kind", s.Kind, user, group, account)
	for _, one := range []struct {
		name string
		kind flowcontrolv1.SubjectKind
		set  bool
	}{{"user", user, s.User != nil}, {"group", group, s.Group != nil}, {"serviceAccount", account, s.ServiceAccount != nil}} {
		c.when(s.Kind == one.kind && !one.set, at+one.name, fmt.Sprintf("the kind %s needs it", one.kind), "set it")
		c.when(s.Kind != one.kind && one.set, at+one.name, fmt.Sprintf("is only for the kind %s", one.kind), "remove it, or change the kind")
	}
}

// signing checks a CertificateSigningRequest (pkg/apis/certificates/validation).
func (c *check) signing(s *certificatesv1.CertificateSigningRequestSpec) {
	c.when(len(s.Usages) == 0, "spec.usages", "at least one usage is required", "write one such as client auth")
	domain, name, _ := strings.Cut(s.SignerName, "/")
	full := len(validation.IsFullyQualifiedDomainName(invalid.NewPath(""), domain)) == 0
	c.when(!full || name == "", "spec.signerName", fmt.Sprintf("%q is not DOMAIN/NAME", s.SignerName), "write one such as kubernetes.io/kube-apiserver-client")
	block, _ := pem.Decode(s.Request)
	c.when(block == nil || block.Type != "CERTIFICATE REQUEST", "spec.request", "is no request in PEM, encoded in base64", "make one with openssl req")
	between(c, "spec.expirationSeconds", s.ExpirationSeconds, 600, 1<<31-1)
}
