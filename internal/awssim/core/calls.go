package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
)

// handler handles one operation.
type handler struct {
	models     map[string]bool // the fields of the input that it supports
	everywhere bool            // it works in every region
	answer     func(ctx context.Context, in any) (any, error)
}

// On registers the handler of an operation, with the names of the input fields that it
// supports. A call that sets any other field is rejected as not simulated.
func On[In, Out any](a *Account, answer func(*In) (*Out, error), fields ...string) {
	OnContext(a, func(_ context.Context, in *In) (*Out, error) { return answer(in) }, fields...)
}

// OnContext is On for a handler whose result depends on the caller.
func OnContext[In, Out any](a *Account, answer func(context.Context, *In) (*Out, error), fields ...string) {
	register(a, answer, fields)
}

// OnEverywhere is OnContext for an operation that works in every region, and not only in
// the account's own.
func OnEverywhere[In, Out any](a *Account, answer func(context.Context, *In) (*Out, error), fields ...string) {
	register(a, answer, fields).everywhere = true
}

func register[In, Out any](a *Account, answer func(context.Context, *In) (*Out, error), fields []string) *handler {
	input := reflect.TypeFor[In]()
	models := map[string]bool{}
	for _, f := range fields {
		if _, ok := input.FieldByName(f); !ok {
			panic(fmt.Sprintf("awssim: %s has no field %s", input, f))
		}
		models[f] = true
	}
	h := &handler{models: models, answer: func(ctx context.Context, in any) (any, error) {
		out, err := answer(ctx, in.(*In))
		if err != nil {
			return nil, err // not a typed nil pointer
		}
		return out, nil
	}}
	a.handlers[reflect.PointerTo(input)] = h
	return h
}

// call handles one call. It does not see resources that are younger than age.
func (a *Account) call(ctx context.Context, service, op string, in any, age time.Duration) (out any, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func(lag, refs time.Duration) { a.Lag, a.LagRefs = lag, refs }(a.Lag, a.LagRefs)
	a.Lag, a.LagRefs = max(a.Lag, age), max(a.LagRefs, age)
	a.Settle()
	at := len(a.calls)
	a.Record(Call{Service: service, Operation: op, Role: a.Role(ctx)})
	defer func() {
		if err != nil {
			a.calls[at].Err = err.Error()
			var api smithy.APIError
			if errors.As(err, &api) {
				a.calls[at].Err = api.ErrorCode()
			}
		}
	}()
	h, ok := a.handlers[reflect.TypeOf(in)]
	if !ok {
		return nil, fmt.Errorf("awssim: %s %s is not simulated", service, op)
	}
	if field := unmodelled(in, h.models); field != "" {
		return nil, fmt.Errorf("awssim: %s %s: parameter %s is not simulated", service, op, field)
	}
	region := cmp.Or(awsmiddleware.GetRegion(ctx), a.Region)
	if region != a.Region && !h.everywhere && !slices.Contains([]string{"IAM", "STS"}, service) {
		return nil, fmt.Errorf("awssim: %s %s is not simulated in region %s", service, op, region)
	}
	if err := a.throttle(service, op, region, in); err != nil {
		return nil, err
	}
	return h.answer(ctx, in)
}

// unmodelled returns the first field of the input that is set and that its handler does
// not support.
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

// Only rejects fields that are set in a part of a call and are not simulated.
func Only(op string, part any, fields ...string) error {
	models := map[string]bool{}
	for _, f := range fields {
		models[f] = true
	}
	if f := unmodelled(part, models); f != "" {
		return NotSimulated("%s: parameter %T %s", op, part, f)
	}
	return nil
}

// Exactly rejects a call unless exactly one of several parameters is set.
func Exactly(set ...bool) error {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	switch n {
	case 0:
		return Fail("MissingParameter", "the request must contain one of the parameters")
	case 1:
		return nil
	}
	return Fail("InvalidParameterCombination", "the request must contain only one of the parameters")
}

// Fail returns an AWS error as the client receives it.
func Fail(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

// NotSimulated returns the error for a call that is not simulated.
func NotSimulated(format string, args ...any) error {
	return fmt.Errorf("awssim: "+format+" is not simulated", args...)
}

// Reason returns the text of an AWS error without its code.
func Reason(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorMessage()
	}
	return err.Error()
}

// keptPages is how many tokens of listings are valid at the same time.
const keptPages = 1000

// Page returns one page of a list. size is the size in the call, most the limit of AWS. A
// token stands for the rest of the list as it was when the listing began: what is created or
// deleted between two pages neither moves items to another page nor makes a token invalid.
func Page[T any](a *Account, list []T, token *string, size *int32, most int) (part []T, next *string, err error) {
	if t := aws.ToString(token); t != "" {
		rest, valid := a.rests[t].([]T)
		if !valid {
			return nil, nil, Fail("InvalidNextToken", "the token %q is not valid", t)
		}
		list = rest
	}
	n := most
	if s := int(aws.ToInt32(size)); s > 0 {
		n = min(n, s)
	}
	if a.Page > 0 {
		n = min(n, a.Page)
	}
	if len(list) <= n {
		return list, nil, nil
	}
	next = aws.String(pageToken(a.pages))
	a.rests[*next] = slices.Clone(list[n:])
	delete(a.rests, pageToken(a.pages-keptPages))
	a.pages++
	return list[:n], next, nil
}

func pageToken(n int) string { return fmt.Sprintf("page-%d", n) }
