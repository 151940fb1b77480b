package iam

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// Maximum sizes of documents, in characters without whitespace: quotas of IAM.
const (
	mostPolicy      = 6144
	mostTrust       = 2048
	MostRoleInline  = 10240 // of all inline policies of a role
	MostUserInline  = 2048
	MostGroupInline = 5120
)

func malformedPolicy(text string) error {
	return &types.MalformedPolicyDocumentException{Message: aws.String(text)}
}

// size counts the characters of a document as IAM does.
func size(document string) (n int) {
	for _, r := range document {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// checkPolicy validates a permissions policy.
func checkPolicy(document string) error {
	statements, err := parseDocument(document)
	if err != nil {
		return err
	}
	sids := map[string]bool{}
	for _, s := range statements {
		if s["Principal"] != nil || s["NotPrincipal"] != nil {
			return malformedPolicy("Policy document should not specify a principal.")
		}
		sid, named := s["Sid"].(string)
		if strings.ContainsFunc(sid, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			return malformedPolicy("Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular expression [0-9A-Za-z]*")
		}
		if named && sids[sid] {
			return malformedPolicy("Statement IDs (SID) in a single policy must be unique.")
		}
		sids[sid] = true
		if err := either(s, "Resource", "Policy statement must contain resources."); err != nil {
			return err
		}
	}
	return nil
}

// checkPartition requires that the resources of a policy are in the partition of the account.
func (svc *Service) checkPartition(document string) error {
	statements, err := parseDocument(document)
	if err != nil {
		return err
	}
	for _, s := range statements {
		for _, x := range append(elements(s["Resource"]), elements(s["NotResource"])...) {
			arn, _ := x.(string)
			of := strings.Split(arn, ":")
			if len(of) > 1 && of[1] != svc.Partition() && of[1] != "*" {
				return malformedPolicy("Partition \"" + of[1] + "\" is not valid for resource \"" + arn + "\".")
			}
		}
	}
	return nil
}

// CheckTrust validates a trust policy.
func CheckTrust(document string) error {
	if size(document) > mostTrust {
		return limitExceeded("ACLSizePerRole", "2048")
	}
	statements, err := parseDocument(document)
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, ok := s["Resource"]; ok {
			return malformedPolicy("Has prohibited field Resource")
		}
		principal, ok := s["Principal"].(map[string]any)
		if s["Principal"] != "*" && (!ok || len(principal) == 0) && s["NotPrincipal"] == nil {
			return malformedPolicy("AssumeRole policy must contain principals.")
		}
	}
	return nil
}

// parseDocument returns the statements of a document.
func parseDocument(document string) ([]map[string]any, error) {
	var d struct {
		Version   string
		ID        any `json:"Id"`
		Statement json.RawMessage
	}
	if !strings.HasPrefix(strings.TrimSpace(document), "{") || json.Unmarshal([]byte(document), &d) != nil {
		return nil, malformedPolicy("Syntax errors in policy.")
	}
	if d.Version != "" && d.Version != "2012-10-17" && d.Version != "2008-10-17" {
		return nil, malformedPolicy("Syntax errors in policy.")
	}
	var list []map[string]any
	if json.Unmarshal(d.Statement, &list) != nil {
		var one map[string]any
		if json.Unmarshal(d.Statement, &one) != nil {
			return nil, malformedPolicy("Syntax errors in policy.")
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, malformedPolicy("Syntax errors in policy.")
	}
	known := []string{"Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition"}
	for _, s := range list {
		for k := range s {
			if !slices.Contains(known, k) {
				return nil, malformedPolicy("Syntax errors in policy.")
			}
		}
		if s["Effect"] != "Allow" && s["Effect"] != "Deny" {
			return nil, malformedPolicy("Syntax errors in policy.")
		}
		if err := either(s, "Action", "Policy statement must contain actions."); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// either checks that a statement has a field or its negation, and that it is not empty.
func either(s map[string]any, field, missing string) error {
	v, ok := s[field]
	if !ok {
		v, ok = s["Not"+field]
	}
	list := elements(v)
	if !ok || len(list) == 0 {
		return malformedPolicy(missing)
	}
	for _, x := range list {
		text, isText := x.(string)
		if !isText {
			return malformedPolicy("Syntax errors in policy.")
		}
		if field == "Action" && text != "*" && !strings.Contains(text, ":") {
			return malformedPolicy("Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.")
		}
		if field == "Resource" && text != "*" && strings.Count(text, ":") < 5 {
			return malformedPolicy("Resource " + text + " must be in ARN format or \"*\".")
		}
	}
	return nil
}

// elements returns the elements of a list, or a single value.
func elements(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}
