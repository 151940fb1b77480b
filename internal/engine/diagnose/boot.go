package diagnose

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	instance "github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// fetchedData is the boot data that the script in a machine's user data fetches.
type fetchedData struct {
	first string // name of the first secret or parameter
	kept  bool   // machines share it and do not delete it
	there bool
}

// bootData finds user data that a machine cannot boot with, and data that it
// has not fetched.
func (q *machineCheck) bootData(ctx context.Context) (string, error) {
	out, err := q.c.EC2.DescribeInstanceAttribute(
		ctx,
		&ec2.DescribeInstanceAttributeInput{InstanceId: &q.machine.ID, Attribute: types.InstanceAttributeNameUserData},
	)
	if err != nil {
		return "", err
	}
	sent := ""
	if out.UserData != nil {
		sent = aws.ToString(out.UserData.Value)
	}
	data, wrong := userDataForm(sent)
	if wrong != "" {
		return fmt.Sprintf("the user data of %s %s: %s; if it is so in the manifest, %s", q.machine.ID, wrong, q.replaceIt(), ChangeFirst), nil
	}
	return q.fetches(ctx, data)
}

// userDataForm decodes user data, and says what cloud-init or Ignition cannot parse.
func userDataForm(sent string) (data []byte, wrong string) {
	data, err := base64.StdEncoding.DecodeString(sent)
	switch {
	case sent == "":
		return nil, "is missing"
	case err != nil:
		return nil, "is not base64"
	}
	if data, err = boot.Decompress(data); err != nil {
		return nil, "is damaged: it starts like gzip, but cannot be decompressed"
	}
	text := bytes.TrimSpace(data)
	for _, begins := range []string{"#", "{", "MIME-Version:", "Content-Type:"} {
		if bytes.HasPrefix(text, []byte(begins)) {
			return data, ""
		}
	}
	if _, err := base64.StdEncoding.DecodeString(string(text)); err == nil {
		return nil, "was encoded as base64 twice"
	}
	return nil, "is neither a cloud-config, a script, a MIME message nor an Ignition configuration"
}

// fetches checks that the boot data which the user data fetches exists.
func (q *machineCheck) fetches(ctx context.Context, userData []byte) (string, error) {
	from, ok := boot.FetchOf(userData)
	if !ok {
		return "", nil
	}
	list, what := secrets.Secrets, "secret"
	if from.Backend == boot.ParameterStore {
		list, what = secrets.TaggedParameters, "parameter"
	}
	names, err := list(ctx, q.c)
	if err != nil {
		return "", err
	}
	f := &fetchedData{first: boot.ChunkName(from.Backend, from.Prefix, 0), kept: from.Keep}
	f.there = slices.Contains(names, f.first)
	q.fetch = f
	switch {
	case f.kept && !f.there:
		return fmt.Sprintf("the %s %s, from which %s fetches its boot data, does not exist any more: %s", what, f.first, q.machine.ID, q.replaceIt()), nil
	case q.machine.Profile == "":
		return fmt.Sprintf(
			"%s has no instance profile, and needs one to fetch its boot data from the %s %s: name one in iamInstanceProfile; %s; %s",
			q.machine.ID,
			what,
			f.first,
			q.replaceIt(),
			ChangeFirst,
		), nil
	case !f.kept && f.there:
		return fmt.Sprintf(
			"%s has never fetched its boot data: the %s %s still exists, and the machine deletes it after it has fetched it. It cannot reach AWS, its role (instance profile %s) may not read it, or its image %s has no AWS CLI",
			q.machine.ID,
			what,
			f.first,
			q.machine.Profile,
			q.machine.Image,
		), nil
	}
	return "", nil
}

// consoleText is the console output of a machine, without secrets. It is read once.
func (q *machineCheck) consoleText(ctx context.Context) ([]string, error) {
	if q.console != nil {
		return q.console, nil
	}
	q.console = []string{}
	out, err := q.c.EC2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &q.machine.ID, Latest: aws.Bool(true)})
	if err != nil { // only Nitro instances support the latest output
		out, err = q.c.EC2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &q.machine.ID})
	}
	if err != nil {
		return nil, err
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output))
	if err == nil {
		q.console = strings.Split(Redacted(string(text)), "\n")
	}
	return q.console, err
}

// consoleCause finds a known error in the console output.
func (q *machineCheck) consoleCause(ctx context.Context) (string, error) {
	text, err := q.consoleText(ctx)
	if f := q.fetch; err != nil || f != nil && f.kept && !f.there {
		return "", err // the finding about the secret says the same
	}
	if line := waitsForNetwork(text); line != "" {
		return fmt.Sprintf(
			"%s says on its console \"%s\": it has no route to the internet yet; it goes on by itself when it has one",
			q.machine.ID,
			shortLine(line),
		), nil
	}
	if known, line := q.known(text); known != nil {
		return fmt.Sprintf("%s says on its console \"%s\": %s", q.machine.ID, shortLine(line), known.text()), nil
	}
	return "", nil
}

// consoleTail returns the last lines of the console output that may contain a cause.
func (q *machineCheck) consoleTail(ctx context.Context) (string, error) {
	text, err := q.consoleText(ctx)
	if err != nil {
		return "", err
	}
	interesting := regex.Of(`(?i)error|fail|kubeadm|cloud-init`)
	var lines []string
	for _, line := range text {
		if interesting.MatchString(line) {
			lines = append(lines, shortLine(line))
		}
	}
	if len(lines) == 0 {
		return "", nil
	}
	return "the console of " + q.machine.ID + " says last:\n" + strings.Join(lines[max(0, len(lines)-10):], "\n"), nil
}

// shortLine is a line that is short enough for messages, without control
// characters.
func shortLine(line string) string {
	const room = 240
	runes := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, line)))
	if len(runes) > room {
		return string(runes[:room]) + "…"
	}
	return string(runes)
}

// Boot looks for the reasons why a machine has not become a Node, without the API server.
// control says that it is to run an API server itself.
func Boot(ctx context.Context, c *cloud.Clients, m instance.InstanceState, control bool) (findings []string, look string) {
	q := &machineCheck{c: c, machine: m, control: control}
	q.checkBoot(ctx)
	return q.result(ctx)
}
