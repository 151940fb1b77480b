package oracle

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// answerer is a running program that reads a line of JSON and writes one as its answer.
type answerer struct {
	in  io.Writer
	out *bufio.Scanner
}

// startAnswerer starts a program. It ends with the test, when its input is closed.
func startAnswerer(t *testing.T, program string) *answerer {
	t.Helper()
	run := exec.CommandContext(context.WithoutCancel(t.Context()), program)
	in, err := run.StdinPipe()
	require.NoError(t, err)
	answers, err := run.StdoutPipe()
	require.NoError(t, err)
	var story strings.Builder
	run.Stderr = &story
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		_ = in.Close()
		if err := run.Wait(); err != nil {
			t.Errorf("%v\n%s", err, story.String())
		}
	})
	a := &answerer{in, bufio.NewScanner(answers)}
	a.out.Buffer(nil, 1<<22)
	return a
}

// ask sends a question, and reads the answer into a pointer.
func (a *answerer) ask(t require.TestingT, question, answer any) {
	raw, err := json.Marshal(question)
	require.NoError(t, err)
	_, err = a.in.Write(append(raw, '\n'))
	require.NoError(t, err)
	require.True(t, a.out.Scan(), "the program has ended")
	require.NoError(t, json.Unmarshal(a.out.Bytes(), answer))
}
