package account

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// Talkative is the log level from which on every call to AWS is told of.
const Talkative = 4

// RegionOr returns the region of a command that upstream's clusterawsadm has
// too: that of --region, else the preferred one, else that of the settings,
// AWS_REGION, AWS_DEFAULT_REGION and DEFAULT_AWS_REGION, which only
// clusterawsadm knows. It returns "" where the profile is to say. Upstream took a
// variable that is set but empty for a region.
func (f *Flags) RegionOr(preferred string) string {
	if f.Region != "" && (preferred == "" || f.RegionSetting() == "") {
		return f.Region
	}
	if preferred != "" {
		return preferred
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "DEFAULT_AWS_REGION"} {
		if region := f.Env.Getenv(name); region != "" {
			return region
		}
	}
	return ""
}

// OpenPlain opens the account for a command that upstream's clusterawsadm has
// too, whose clients are made straight from Config. From log level 4 on every
// call to AWS is told of. The preferred region is "" unless a file names one.
func (f *Flags) OpenPlain(ctx context.Context, preferred string) (*Account, error) {
	a, err := f.Open(ctx, f.RegionOr(preferred))
	if err != nil {
		return nil, err
	}
	if f.Env.LogLevel >= Talkative {
		a.Config = a.Config.Copy()
		a.Config.APIOptions = append([]func(*middleware.Stack) error{f.tell}, a.Config.APIOptions...)
	}
	return a, nil
}

// tell has a client tell of its calls.
func (f *Flags) tell(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Tell",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			out, md, err := next.HandleInitialize(ctx, in)
			said := "ok"
			if err != nil {
				said = err.Error()
			}
			f.Env.Story("%s %s %s: %s", awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), awsmiddleware.GetRegion(ctx), said)
			return out, md, err
		}), middleware.After)
}

// In returns the configuration for another region of the account.
func (a *Account) In(region string) aws.Config {
	cfg := a.Config.Copy()
	cfg.Region = region
	return cfg
}
