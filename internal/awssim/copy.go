package awssim

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"
	smithytime "github.com/aws/smithy-go/time"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/replica"
)

// Asked records the calls of a program. A copy has the resources that they name.
type Asked = replica.Asked

// NewAsked returns an empty record.
func NewAsked() *Asked { return replica.NewAsked() }

// firstOfCopy is the serial number with which a copy begins: the IDs that it makes are not those
// of another simulated account.
const firstOfCopy = 1 << 20

// Copy returns a new account with the ID and the resources of another one, which it only reads,
// without secrets. asked has the calls of a plan in that account. The remarks say what could
// not be read, and is as in a new account. If AWS throttles a call, Copy waits and repeats it.
func Copy(ctx context.Context, source aws.Config, asked *Asked, o Options) (a *AWS, remarks []string, err error) {
	source = patient(source)
	caller, err := sts.NewFromConfig(source).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}) // needs no permission
	if err != nil {
		return nil, nil, fmt.Errorf("copy of the account: its ID: %w", err)
	}
	o.Region, o.Number = source.Region, aws.ToString(caller.Account)
	a = New(o)
	s := a.state
	s.Serial = firstOfCopy
	remarks, err = replica.Read(ctx, replica.Source{Config: source, Account: o.Number, Asked: asked, Now: a.account.Now()}, replica.State{
		EC2:            &s.EC2,
		ELB:            &s.ELB,
		IAM:            &s.IAM,
		EKS:            &s.EKS,
		AutoScaling:    &s.AutoScaling,
		S3:             &s.S3,
		Secrets:        &s.Secrets,
		SSM:            &s.SSM,
		KMS:            &s.KMS,
		SQS:            &s.SQS,
		EventBridge:    &s.EventBridge,
		CloudFormation: &s.CloudFormation,
	})
	if err != nil {
		return nil, remarks, err
	}
	a, _ = open(o, s) // with the services that depend on the copied resources
	return a, remarks, nil
}

// patient returns a configuration with which a throttled call is repeated for about four minutes, instead of the few seconds of the SDK's three
// attempts. Other errors are not repeated more often than by the SDK: an emulator answers each call that it does not know with one.
func patient(cfg aws.Config) aws.Config {
	const most, longest = 12, 30 * time.Second
	cfg = cfg.Copy()
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.RateLimiter = ratelimit.None }) // which would hide the reason
	}
	again := middleware.InitializeMiddlewareFunc("Patience",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			for n, pause := 1, time.Second; ; n, pause = n+1, min(2*pause, longest) {
				out, about, err := next.HandleInitialize(ctx, in)
				throttled := retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err) == aws.TrueTernary
				if !throttled || n == most || smithytime.SleepWithContext(ctx, pause) != nil {
					return out, about, err
				}
			}
		})
	cfg.APIOptions = append(cfg.APIOptions[:len(cfg.APIOptions):len(cfg.APIOptions)], func(stack *middleware.Stack) error {
		return stack.Initialize.Add(again, middleware.After)
	})
	return cfg
}
