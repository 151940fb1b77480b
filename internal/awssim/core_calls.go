package awssim

import (
	"context"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
)

// only refuses what is set within a part of a call and is not simulated.
func only(op string, part any, fields ...string) error {
	models := map[string]bool{}
	for _, f := range fields {
		models[f] = true
	}
	if f := unmodelled(part, models); f != "" {
		return notSimulated("%s: parameter %T %s", op, part, f)
	}
	return nil
}

// exactly refuses a call that does not set exactly one of several parameters.
func exactly(set ...bool) error {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	switch n {
	case 0:
		return fail("MissingParameter", "the request must contain one of the parameters")
	case 1:
		return nil
	}
	return fail("InvalidParameterCombination", "the request must contain only one of the parameters")
}

// handler answers one operation.
type handler struct {
	models map[string]bool // the fields of the input that it understands
	abroad bool            // it answers in every region
	answer func(ctx context.Context, in any) (any, error)
}

// on registers the answer to an operation, func(*Input) (*Output, error), with
// the names of the input's fields that it understands. A call that sets any
// other field is not simulated.
//
// It is not generic: there are hundreds of operations, and the program would
// hold as many copies (docs/adr/0016-binary-size.md).
func on(a *AWS, answer any, fields ...string) {
	f := reflect.ValueOf(answer)
	a.on(f, fields, func(_ context.Context, in reflect.Value) ([]reflect.Value, error) {
		return f.Call([]reflect.Value{in}), nil
	})
}

// onContext is on for an answer that depends on who calls:
// func(context.Context, *Input) (*Output, error).
func onContext(a *AWS, answer any, fields ...string) {
	f := reflect.ValueOf(answer)
	a.on(f, fields, func(ctx context.Context, in reflect.Value) ([]reflect.Value, error) {
		return f.Call([]reflect.Value{reflect.ValueOf(ctx), in}), nil
	})
}

// on is what they have in common. The input is the last parameter.
func (a *AWS) on(answer reflect.Value, fields []string, call func(context.Context, reflect.Value) ([]reflect.Value, error)) *handler {
	input := answer.Type().In(answer.Type().NumIn() - 1)
	models := map[string]bool{}
	for _, f := range fields {
		if _, ok := input.Elem().FieldByName(f); !ok {
			panic(fmt.Sprintf("awssim: %s has no field %s", input.Elem(), f))
		}
		models[f] = true
	}
	h := &handler{models: models, answer: func(ctx context.Context, in any) (any, error) {
		out, err := call(ctx, reflect.ValueOf(in))
		if err != nil {
			return nil, err
		}
		if err, ok := out[1].Interface().(error); ok {
			return nil, err // a typed nil pointer would be no nil answer
		}
		return out[0].Interface(), nil
	}}
	a.handlers[input] = h
	return h
}

// unmodelled returns the first field of a call's input that is set and that
// its handler does not understand.
func unmodelled(in any, models map[string]bool) string {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.IsExported() && !models[f.Name] && !v.Field(i).IsZero() {
			return f.Name
		}
	}
	return ""
}

// fail returns an AWS error as a client sees it.
func fail(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

// page cuts one page out of a list. Tokens are positions; size is what the
// call asked for, most AWS's limit.
func page[T any](a *AWS, list []T, token *string, size *int32, most int) (part []T, next *string, err error) {
	from := 0
	if t := aws.ToString(token); t != "" {
		if _, err := fmt.Sscanf(t, "page-%d", &from); err != nil || from > len(list) {
			return nil, nil, fail("InvalidNextToken", "the token %q is not valid", t)
		}
	}
	n := most
	if s := int(aws.ToInt32(size)); s > 0 {
		n = min(n, s)
	}
	if a.o.Page > 0 {
		n = min(n, a.o.Page)
	}
	to := min(from+n, len(list))
	if to < len(list) {
		next = aws.String(fmt.Sprintf("page-%d", to))
	}
	return list[from:to], next, nil
}
