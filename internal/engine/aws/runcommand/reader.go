package runcommand

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Reader reads from machines. Its errors are for users.
type Reader struct {
	c      *cloud.Clients
	key    *rsa.PrivateKey
	public string
}

// NewReader returns a reader with a key of its own.
func NewReader(c *cloud.Clients) (*Reader, error) {
	key, public, err := newKey()
	return &Reader{c: c, key: key, public: public}, err
}

// Output is the output of a command on one machine, or the reason why it could not be read.
type Output struct {
	Data []byte
	Err  error
}

const (
	// mostMachines is how many instances one call takes ("SendCommand", API reference).
	mostMachines = 50
	// delivery is for how long Systems Manager tries to deliver a command, at least 30 s.
	delivery = 30 * time.Second
	// patience is how long a reader waits for the output of a command.
	patience = 90 * time.Second
	// mostOutput is how many bytes of an output are read.
	mostOutput = 4 << 20
	// mostParts is how many commands are sent for one output.
	mostParts = 40
)

// Errors of machines that Systems Manager does not reach.
var (
	errNoAgent = errors.New(
		"the SSM agent has never reported: give the role of the machine the permissions of AmazonSSMManagedInstanceCore, its subnet a route to Systems Manager, and its image the agent",
	)
	errOffline = errors.New("the SSM agent does not report any more: start the machine or the agent, or restore its route to Systems Manager")
)

// Read runs a command on machines, by their IDs, and returns its output by machine. A machine that
// Systems Manager does not reach has an error, and does not keep the others from being read.
func (r *Reader) Read(ctx context.Context, machines []string, command Command) map[string]Output {
	out := map[string]Output{}
	for ids := range slices.Chunk(machines, mostMachines) {
		unreached, err := unreached(ctx, r.c, ids)
		if err != nil {
			fail(out, ids, err)
			continue
		}
		for m, err := range unreached {
			out[m] = Output{Err: err}
		}
		r.readReached(ctx, slices.DeleteFunc(slices.Clone(ids), func(m string) bool { return unreached[m] != nil }), command, out)
	}
	return out
}

// unreached returns an error for each of the machines that Systems Manager does not reach.
func unreached(ctx context.Context, c *cloud.Clients, ids []string) (map[string]error, error) {
	errs := map[string]error{}
	for _, m := range ids {
		errs[m] = errNoAgent
	}
	in := &ssm.DescribeInstanceInformationInput{
		Filters:    []types.InstanceInformationStringFilter{{Key: aws.String("InstanceIds"), Values: ids}},
		MaxResults: aws.Int32(mostMachines),
	}
	ctx = cloud.Listing(ctx)
	for p := ssm.NewDescribeInstanceInformationPaginator(c.SSM, in); p.HasMorePages(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			return nil, readable(err)
		}
		for _, x := range page.InstanceInformationList {
			if errs[aws.ToString(x.InstanceId)] = errOffline; x.PingStatus == types.PingStatusOnline {
				delete(errs, aws.ToString(x.InstanceId))
			}
		}
	}
	return errs, nil
}

// readReached reads from machines that Systems Manager reaches, with one command for all.
func (r *Reader) readReached(ctx context.Context, ids []string, command Command, out map[string]Output) {
	if len(ids) == 0 {
		return
	}
	id, err := r.send(ctx, ids, command.script(r.public, 0))
	if err != nil {
		fail(out, ids, err)
		return
	}
	for _, m := range ids {
		first, err := r.result(ctx, id, m)
		if err != nil {
			out[m] = Output{Err: err}
			continue
		}
		data, err := r.rest(ctx, m, command, first)
		out[m] = Output{data, err}
	}
}

func fail(out map[string]Output, machines []string, err error) {
	for _, m := range machines {
		out[m] = Output{Err: err}
	}
}

// rest reads the parts of an output after the first one.
func (r *Reader) rest(ctx context.Context, machine string, command Command, first piece) ([]byte, error) {
	data := first.data
	if first.size > mostParts*part {
		return nil, fmt.Errorf("the output has %d bytes: too many", first.size)
	}
	for len(data) < first.size {
		id, err := r.send(ctx, []string{machine}, command.script(r.public, len(data)))
		if err != nil {
			return nil, err
		}
		next, err := r.result(ctx, id, machine)
		switch {
		case err != nil:
			return nil, err
		case next.hash != first.hash || len(next.data) == 0:
			return nil, errors.New("the output has changed while it was read")
		}
		data = append(data, next.data...)
	}
	return join(first.hash, data)
}

func (r *Reader) send(ctx context.Context, machines []string, script string) (id string, err error) {
	out, err := r.c.SSM.SendCommand(ctx, &ssm.SendCommandInput{
		DocumentName: aws.String("AWS-RunShellScript"), InstanceIds: machines, Comment: aws.String("clusterawsadm reads from the machine"),
		TimeoutSeconds: aws.Int32(int32(delivery / time.Second)),
		Parameters:     map[string][]string{"commands": strings.Split(script, "\n"), "executionTimeout": {"60"}},
	})
	if err != nil {
		return "", readable(err)
	}
	return aws.ToString(out.Command.CommandId), nil
}

// result waits for the end of a command on a machine. Systems Manager does not know a command
// at once.
func (r *Reader) result(ctx context.Context, id, machine string) (piece, error) {
	began := r.c.Clock.Now()
	for {
		out, err := r.c.SSM.GetCommandInvocation(ctx, &ssm.GetCommandInvocationInput{CommandId: &id, InstanceId: &machine})
		switch {
		case err != nil && cloud.Code(err) != "InvocationDoesNotExist":
			return piece{}, readable(err)
		case err != nil || slices.Contains(unfinished(), out.Status):
		case out.Status == types.CommandInvocationStatusSuccess:
			return open(r.key, aws.ToString(out.StandardOutputContent))
		default:
			return piece{}, failure(out)
		}
		if r.c.Clock.Since(began) > patience {
			return piece{}, fmt.Errorf("the command has not ended within %s", patience)
		}
		if err := r.c.Clock.Sleep(ctx, time.Second); err != nil {
			return piece{}, err
		}
	}
}

func unfinished() []types.CommandInvocationStatus {
	return []types.CommandInvocationStatus{
		types.CommandInvocationStatusPending,
		types.CommandInvocationStatusInProgress,
		types.CommandInvocationStatusDelayed,
		types.CommandInvocationStatusCancelling,
	}
}

// failure returns the error of a command that has failed. What it has written to standard error
// names files, not their content.
func failure(out *ssm.GetCommandInvocationOutput) error {
	why, _, _ := strings.Cut(strings.TrimSpace(aws.ToString(out.StandardErrorContent)), "\n")
	if why == "" {
		return fmt.Errorf("the command has ended with %s", aws.ToString(out.StatusDetails))
	}
	return fmt.Errorf("the command has failed: %.200s", why)
}

// readable shortens the errors of a caller or a machine without permissions.
func readable(err error) error {
	switch {
	case cloud.Denied(err):
		return errors.New("you lack one of ssm:DescribeInstanceInformation, ssm:SendCommand (document AWS-RunShellScript) and ssm:GetCommandInvocation")
	case cloud.Code(err) == "InvalidInstanceId":
		return errOffline
	}
	return err
}
