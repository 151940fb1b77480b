package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// OneOrMore is a list in a policy document, in which a single element may be written without brackets.
type OneOrMore[T any] []T

// UnmarshalJSON decodes a list or an element. Unknown fields are an error.
func (l *OneOrMore[T]) UnmarshalJSON(text []byte) error {
	elements := []json.RawMessage{text}
	if bytes.HasPrefix(text, []byte("[")) {
		if err := json.Unmarshal(text, &elements); err != nil {
			return err
		}
	}
	*l = make([]T, len(elements))
	for i, e := range elements {
		if err := Strictly(e, &(*l)[i]); err != nil {
			return err
		}
	}
	return nil
}

// Strictly decodes JSON. Unknown fields, and names with different case, are an error.
func Strictly(text []byte, into any) error {
	var fields map[string]json.RawMessage
	if t := reflect.TypeOf(into).Elem(); t.Kind() == reflect.Struct && json.Unmarshal(text, &fields) == nil {
		for name := range fields {
			if _, known := t.FieldByName(name); !known && name != "Id" {
				return fmt.Errorf("unknown field %q", name)
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
