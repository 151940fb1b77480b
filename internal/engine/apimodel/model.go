// Package apimodel checks requests against the constraints of AWS's own API models: required members, values of enums,
// ranges, lengths and patterns. The models are those of botocore; "go generate" copies what is needed.
package apimodel

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for go:embed
	"encoding/json"
	"fmt"
	"sync"
)

//go:generate go run ./generate constraints.json.gz

//go:embed constraints.json.gz
var data []byte

// Service has the constraints of some operations of a service. The names in JSON are botocore's.
type Service struct {
	Metadata struct {
		ID string `json:"serviceId"`
	} `json:"metadata"`
	Operations map[string]Operation `json:"operations"`
	Shapes     map[string]Shape     `json:"shapes"`

	patterns sync.Map // the compiled patterns of the shapes, *regexp.Regexp, by their text
}

// Operation is an operation of a service.
type Operation struct {
	Input Member `json:"input,omitzero"`
}

// Member refers to a shape.
type Member struct {
	Shape string `json:"shape,omitempty"`
}

// Shape is a type with its constraints.
type Shape struct {
	Type     string            `json:"type"`
	Members  map[string]Member `json:"members,omitempty"` // of a structure
	Required []string          `json:"required,omitempty"`
	Item     Member            `json:"member,omitzero"` // of a list
	Key      Member            `json:"key,omitzero"`    // of a map
	Value    Member            `json:"value,omitzero"`
	Min      *float64          `json:"min,omitempty"`
	Max      *float64          `json:"max,omitempty"`
	Enum     []string          `json:"enum,omitempty"`
	Pattern  string            `json:"pattern,omitempty"`
}

// Only returns the constraints of those operations that the service has. Enums with more values than AWS leaves unchanged for a year, such as
// instance types, are not constraints: a plan asks AWS for them.
func (s *Service) Only(operations []string) *Service {
	out := &Service{Metadata: s.Metadata, Operations: map[string]Operation{}, Shapes: map[string]Shape{}}
	for _, name := range operations {
		op, is := s.Operations[name]
		if !is {
			continue
		}
		out.Operations[name] = op
		s.copyTo(out.Shapes, op.Input)
	}
	return out
}

const mostValues = 100

func (s *Service) copyTo(to map[string]Shape, from ...Member) {
	for _, m := range from {
		if _, done := to[m.Shape]; done || m.Shape == "" {
			continue
		}
		shape := s.Shapes[m.Shape]
		if len(shape.Enum) > mostValues {
			shape.Enum = nil
		}
		to[m.Shape] = shape
		s.copyTo(to, shape.Item, shape.Key, shape.Value)
		for _, member := range shape.Members {
			s.copyTo(to, member)
		}
	}
}

// Models are the constraints by the ID of the service.
type Models map[string]*Service

// Load reads the constraints. It does so once in a process.
func Load() (Models, error) { return load() }

var load = sync.OnceValues(func() (all Models, err error) { //nolint:gochecknoglobals // constant data, which is read when it is needed first
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		err = json.NewDecoder(z).Decode(&all)
	}
	if err != nil {
		return nil, fmt.Errorf("constraints of AWS's APIs: %w", err)
	}
	return all, nil
})

// Knows reports whether requests of an operation are checked.
func (m Models) Knows(service, operation string) bool {
	if m[service] == nil {
		return false
	}
	_, known := m[service].Operations[operation]
	return known
}
