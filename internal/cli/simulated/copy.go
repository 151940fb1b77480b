package simulated

import (
	"bytes"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// Asked records the calls of a plan.
type Asked = awssim.Asked

// NewAsked returns an empty record.
func NewAsked() *Asked { return awssim.NewAsked() }

// Copy writes a new file with a simulated account that has the resources of another one, as
// far as a plan has asked for them. It only reads that account, and does not read secrets. The
// remarks say what it could not read.
func Copy(ctx context.Context, source aws.Config, asked *Asked, file string) (remarks []string, err error) {
	a, remarks, err := awssim.Copy(ctx, reads(source), asked, awssim.Options{})
	if err != nil {
		return remarks, err
	}
	var state bytes.Buffer
	if err := a.Save(&state); err != nil {
		return remarks, err
	}
	return remarks, files.Create(file, state.Bytes(), files.Private)
}

// reads returns a configuration that refuses calls that may change something.
func reads(cfg aws.Config) aws.Config {
	cfg = cfg.Copy()
	cfg.APIOptions = append(cfg.APIOptions[:len(cfg.APIOptions):len(cfg.APIOptions)], func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Reads",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				if op := awsmiddleware.GetOperationName(ctx); !cloud.Reads(op) {
					return middleware.InitializeOutput{}, middleware.Metadata{}, fmt.Errorf("a copy of an account only reads it: %s is refused", op)
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
	})
	return cfg
}
