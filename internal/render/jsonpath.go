package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Path is an expression that selects parts of a document, as kubectl's -o jsonpath does.
type Path struct{ path *jsonpath.JSONPath }

// ParsePath parses an expression, with or without braces and the leading dot:
// "{.resources[*].state}", ".version" or "version".
func ParsePath(expression string) (*Path, error) {
	if expression == "" {
		return nil, fmt.Errorf("the expression is empty: use one such as {.version}")
	}
	if !strings.Contains(expression, "{") {
		expression = "{." + strings.TrimPrefix(strings.TrimPrefix(expression, "$"), ".") + "}"
	}
	p := jsonpath.New("output").AllowMissingKeys(true)
	if err := p.Parse(expression); err != nil {
		return nil, err
	}
	return &Path{p}, nil
}

// Print prints what the expression selects from a value, by the names of its JSON fields, and
// a line break. A field that is missing is printed as nothing.
func (p *Path) Print(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.path.Execute(&b, document); err != nil {
		return fmt.Errorf("jsonpath: %w", err)
	}
	_, err = io.WriteString(w, visible(strings.TrimSuffix(b.String(), "\n"))+"\n")
	return err
}
