package lives_test

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// schemaNode is a part of the schema of a CRD.
type schemaNode struct {
	Type                 string                 `json:"type"`
	Enum                 []any                  `json:"enum"`
	Minimum              *float64               `json:"minimum"`
	Maximum              *float64               `json:"maximum"`
	Required             []string               `json:"required"`
	Properties           map[string]*schemaNode `json:"properties"`
	Items                *schemaNode            `json:"items"`
	AdditionalProperties *schemaNode            `json:"additionalProperties"`
	IntOrString          bool                   `json:"x-kubernetes-int-or-string"`
	Open                 bool                   `json:"x-kubernetes-preserve-unknown-fields"`
}

// schemaOf returns the schema of a kind, or nil for a kind of Kubernetes itself.
func schemaOf(t *testing.T, kind, version string) *schemaNode {
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
	var n schemaNode
	require.NoError(t, json.Unmarshal(raw, &n))
	return &n
}

// guesses returns plausible values for a string field, chosen by the name of the field.
func guesses(name string) []any {
	var out []any
	for _, row := range []struct {
		names  string
		values []any
	}{
		{`(?i)arn$`, []any{"arn:aws:iam::123456789012:role/other"}},
		{`(?i)cidr|address`, []any{"10.77.0.0/16", "10.77.0.1", "192.168.7.0/24"}},
		{`(?i)timeout|period|interval|duration|^ttl|backoff`, []any{"7m0s", "70s"}},
		{`(?i)version$`, []any{"v1.34.0", "v1.33.0"}},
		{`(?i)instanceType`, []any{"m5.large"}},
		{`(?i)zone|failureDomain`, []any{"us-east-1c", "us-east-1b", "us-east-1d"}},
		{`(?i)url$|endpoint|server$`, []any{"https://example.com"}},
		{`(?i)path$|dir$|file$`, []any{"/etc/other"}},
		{`(?i)protocol`, []any{"tcp", "TCP", "HTTP"}},
		{`(?i)size|quantity|memory|cpu`, []any{"7Gi"}},
	} {
		if regexp.MustCompile(row.names).MatchString(name) {
			out = append(out, row.values...)
		}
	}
	return append(out, "other", "a-1", "7")
}

// candidates are values for a part of a manifest.
func candidates(name string, n *schemaNode, depth int) (out []any) {
	switch {
	case depth > 8:
		return nil
	case len(n.Enum) > 0:
		return n.Enum
	case n.IntOrString:
		return []any{3, "50%"}
	case n.Type == "boolean":
		return []any{true, false}
	case n.Type == "integer" || n.Type == "number":
		low, high := 1.0, 1e9
		if n.Minimum != nil {
			low = *n.Minimum
		}
		if n.Maximum != nil {
			high = *n.Maximum
		}
		for _, v := range []float64{7, 3, 30, 77, 777, 30077, low, low + 1, low + 2} {
			if v >= low && v <= high {
				out = append(out, int64(v))
			}
		}
		return out
	case n.Type == "string":
		return guesses(name)
	case n.Type == "array":
		for _, item := range candidates(name, n.Items, depth+1) {
			out = append(out, []any{item})
		}
		return out
	case n.AdditionalProperties != nil:
		for _, item := range candidates(name, n.AdditionalProperties, depth+1) {
			out = append(out, map[string]any{"other": item}, map[string]any{"node.cluster.x-k8s.io/other": item})
		}
		return out
	case n.Open && len(n.Properties) == 0:
		return []any{map[string]any{"other": "value"}}
	case n.Type == "object" || len(n.Properties) > 0:
		return []any{minimal(n, depth+1)}
	}
	return []any{map[string]any{"other": "value"}}
}

// minimal returns an object with the required fields.
func minimal(n *schemaNode, depth int) map[string]any {
	o := map[string]any{}
	for _, name := range n.Required {
		if p := n.Properties[name]; p != nil {
			if values := candidates(name, p, depth); len(values) > 0 {
				o[name] = values[0]
			}
		}
	}
	return o
}

// field is a field of an object in a manifest.
type field struct {
	path   string // as in the manifest; [] is the first item of a list
	name   string // the last part of the path
	schema *schemaNode
	get    func() any
	set    func(value any)
}

// fieldsOf lists the fields of an object that have no fields of their own. Get and set read
// and replace the object as a whole. Set copies what it changes.
func fieldsOf(n *schemaNode, get func() any, set func(any)) []field {
	return below(field{"", "", n, get, set}, 0)
}

func below(f field, depth int) (out []field) {
	switch n := f.schema; {
	case depth > 14:
	case len(n.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			if f.path == "" && name != "spec" {
				continue
			}
			out = append(out, below(f.property(name), depth+1)...)
		}
	case n.Items != nil && len(n.Items.Properties) > 0:
		out = below(f.firstItem(), depth+1)
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
			m = minimal(f.schema, 0)
		}
		m[name] = v
		f.set(m)
	}}
}

func (f field) firstItem() field {
	return field{f.path + "[]", f.name, f.schema.Items, func() any {
		if l, _ := f.get().([]any); len(l) > 0 {
			return l[0]
		}
		return nil
	}, func(v any) {
		l, _ := f.get().([]any)
		l = slices.Clone(l)
		if len(l) == 0 {
			l = make([]any, 1)
		}
		l[0] = v
		f.set(l)
	}}
}
