package manifest

import (
	"archive/zip"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// schemaArchive holds the structural schemas of the CRDs, made by
// internal/schemagen.
//
//go:embed schemas.zip
var schemaArchive []byte

// schemas remembers what was compiled: compiling takes milliseconds per kind,
// and a compiled schema never changes.
//
//nolint:gochecknoglobals // the memo of a pure function of the embedded archive
var schemas sync.Map // "kind/version" to func() (*schema, error)

// schema is the CRD schema of one version of a kind, ready for use.
type schema struct {
	structural *structuralschema.Structural
	openapi    validation.SchemaValidator
	rules      func() *cel.Validator // nil when the schema has no CEL rules
}

// schemaFor compiles the schema of a kind, once.
func schemaFor(kind, version string) (*schema, error) {
	name := kind + "/" + version
	made, _ := schemas.LoadOrStore(name, sync.OnceValues(func() (*schema, error) {
		return compile(name + ".json")
	}))
	get, ok := made.(func() (*schema, error))
	if !ok {
		return nil, fmt.Errorf("schema %s: unexpected %T", name, made)
	}
	return get()
}

func compile(name string) (*schema, error) {
	raw, err := readArchive(name)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	var published apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(raw, &published); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&published, &internal, nil); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	openapi, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return &schema{
		structural: structural,
		openapi:    openapi,
		rules: sync.OnceValue(func() *cel.Validator {
			return cel.NewValidator(structural, true, celconfig.PerCallLimit)
		}),
	}, nil
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

// prune removes what the schema does not know from an object and returns the
// paths of it.
func (s *schema) prune(object map[string]any) []string {
	unknown := pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(unknown)
	return unknown
}

// fill sets the defaults of the schema and drops nulls where the schema has no
// place for them, as an API server does before it validates.
func (s *schema) fill(object map[string]any) {
	defaulting.Default(object, s.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
}

// validate checks an object the way an API server checks a custom resource:
// OpenAPI first, then sets and maps in lists, and CEL rules only when the
// shape is right.
func (s *schema) validate(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, s.openapi)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(errs) > 0 {
		return errs
	}
	rules := s.rules()
	if rules == nil {
		return nil
	}
	errs, _ = rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return errs
}

// siblings lists the field names the schema has beside the one at a path.
func (s *schema) siblings(path string) []string {
	at := s.structural
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' })
	for _, segment := range segments[:max(len(segments)-1, 0)] {
		switch next, known := at.Properties[segment]; {
		case known:
			at = &next
		case strings.HasSuffix(segment, "]") && at.Items != nil:
			at = at.Items
		case at.AdditionalProperties != nil && at.AdditionalProperties.Structural != nil:
			at = at.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	names := make([]string, 0, len(at.Properties))
	for name := range at.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
