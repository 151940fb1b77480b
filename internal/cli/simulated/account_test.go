package simulated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAccountIsKeptBetweenCommands(t *testing.T) {
	o := Options{File: filepath.Join(t.TempDir(), "deep", "account.json"), Region: "us-east-1", Speed: 60}
	a, err := Open(t.Context(), o)
	require.NoError(t, err)
	put := &ssm.PutParameterInput{Name: aws.String("/a"), Value: aws.String("b"), Type: types.ParameterTypeString}
	_, err = ssm.NewFromConfig(a.Config).PutParameter(t.Context(), put)
	require.NoError(t, err)
	then := a.Clock.Now()
	require.NoError(t, a.Close())

	b, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	out, err := ssm.NewFromConfig(b.Config).GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/a")})
	require.NoError(t, err)
	assert.Equal(t, "b", aws.ToString(out.Parameter.Value))
	assert.False(t, b.Clock.Now().Before(then), "its clock goes on, and not back")
	assert.WithinDuration(t, then, b.Clock.Now(), 10*time.Minute, "it stands still while nobody looks")
}

// A second process waits until the first one has closed the account, and says for whom.
func TestAccountIsWaitedFor(t *testing.T) {
	o := Options{File: filepath.Join(t.TempDir(), "account.json")}
	a, err := Open(t.Context(), o)
	require.NoError(t, err)

	stopped, stop := context.WithCancelCause(t.Context())
	o.Waits = func(holder string) {
		assert.Equal(t, fmt.Sprintf("process %d", os.Getpid()), holder)
		stop(errors.New("interrupted"))
	}
	_, err = Open(stopped, o)
	require.ErrorContains(t, err, "interrupted")

	o.Waits = func(string) { assert.NoError(t, a.Close()) }
	b, err := Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, b.Close())
}

func TestBrokenFileIsNotOverwritten(t *testing.T) {
	for _, content := range []string{"{", "", "null", "{}", `{"Now": null}`, "[]"} {
		file := filepath.Join(t.TempDir(), "account.json")
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := Open(t.Context(), Options{File: file})
		require.ErrorContains(t, err, "the file is not a simulated account, or is damaged", content)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, content, string(data))
	}
}

// A file of an older version does not have the resources that this version simulates.
func TestFileOfAnOlderVersion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "account.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"Now": "2026-11-20T12:00:00Z"}`), 0o600))
	a, err := Open(t.Context(), Options{File: file, Region: "us-east-1", Speed: 60})
	require.NoError(t, err)
	put := &ssm.PutParameterInput{Name: aws.String("/a"), Value: aws.String("b"), Type: types.ParameterTypeString}
	_, err = ssm.NewFromConfig(a.Config).PutParameter(t.Context(), put)
	require.NoError(t, err)
	require.NoError(t, a.Close())
}

func TestLookingDoesNotMakeAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "account.json")
	a, err := Open(t.Context(), Options{File: file})
	require.NoError(t, err)
	require.NoError(t, a.Close())
	assert.NoFileExists(t, file)
}
