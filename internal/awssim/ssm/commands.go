package ssm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Command is a command of Run Command.
type Command struct {
	ID, Script string
	Instances  []string
	Asked      time.Time
	Timeout    time.Duration      // for the delivery
	Results    map[string]*Result // of the instances on which it has ended
}

// Result has the output and the exit code of a script.
type Result struct {
	Out, Err string
	Code     int32
}

// Durations of Run Command. AWS does not document any: these are guesses.
const (
	// CommandShows is how long GetCommandInvocation does not know a new command.
	CommandShows = time.Second
	// CommandStarts is how long a command is pending.
	CommandStarts = 2 * time.Second
	// CommandTakes is how long a command takes.
	CommandTakes = 3 * time.Second
)

// Limits of Run Command ("SendCommand" and "GetCommandInvocation", API reference).
const (
	shellDocument  = "AWS-RunShellScript"
	shellPlugin    = "aws:runShellScript"
	mostInstances  = 50
	mostOutput     = 24000
	mostErrors     = 8000
	mostParameters = 64 << 10 // the limit of a document; that of parameters is not documented
	commandsKept   = 30 * 24 * time.Hour
	// rebootCode is the exit code of a script that asks the agent to restart the machine ("Handling reboots when
	// running commands", Systems Manager user guide).
	rebootCode = 194
)

func (svc *Service) simulateCommands() {
	core.On(svc.Account, svc.sendCommand, "InstanceIds", "DocumentName", "Parameters", "TimeoutSeconds", "Comment")
	core.On(svc.Account, svc.getCommandInvocation, "CommandId", "InstanceId", "PluginName")
	core.On(svc.Account, svc.startSession, "Target", "Reason")
	core.On(svc.Account, svc.terminateSession, "SessionId")
	core.On(svc.Account, svc.describeInstanceInformation, "Filters", "MaxResults", "NextToken")
}

func (svc *Service) sendCommand(in *ssm.SendCommandInput) (*ssm.SendCommandOutput, error) {
	seconds := aws.ToInt32(in.TimeoutSeconds)
	switch {
	case aws.ToString(in.DocumentName) != shellDocument:
		return nil, core.Fail("InvalidDocument", "document with name %s does not exist.", aws.ToString(in.DocumentName))
	case len(in.InstanceIds) == 0:
		return nil, core.Fail("ValidationException", "instanceIds or targets are needed")
	case len(in.InstanceIds) > mostInstances:
		return nil, core.Fail("ValidationException", "instanceIds has to have at most %d members", mostInstances)
	case in.TimeoutSeconds != nil && (seconds < 30 || seconds > 2592000):
		return nil, core.Fail("ValidationException", "timeoutSeconds has to be from 30 to 2592000")
	case len(aws.ToString(in.Comment)) > 100:
		return nil, core.Fail("ValidationException", "comment has to have at most 100 characters")
	}
	if err := checkParameters(in.Parameters); err != nil {
		return nil, err
	}
	svc.update()
	invalid := slices.DeleteFunc(slices.Clone(in.InstanceIds), func(id string) bool { return svc.state.Agents[id] != nil })
	if len(invalid) > 0 {
		return nil, core.Fail("InvalidInstanceId", "Instances [[%s]] not in a valid state for account %s", strings.Join(invalid, ", "), svc.Number())
	}
	n := svc.NextSerial()
	c := &Command{
		ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n), Script: strings.Join(in.Parameters["commands"], "\n"), Instances: in.InstanceIds, Asked: svc.Now(),
		Timeout: time.Hour, Results: map[string]*Result{},
	}
	if seconds > 0 {
		c.Timeout = time.Duration(seconds) * time.Second
	}
	core.Fill(&svc.state.Commands)
	maps.DeleteFunc(svc.state.Commands, func(_ string, old *Command) bool { return svc.Now().Sub(old.Asked) > commandsKept })
	svc.state.Commands[c.ID] = c
	return &ssm.SendCommandOutput{Command: &types.Command{
		CommandId: aws.String(
			c.ID,
		),
		DocumentName:      in.DocumentName,
		Comment:           in.Comment,
		InstanceIds:       in.InstanceIds,
		Parameters:        in.Parameters,
		RequestedDateTime: aws.Time(c.Asked),
		Status:            types.CommandStatusPending,
		StatusDetails:     aws.String("Pending"),
		TargetCount:       int32(len(in.InstanceIds)), //nolint:gosec // at most 50
		TimeoutSeconds:    in.TimeoutSeconds,
	}}, nil
}

