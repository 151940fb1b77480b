package proof_test

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// schema is a part of the schema of a CustomResourceDefinition.
type schema struct {
	Type        string             `json:"type"`
	Enum        []any              `json:"enum"`
	Minimum     *float64           `json:"minimum"`
	Maximum     *float64           `json:"maximum"`
	Required    []string           `json:"required"`
	Properties  map[string]*schema `json:"properties"`
	Items       *schema            `json:"items"`
	Additional  *schema            `json:"additionalProperties"`
	IntOrString bool               `json:"x-kubernetes-int-or-string"`
}

// schemaOf returns the schema of a kind, or nil for a kind of Kubernetes itself.
func schemaOf(t *testing.T, kind, version string) *schema {
	t.Helper()
	z, err := zip.OpenReader("../../internal/engine/manifest/crd/schemas.zip")
	require.NoError(t, err)
	defer func() { require.NoError(t, z.Close()) }()
	f, err := z.Open(kind + "/" + version + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	raw, err := io.ReadAll(f)
	require.NoError(t, err)
	var s schema
	require.NoError(t, json.Unmarshal(raw, &s))
	return &s
}

// field is a field of an object in a manifest: a value, or a list or map of values.
type field struct {
	path   string // as in the manifest; [] is the first item of a list
	name   string // the last part of the path
	schema *schema
	get    func() any
	set    func(any) // sets the field in a copy of the object
}

// fieldsOf lists the fields of an object that have no fields of their own.
func fieldsOf(s *schema, get func() any, set func(any)) []field {
	return field{"", "", s, get, set}.below(0)
}

func (f field) below(depth int) (out []field) {
	const deepest = 14
	switch s := f.schema; {
	case depth > deepest:
	case len(s.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if f.path != "" || name == "spec" {
				out = append(out, f.property(name).below(depth+1)...)
			}
		}
	case s.Items != nil && len(s.Items.Properties) > 0:
		out = append(f.item().below(depth+1), f)
	default:
		out = []field{f}
	}
	return out
}

func (f field) property(name string) field {
	return field{strings.TrimPrefix(f.path+"."+name, "."), name, f.schema.Properties[name], func() any {
		m, _ := f.get().(map[string]any)
		return m[name]
	}, func(v any) {
		m, ok := f.get().(map[string]any)
		if ok {
			m = maps.Clone(m)
		} else {
			m = f.schema.least(0)
		}
		if m[name] = v; v == nil {
			delete(m, name)
		}
		f.set(m)
	}}
}

func (f field) item() field {
	return field{f.path + "[]", f.name, f.schema.Items, func() any {
		if l, _ := f.get().([]any); len(l) > 0 {
			return l[0]
		}
		return nil
	}, func(v any) {
		l, _ := f.get().([]any)
		if l = slices.Clone(l); len(l) == 0 {
			l = make([]any, 1)
		}
		l[0] = v
		f.set(l)
	}}
}

// least is an object with its required fields only.
func (s *schema) least(depth int) map[string]any {
	o := map[string]any{}
	for _, name := range s.Required {
		if p := s.Properties[name]; p != nil && depth < 6 {
			o[name] = p.some(name, depth+1)
		}
	}
	return o
}

// some is a value that the schema accepts.
func (s *schema) some(name string, depth int) any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.IntOrString:
		return 1
	case s.Type == "boolean":
		return true
	case s.Type == "integer" || s.Type == "number":
		if s.Minimum != nil {
			return int64(*s.Minimum)
		}
		return int64(1)
	case s.Type == "array":
		return []any{s.Items.some(name, depth)}
	case len(s.Properties) > 0:
		return s.least(depth)
	case s.Additional != nil:
		return map[string]any{"other": s.Additional.some(name, depth)}
	case s.Type == "string":
		return usual(name)
	}
	return map[string]any{}
}

// usual is a plausible value of a required text.
func usual(name string) string {
	switch lower := strings.ToLower(name); {
	case strings.Contains(lower, "cidr"):
		return "10.0.0.0/16"
	case lower == "devicename":
		return "/dev/sdf"
	case strings.HasSuffix(lower, "url"):
		return "https://example.com"
	case lower == "protocol":
		return "tcp"
	case lower == "path":
		return "/etc/other"
	case strings.HasSuffix(lower, "arn"):
		return "arn:aws:iam::123456789012:role/other"
	}
	return "other"
}
