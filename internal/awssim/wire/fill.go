package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// tree is a structure or a map of an input: values by the names of members in the model.
// A value is a tree, a []any, a string, a bool, a json.Number or, for the body of a
// request, a []byte.
type tree = map[string]any

// field is the name of a member in the SDK.
func field(member string) string { return strings.ToUpper(member[:1]) + member[1:] }

// fill writes a value of a request to a part of an input.
func fill(to reflect.Value, value any) (err error) {
	switch to.Kind() { //nolint:exhaustive // the others are numbers and texts
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return fill(to.Elem(), value)
	case reflect.Struct:
		return fillStruct(to, value)
	case reflect.Map:
		return fillMap(to, value)
	case reflect.Slice:
		return fillSlice(to, value)
	case reflect.Interface:
		if body, ok := value.([]byte); ok && to.Type() == reflect.TypeFor[io.Reader]() {
			to.Set(reflect.ValueOf(bytes.NewReader(body)))
			return nil
		}
		return core.NotSimulated("a value of type %s", to.Type())
	}
	return fillText(to, value)
}

func fillStruct(to reflect.Value, value any) (err error) {
	if to.Type() == reflect.TypeFor[time.Time]() {
		at, err := timeOf(fmt.Sprint(value))
		to.Set(reflect.ValueOf(at))
		return err
	}
	t, ok := value.(tree)
	if !ok {
		return core.Fail("MalformedInput", "%v is not a structure", value)
	}
	for _, member := range core.SortedKeys(t) {
		f := to.FieldByName(field(member))
		if !f.IsValid() {
			return core.NotSimulated("parameter %s", member)
		}
		if err := fill(f, t[member]); err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
	}
	return nil
}

func fillMap(to reflect.Value, value any) error {
	t, ok := value.(tree)
	if !ok {
		return core.Fail("MalformedInput", "%v is not a map", value)
	}
	to.Set(reflect.MakeMap(to.Type()))
	for key, v := range t {
		item := reflect.New(to.Type().Elem()).Elem()
		if err := fill(item, v); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), item)
	}
	return nil
}

func fillSlice(to reflect.Value, value any) error {
	if to.Type() == reflect.TypeFor[[]byte]() {
		raw, ok := value.([]byte)
		if !ok {
			var err error
			if raw, err = base64.StdEncoding.DecodeString(fmt.Sprint(value)); err != nil {
				return core.Fail("MalformedInput", "%s", err)
			}
		}
		to.SetBytes(raw)
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		return core.Fail("MalformedInput", "%v is not a list", value)
	}
	to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
	for i, v := range list {
		if err := fill(to.Index(i), v); err != nil {
			return err
		}
	}
	return nil
}

// fillText writes a string, number or boolean.
func fillText(to reflect.Value, value any) (err error) {
	text := ""
	switch v := value.(type) {
	case string:
		text = v
	case []byte:
		text = string(v)
	case json.Number, bool:
		text = fmt.Sprint(v)
	default:
		return core.Fail("MalformedInput", "%v is not a %s", value, to.Kind())
	}
	switch {
	case to.Kind() == reflect.String:
		to.SetString(text)
	case to.Kind() == reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		to.SetBool(b)
	case to.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, to.Type().Bits())
		to.SetInt(n)
	case to.CanFloat():
		var f float64
		f, err = strconv.ParseFloat(text, 64)
		to.SetFloat(f)
	default:
		return core.NotSimulated("a value of type %s", to.Type())
	}
	if err != nil {
		return core.Fail("MalformedInput", "%q is not a %s", text, to.Kind())
	}
	return nil
}

// timeOf reads a time in any of AWS's formats: seconds since 1970, ISO 8601, or that of HTTP.
func timeOf(text string) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.UnixMilli(int64(seconds * 1000)).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339Nano, http.TimeFormat} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, core.Fail("MalformedInput", "%q is not a time", text)
}
