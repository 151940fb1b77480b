package runcommand

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// reboots is the exit code with which a script makes the agent restart the machine and run the script
// again ("Handling reboots when running commands", Systems Manager user guide). A command of a user never
// ends with it.
const reboots = 194

// Exec runs a command as root on a machine, without a terminal and without input, and waits until it ends. Everybody
// who may call ssm:GetCommandInvocation can read its output.
func Exec(ctx context.Context, c *cloud.Clients, machine string, command []string, limit time.Duration) (cluster.Execution, error) {
	errs, err := unreached(ctx, c, []string{machine})
	if err == nil {
		err = errs[machine]
	}
	if err != nil {
		return cluster.Execution{}, err
	}
	sent, err := c.SSM.SendCommand(ctx, &ssm.SendCommandInput{
		DocumentName: aws.String("AWS-RunShellScript"), InstanceIds: []string{machine}, Comment: aws.String("clusterawsadm cluster exec"),
		TimeoutSeconds: aws.Int32(int32(delivery / time.Second)),
		Parameters: map[string][]string{
			"commands": execScript(command), "executionTimeout": {strconv.Itoa(int(limit / time.Second))},
		},
	}, cloud.SendCommandOnce)
	if err != nil {
		if !cloud.Denied(err) && cloud.Unanswered(err) {
			err = fmt.Errorf("it is not known whether the command was sent: %w", err)
		}
		return cluster.Execution{}, readable(err)
	}
	return executed(ctx, c, aws.ToString(sent.Command.CommandId), machine)
}

// execScript returns the lines of the script that runs a command.
func execScript(command []string) []string {
	var quoted []string
	for _, word := range command {
		quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return []string{
		strings.Join(quoted, " "),
		"code=$?",
		fmt.Sprintf("[ $code -ne %d ] || { echo 'exit status %[1]d would restart the machine: it is 193 here' >&2; code=193; }", reboots),
		"exit $code",
	}
}

// executed waits until a command has ended. Systems Manager stops the command when its time limit is over.
func executed(ctx context.Context, c *cloud.Clients, id, machine string) (cluster.Execution, error) {
	for {
		out, err := c.SSM.GetCommandInvocation(ctx, &ssm.GetCommandInvocationInput{CommandId: &id, InstanceId: &machine})
		switch {
		case err != nil && cloud.Code(err) != "InvocationDoesNotExist":
			return cluster.Execution{}, goesOn(ctx, id, readable(err))
		case err != nil || slices.Contains(unfinished(), out.Status):
		case out.ResponseCode < 0 || out.Status != types.CommandInvocationStatusSuccess && out.Status != types.CommandInvocationStatusFailed:
			return cluster.Execution{}, fmt.Errorf("the command has not ended by itself: %s", aws.ToString(out.StatusDetails))
		default:
			return execution(out), nil
		}
		if err := c.Clock.Sleep(ctx, time.Second); err != nil {
			return cluster.Execution{}, goesOn(ctx, id, err)
		}
	}
}

// goesOn adds to an error that the command may still run on the machine, if the caller has stopped waiting for it.
func goesOn(ctx context.Context, id string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return errors.Join(context.Cause(ctx), fmt.Errorf("the command may go on on the machine: aws ssm cancel-command --command-id %s ends it", id))
}

// execution returns the result of a command. AWS keeps the first 24,000 characters of the output, and 8,000 of
// the errors ("GetCommandInvocation", API reference); the agent ends what it has cut with a remark.
func execution(out *ssm.GetCommandInvocationOutput) cluster.Execution {
	x := cluster.Execution{Stdout: aws.ToString(out.StandardOutputContent), Stderr: aws.ToString(out.StandardErrorContent), ExitCode: int(out.ResponseCode)}
	for _, part := range []struct {
		text string
		most int
	}{{x.Stdout, 24000}, {x.Stderr, 8000}} {
		x.Truncated = x.Truncated || len(part.text) >= part.most
	}
	return x
}
