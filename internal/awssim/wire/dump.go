package wire

import (
	"encoding/base64"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/wire/model"
)

// dump reads a part of an output: the result is nil if it is not set, else a tree, a
// []any, a string, a bool, an int64, a float64, a []byte, a time.Time or an io.Reader.
func dump(s *model.Service, shape string, v reflect.Value) any {
	switch v.Kind() { //nolint:exhaustive // the others are numbers and texts
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		if body, ok := v.Interface().(io.Reader); ok {
			return body
		}
		return dump(s, shape, v.Elem())
	case reflect.Struct:
		return dumpStruct(s, shape, v)
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		t := tree{}
		for _, k := range v.MapKeys() {
			t[k.String()] = dump(s, s.Shapes[shape].Value.Shape, v.MapIndex(k))
		}
		return t
	case reflect.Slice:
		return dumpSlice(s, shape, v)
	case reflect.String:
		if v.Len() == 0 && v.Type() != reflect.TypeFor[string]() { // an enum
			return nil
		}
		return v.String()
	case reflect.Bool:
		return v.Bool()
	}
	if v.CanInt() {
		return v.Int()
	}
	return v.Float()
}

func dumpStruct(s *model.Service, shape string, v reflect.Value) any {
	if at, ok := v.Interface().(time.Time); ok {
		return at
	}
	t := tree{}
	for name, m := range s.Shapes[shape].Members {
		if f := v.FieldByName(field(name)); f.IsValid() {
			if value := dump(s, m.Shape, f); value != nil {
				t[name] = value
			}
		}
	}
	return t
}

func dumpSlice(s *model.Service, shape string, v reflect.Value) any {
	if v.IsNil() {
		return nil
	}
	if v.Type() == reflect.TypeFor[[]byte]() {
		return v.Bytes()
	}
	list := make([]any, v.Len())
	for i := range list {
		list[i] = dump(s, s.Shapes[shape].Item.Shape, v.Index(i))
	}
	return list
}

// The formats of times. AWS writes times with or without milliseconds; here they always have
// them.
const (
	epoch   = "unixTimestamp"
	iso8601 = "iso8601"
	rfc822  = "rfc822"
)

// text writes a value that is no list, map or structure.
func text(value any, format string) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case time.Time:
		if format == rfc822 {
			return v.UTC().Format(http.TimeFormat)
		}
		return v.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return ""
}

// format returns the format of a time.
func format(s *model.Service, m model.Member, usual string) string {
	switch {
	case m.Timestamp != "":
		return m.Timestamp
	case s.Shapes[m.Shape].Timestamp != "":
		return s.Shapes[m.Shape].Timestamp
	}
	return usual
}
