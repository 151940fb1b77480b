package input_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// endless is an input like /dev/zero.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	if e.read > 2*input.MaxSize {
		return 0, errors.New("read too much")
	}
	return len(p), nil
}

// The files of one input have a limit together.
func TestReader(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(file, []byte("abc"), 0o600))
	var r input.Reader
	data, err := r.File(file)
	require.NoError(t, err)
	require.Equal(t, "abc", string(data))
	_, err = r.File(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = r.Read(strings.NewReader(strings.Repeat("x", input.MaxSize-3)), "exactly the rest")
	require.NoError(t, err)
	_, err = r.Read(strings.NewReader("y"), "one more")
	require.EqualError(t, err, "one more: the input is larger than 8 MiB")

	_, err = new(input.Reader).Read(&endless{}, "-")
	require.ErrorAs(t, err, new(*input.TooLargeError))
}
