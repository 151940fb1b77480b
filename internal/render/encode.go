package render

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Format is a way to print an answer.
type Format string

// The formats.
const (
	Text Format = "text"
	JSON Format = "json"
	YAML Format = "yaml"
)

// Encode prints a value as JSON or YAML, with the same field names.
func Encode(w io.Writer, f Format, v any) error {
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	out = []byte(visible(string(out))) // JSON allows a few control characters that YAML does not
	switch f {
	case JSON:
		out = append(out, '\n')
	case YAML:
		if out, err = yaml.JSONToYAML(out); err != nil {
			return err
		}
	case Text:
		fallthrough
	default:
		return fmt.Errorf("cannot encode as %q", f)
	}
	_, err = w.Write(out)
	return err
}
