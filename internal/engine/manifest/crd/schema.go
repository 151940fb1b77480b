package crd

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// schemaArchive holds the structural schemas of the CRDs. internal/schemagen generates
// it.
//
//go:embed schemas.zip
var schemaArchive []byte

// schemas caches compiled schemas: compilation takes milliseconds for each kind, and the
// result never changes.
//
//nolint:gochecknoglobals // caches a pure function of the embedded archive
var schemas sync.Map // "kind/version" -> func() (*Schema, error)

// For returns the compiled schema of a kind.
func For(kind, version string) (*Schema, error) {
	name := kind + "/" + version
	made, _ := schemas.LoadOrStore(name, sync.OnceValues(func() (*Schema, error) {
		return compile(name + ".json")
	}))
	get, ok := made.(func() (*Schema, error))
	if !ok {
		return nil, fmt.Errorf("schema %s: unexpected %T", name, made)
	}
	return get()
}

func compile(name string) (*Schema, error) {
	raw, err := readArchive(name)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	if raw, err = asServed(name, raw); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	s, err := Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return s, nil
}

// asServed returns a schema as the releases of CAPA served it. The CustomResourceDefinition of the last
// releases has the subnets of v1beta2 in AWSManagedControlPlane v1beta1, which they do not serve; while it
// was served, id was optional (api/v1beta1/network_types.go).
func asServed(name string, raw []byte) ([]byte, error) {
	if name != manifest.KindManagedPlane+"/"+manifest.VersionOld+".json" {
		return raw, nil
	}
	var s map[string]any
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	subnets, ok := manifest.ValueAt(s, "properties.spec.properties.network.properties.subnets").(map[string]any)
	items, isObject := subnets["items"].(map[string]any)
	if !ok || !isObject {
		return nil, errors.New("it has no subnets")
	}
	delete(subnets, "x-kubernetes-list-map-keys")
	subnets["x-kubernetes-list-type"] = "atomic"
	delete(items, "required")
	return json.Marshal(s)
}

func readArchive(name string) ([]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(schemaArchive), int64(len(schemaArchive)))
	if err != nil {
		return nil, err
	}
	f, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(f)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return raw, err
}

// Raw returns the JSON of the OpenAPI schema of a version of a kind.
func Raw(kind, version string) ([]byte, error) { return readArchive(kind + "/" + version + ".json") }
