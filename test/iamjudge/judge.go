// Package iamjudge asks an independent IAM evaluator whether a policy allows the calls of
// a program. The evaluator and AWS's authorization data are npm packages, which
// "npm ci --prefix test/iamjudge" installs.
package iamjudge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Request is one question of IAM: whether an action on a resource is allowed.
type Request struct {
	Action   string            `json:"action"`
	Resource string            `json:"resource"`
	Context  map[string]string `json:"context"` // keys and values of conditions
}

// Judge is a running evaluator.
type Judge struct {
	data *authorization

	mu  sync.Mutex
	in  io.Writer
	out *bufio.Scanner
}

// Start starts the evaluator of a folder, until the end of the test.
func Start(t *testing.T, folder string) *Judge {
	t.Helper()
	require.DirExists(t, filepath.Join(folder, "node_modules"), "npm ci --prefix test/iamjudge installs the evaluator")
	j := &Judge{data: read(t, filepath.Join(folder, "node_modules"))}
	cmd := exec.CommandContext(t.Context(), "node", "judge.mjs")
	cmd.Dir, cmd.Stderr = folder, t.Output()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	j.in, j.out = in, bufio.NewScanner(out)
	return j
}

// Allows reports whether a policy, which is encoded as JSON, allows a request. It is an
// error if IAM does not know the action, the resource or a key of a condition.
func (j *Judge) Allows(policy json.RawMessage, r Request) (bool, error) {
	question, err := json.Marshal(struct {
		Policy json.RawMessage `json:"policy"`
		Request
	}{policy, r})
	if err != nil {
		return false, err
	}
	var answer struct {
		Result string          `json:"result"`
		Errors json.RawMessage `json:"errors"`
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.in.Write(append(question, '\n')); err != nil {
		return false, err
	}
	if !j.out.Scan() {
		return false, fmt.Errorf("the evaluator has ended: %w", j.out.Err())
	}
	if err := json.Unmarshal(j.out.Bytes(), &answer); err != nil {
		return false, err
	}
	if len(answer.Errors) > 0 {
		return false, fmt.Errorf("%+v: %s", r, answer.Errors)
	}
	return answer.Result == "Allowed", nil
}
