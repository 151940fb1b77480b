package replica

import (
	"context"
	"reflect"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/middleware"
)

// Asked records the calls of a program: the names and IDs in them, and the images in the
// answers. The calls of a plan name everything that its manifest touches.
type Asked struct {
	mu     sync.Mutex
	words  map[string]bool
	images map[string]types.Image // by ID: the answers

	// of each type of input, all inputs
	inputs map[reflect.Type][]any
}

// NewAsked returns an empty record.
func NewAsked() *Asked {
	return &Asked{words: map[string]bool{}, images: map[string]types.Image{}, inputs: map[reflect.Type][]any{}}
}

// Listen returns a configuration whose calls are recorded.
func (a *Asked) Listen(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	cfg.APIOptions = append(cfg.APIOptions[:len(cfg.APIOptions):len(cfg.APIOptions)], func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Asked",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				out, md, err := next.HandleInitialize(ctx, in)
				a.add(in.Parameters, out.Result)
				return out, md, err
			}), middleware.After)
	})
	return cfg
}

func (a *Asked) add(in, out any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inputs[reflect.TypeOf(in)] = append(a.inputs[reflect.TypeOf(in)], in)
	a.collect(reflect.ValueOf(in))
	if found, ok := out.(*ec2.DescribeImagesOutput); ok && found != nil {
		for _, i := range found.Images {
			a.images[aws.ToString(i.ImageId)] = i
		}
	}
}

// collect adds all texts in an input.
func (a *Asked) collect(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // inputs have no others with texts in them
	case reflect.String:
		a.words[v.String()] = true
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			a.collect(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			a.collect(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				a.collect(v.Field(i))
			}
		}
	}
}

// about reports whether one of the words was asked for.
func (a *Asked) about(words ...string) bool {
	for _, w := range words {
		if w != "" && a.words[w] {
			return true
		}
	}
	return false
}

// of returns all inputs of a type.
func of[T any](a *Asked) (all []*T) {
	for _, in := range a.inputs[reflect.TypeFor[*T]()] {
		if t, ok := in.(*T); ok {
			all = append(all, t)
		}
	}
	return all
}
