package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap/stack"
)

// stackFlags are the flags and state that all commands about the stack share.
type stackFlags struct {
	configuration
	account.Flags
	command string
	name    string // name of the stack, overrides the configuration

	began time.Time // start of the current operation, by the clock of AWS
}

func newStackFlags(e *env.Env, command string) *stackFlags {
	return &stackFlags{configuration: configuration{env: e}, Flags: account.Flags{Env: e}, command: command}
}

func (f *stackFlags) add(cmd *cobra.Command) {
	f.configuration.add(cmd)
	f.Add(cmd.Flags(), "", "spec.region of the configuration, then from the environment")
	cmd.Flags().StringVar(&f.name, "stack-name", "", "name of the stack (default: spec.stackName of the configuration)")
}

// open reads the configuration, and opens the account and region of its stack.
func (f *stackFlags) open(ctx context.Context) (*bootstrap.Config, *account.Account, *stack.Stack, error) {
	config, err := f.load(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if f.name != "" {
		config.Spec.StackName = f.name
	}
	f.reportRegion(config)
	a, err := f.OpenPlain(ctx, config.Spec.Region)
	if err != nil {
		return nil, nil, nil, err
	}
	s := stack.New(a.Config, config.Spec.StackName, stack.Options{
		Clock: a.Clock,
		Event: func(e stack.Event) {
			if e.Begins() || f.began.IsZero() {
				f.began = e.At
			}
			if e.Reason != "Resource creation Initiated" { // a second event in the same state
				f.env.Story("%s", render.StackEvent(e, e.At.Sub(f.began), f.env.ErrStyle()))
			}
		},
		Progress: func(working []stack.Event) {
			f.env.Story("%s", render.StackWait(working, a.Clock.Since(f.began)))
		},
		Note:         func(text string) { f.env.Story("%s", text) },
		OtherRegions: elsewhere(a),
	})
	return config, a, s, nil
}

// reportRegion prints a message if the configuration and the environment have different
// regions: upstream uses the environment's.
func (f *stackFlags) reportRegion(c *bootstrap.Config) {
	want := c.Spec.Region
	if want == "" || f.Region != "" && f.RegionSetting() == "" {
		return
	}
	if other := f.RegionOr(""); other != "" && other != want {
		f.env.Story("spec.region of the configuration, %s, is used instead of the region of the environment, %s", want, other)
	}
}

// elsewhere are the regions that are enabled in every account, where the stack of an
// existing IAM object may be. A simulated account has only one region.
func elsewhere(a *account.Account) (all []aws.Config) {
	if a.Simulated() {
		return nil
	}
	regions := []string{
		"us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1", "eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3",
		"ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2",
	}
	switch {
	case strings.HasPrefix(a.Config.Region, "us-gov-"):
		regions = []string{"us-gov-west-1", "us-gov-east-1"}
	case strings.HasPrefix(a.Config.Region, "cn-"):
		regions = []string{"cn-north-1", "cn-northwest-1"}
	}
	for _, r := range regions {
		if r != a.Config.Region {
			all = append(all, a.In(r))
		}
	}
	return all
}

// again returns the command line of this run, or of another command for the same stack,
// with more flags.
func (f *stackFlags) again(region string, more ...string) string {
	words := []string{"clusterawsadm", "bootstrap", "iam", f.command}
	for _, flag := range [][2]string{{"--config", f.file}, {"--stack-name", f.name}, {"--region", region}, {"--profile", f.Profile}, {"--simulate-state", f.SimulateState}} {
		if flag[1] != "" {
			words = append(words, flag[0], quoted(flag[1]))
		}
	}
	if f.Simulate {
		words = append(words, "--simulate")
	}
	return strings.Join(append(words, more...), " ")
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// advise adds to an error how to fix it.
func (f *stackFlags) advise(err error) error {
	var (
		stuck  *stack.StuckError
		failed *stack.FailedError
		left   *stack.WaitError
	)
	advice := ""
	switch {
	case errors.As(err, &stuck) && stuck.Deletable():
		advice = "Delete it and make it anew with:\n  " + f.again(stuck.Region, "--replace-failed")
	case errors.As(err, &stuck):
		advice = fmt.Sprintf(
			"Fix the problem, let AWS complete the rollback, and run the command again:\n  aws cloudformation continue-update-rollback --stack-name %s --region %s",
			stuck.Name,
			stuck.Region,
		)
	case errors.As(err, &left):
		advice = fmt.Sprintf(
			"See its events with\n  aws cloudformation describe-stack-events --stack-name %s --region %s\nor continue to wait with:\n  %s",
			left.Name,
			left.Region,
			f.again(left.Region),
		)
	case errors.As(err, &failed):
		advice = f.mend(failed)
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, advice)
}

func (f *stackFlags) mend(failed *stack.FailedError) string {
	switch failed.Status { //nolint:exhaustive // other states do not end the operation
	case types.StackStatusRollbackComplete, types.StackStatusRollbackFailed, types.StackStatusCreateFailed:
		return "Fix the problem, then delete and recreate the stack with:\n  " + f.again(failed.Region, "--replace-failed")
	case types.StackStatusUpdateRollbackComplete:
		return "The stack is unchanged. Fix the problem and run the command again."
	case types.StackStatusUpdateRollbackFailed:
		return fmt.Sprintf(
			"Fix the problem, let AWS complete the rollback, and run the command again:\n  aws cloudformation continue-update-rollback --stack-name %s --region %s",
			failed.Name,
			failed.Region,
		)
	}
	return "Fix the problem and run the command again."
}
