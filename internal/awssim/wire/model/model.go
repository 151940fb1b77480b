// Package model has the part of AWS's own API models that the simulated AWS needs to
// speak HTTP: protocols, names and places of members, formats, errors. The models are
// those of botocore; "go generate" copies what the simulated operations use.
package model

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed" // for go:embed
	"encoding/json"
	"fmt"
	"strings"
)

//go:generate go run ./generate models.json.gz

//go:embed models.json.gz
var data []byte

// Service is the model of a service. The names in JSON are botocore's.
type Service struct {
	Metadata   Metadata             `json:"metadata"`
	Operations map[string]Operation `json:"operations"`
	Shapes     map[string]Shape     `json:"shapes"`
}

// Metadata has the properties that all operations of a service share.
type Metadata struct {
	ID        string `json:"serviceId"`
	Protocol  string `json:"protocol"` // "ec2", "query", "json", "rest-json" or "rest-xml"
	Version   string `json:"apiVersion"`
	Endpoint  string `json:"endpointPrefix"`
	Signing   string `json:"signingName,omitempty"`  // empty: Endpoint
	JSON      string `json:"jsonVersion,omitempty"`  // "1.0" or "1.1"
	Target    string `json:"targetPrefix,omitempty"` // of the header X-Amz-Target
	Namespace string `json:"xmlNamespace,omitempty"`
}

// Operation is one operation.
type Operation struct {
	HTTP struct {
		Method string `json:"method"`
		URI    string `json:"requestUri"`
		Status int    `json:"responseCode,omitempty"`
	} `json:"http"`
	Input  Member   `json:"input,omitzero"`
	Output Member   `json:"output,omitzero"`
	Errors []Member `json:"errors,omitempty"`
}

// Shape is a type.
type Shape struct {
	Type      string            `json:"type"`
	Members   map[string]Member `json:"members,omitempty"` // of a structure
	Item      Member            `json:"member,omitzero"`   // of a list
	Key       Member            `json:"key,omitzero"`      // of a map
	Value     Member            `json:"value,omitzero"`    // of a map
	Flattened bool              `json:"flattened,omitempty"`
	Payload   string            `json:"payload,omitempty"` // the member that is the body
	Timestamp string            `json:"timestampFormat,omitempty"`
	Error     Error             `json:"error,omitzero"`
}

// Member is a reference to a shape.
type Member struct {
	Shape     string `json:"shape"`
	Name      string `json:"locationName,omitempty"`
	Query     string `json:"queryName,omitempty"`
	Location  string `json:"location,omitempty"` // "uri", "querystring", "header", "headers" or "statusCode"; empty: the body
	Wrapper   string `json:"resultWrapper,omitempty"`
	Flattened bool   `json:"flattened,omitempty"`
	Timestamp string `json:"timestampFormat,omitempty"`
}

// Error says how an error is encoded.
type Error struct {
	Code   string `json:"code,omitempty"` // empty: the name of the shape
	Status int    `json:"httpStatusCode,omitempty"`
}

// Load returns the models, by the name of the package of the service in the SDK.
func Load() (map[string]*Service, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("models of AWS's services: %w", err)
	}
	all := map[string]*Service{}
	if err := json.NewDecoder(unzipped).Decode(&all); err != nil {
		return nil, fmt.Errorf("models of AWS's services: %w", err)
	}
	return all, nil
}

// Package returns the name of the package of the service in the SDK.
func (s *Service) Package() string {
	return strings.ToLower(strings.ReplaceAll(s.Metadata.ID, " ", ""))
}

// Scope returns the name of the service in the scope of a credential.
func (s *Service) Scope() string {
	return cmp.Or(s.Metadata.Signing, s.Metadata.Endpoint)
}

// Flat reports whether the items of a list or map are members of the structure around it,
// without an element for the list or map itself.
func (s *Service) Flat(m Member) bool { return m.Flattened || s.Shapes[m.Shape].Flattened }

// ErrorOf returns the shape of the error with a code, and whether it is in the model.
func (s *Service) ErrorOf(op, code string) (Shape, bool) {
	for _, e := range s.Operations[op].Errors {
		if shape := s.Shapes[e.Shape]; e.Shape == code || shape.Error.Code == code {
			return shape, true
		}
	}
	return Shape{}, false
}
