package account

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// LogCalls is the lowest log level with which every AWS call is logged.
const LogCalls = 4

// RegionOr returns the region of a command that upstream's clusterawsadm also has: that
// of --region, otherwise the preferred one, otherwise that of the settings AWS_REGION,
// AWS_DEFAULT_REGION and DEFAULT_AWS_REGION, which only clusterawsadm uses. It returns ""
// for the region of the profile. As upstream, it uses a variable that is set but empty.
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

// OpenPlain opens the account for a command that upstream's clusterawsadm also has, whose
// clients are created directly from Config. At log level 4 and above every AWS call is
// logged. The preferred region is "" unless a file names one.
func (f *Flags) OpenPlain(ctx context.Context, preferred string) (*Account, error) {
	a, err := f.Open(ctx, f.RegionOr(preferred))
	if err != nil {
		return nil, err
	}
	if f.Env.LogLevel >= LogCalls {
		a.Config = a.Config.Copy()
		a.Config.APIOptions = append([]func(*middleware.Stack) error{f.logCalls}, a.Config.APIOptions...)
	}
	return a, nil
}

// logCalls adds the log of calls to a client.
func (f *Flags) logCalls(stack *middleware.Stack) error {
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