// checkParameters checks the parameters of the document AWS-RunShellScript.
func checkParameters(in map[string][]string) error {
	size := 0
	for name, values := range in {
		if !slices.Contains([]string{"commands", "workingDirectory", "executionTimeout"}, name) {
			return core.Fail("InvalidParameters", "Parameter %s is not defined in the document.", name)
		}
		size += len(strings.Join(values, "\n"))
	}
	switch {
	case len(in["commands"]) == 0:
		return core.Fail("InvalidParameters", "Parameter commands is required.")
	case len(in["executionTimeout"]) > 0 && !validTimeout(in["executionTimeout"][0]):
		return core.Fail("InvalidParameters", "executionTimeout has to be a number of seconds from 1 to 172800")
	case len(in["workingDirectory"]) > 0:
		return core.NotSimulated("the parameter workingDirectory")
	case size > mostParameters:
		return core.Fail("InvalidParameters", "the parameters are too long")
	}
	return nil
}

// validTimeout reports whether the document takes a time limit: its allowedPattern has the numbers up to 48 hours.
func validTimeout(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= 172800
}

func (svc *Service) getCommandInvocation(in *ssm.GetCommandInvocationInput) (*ssm.GetCommandInvocationOutput, error) {
	id, instance := aws.ToString(in.CommandId), aws.ToString(in.InstanceId)
	if len(id) != 36 {
		return nil, core.Fail("ValidationException", "commandId has to have 36 characters")
	}
	if in.PluginName != nil && *in.PluginName != shellPlugin {
		return nil, core.Fail("InvalidPluginName", "there is no plugin %s", *in.PluginName)
	}
	c := svc.state.Commands[id]
	if c == nil || !slices.Contains(c.Instances, instance) || svc.Now().Sub(c.Asked) < CommandShows || svc.Now().Sub(c.Asked) > commandsKept {
		return nil, core.Fail("InvocationDoesNotExist", "")
	}
	svc.update()
	out := &ssm.GetCommandInvocationOutput{
		CommandId:    in.CommandId,
		InstanceId:   in.InstanceId,
		DocumentName: aws.String(shellDocument),
		PluginName:   aws.String(shellPlugin),
		ResponseCode: -1,
	}
	status, details := svc.invocation(c, instance)
	out.Status, out.StatusDetails = status, aws.String(details)
	out.StandardOutputContent, out.StandardErrorContent = aws.String(""), aws.String("")
	if r := c.Results[instance]; r != nil {
		out.ResponseCode = r.Code
		out.StandardOutputContent = aws.String(cut(r.Out, mostOutput, "\n---Output truncated---"))
		out.StandardErrorContent = aws.String(cut(r.Err, mostErrors, "\n---Error truncated----"))
	}
	return out, nil
}

// invocation returns the state of a command on an instance, and runs it there when it is due.
// An agent that does not report gets it later, or never: until then it is pending. It could not
// be verified which status comes with the details "Undeliverable".
func (svc *Service) invocation(c *Command, instance string) (status types.CommandInvocationStatus, details string) {
	age := svc.Now().Sub(c.Asked)
	switch r := c.Results[instance]; {
	case r != nil && r.Code == 0:
		return types.CommandInvocationStatusSuccess, "Success"
	case r != nil:
		return types.CommandInvocationStatusFailed, "Failed"
	case svc.state.Agents[instance] == nil:
		return types.CommandInvocationStatusFailed, "Undeliverable"
	case age > c.Timeout:
		return types.CommandInvocationStatusTimedOut, "Delivery Timed Out"
	case age < CommandStarts || !svc.online(instance):
		return types.CommandInvocationStatusPending, "Pending"
	case age < CommandTakes:
		return types.CommandInvocationStatusInProgress, "InProgress"
	}
	r := svc.Run(instance, c.Script)
	if r.Code == rebootCode {
		c.Asked = svc.Now() // the agent restarts the machine, and runs the script again
		return types.CommandInvocationStatusInProgress, "InProgress"
	}
	c.Results[instance] = &r
	return svc.invocation(c, instance)
}

// cut shortens an output. The API reference says that the first 24,000 characters are shown, and
// the agent counts bytes. What AWS appends could not be verified; it is within the limit here.
func cut(text string, most int, mark string) string {
	if len(text) <= most {
		return text
	}
	return text[:most-len(mark)] + mark
}
