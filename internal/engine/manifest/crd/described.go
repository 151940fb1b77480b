package crd

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// descriptionArchive holds the descriptions of the fields in the CRDs of Cluster API and CAPA, which are
// under the Apache License 2.0. internal/schemagen generates it.
//
//go:embed descriptions.json.gz
var descriptionArchive []byte

// descriptions unpacks the archive.
//
//nolint:gochecknoglobals // caches a pure function of the embedded archive
var descriptions = sync.OnceValues(func() (d struct {
	Texts  []string                  `json:"texts"`
	Fields map[string]map[string]int `json:"fields"` // by "kind/version" and path
}, err error,
) {
	r, err := gzip.NewReader(bytes.NewReader(descriptionArchive))
	if err != nil {
		return d, err
	}
	return d, json.NewDecoder(r).Decode(&d)
})

// Described returns the schema of a version of a kind with the descriptions of its fields.
func Described(kind, version string) (*apiextensionsv1.JSONSchemaProps, error) {
	name := kind + "/" + version
	raw, err := readArchive(name + ".json")
	if err == nil {
		raw, err = asServed(name+".json", raw)
	}
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	s := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	d, err := descriptions()
	if err != nil {
		return nil, fmt.Errorf("descriptions: %w", err)
	}
	Describe(s, "", func(path string) string {
		if n, ok := d.Fields[name][path]; ok {
			return d.Texts[n]
		}
		return ""
	})
	return s, nil
}

// Describe sets the descriptions of a schema and of what is below it. [] in a path stands for any item of a list, {} for
// any value of a map.
func Describe(s *apiextensionsv1.JSONSchemaProps, path string, text func(path string) string) {
	if t := text(path); t != "" {
		s.Description = t
	}
	for name, p := range s.Properties {
		Describe(&p, strings.TrimPrefix(path+"."+name, "."), text)
		s.Properties[name] = p
	}
	if s.Items != nil && s.Items.Schema != nil {
		Describe(s.Items.Schema, path+"[]", text)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		Describe(s.AdditionalProperties.Schema, path+"{}", text)
	}
}
