package crash_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/crash"
)

// The error of a panic has the stack of the goroutine that panicked.
func TestCatch(t *testing.T) {
	failure := errors.New("no panic")
	require.ErrorIs(t, crash.Catch(func() error { return failure }), failure)
	var bug *crash.Error
	require.ErrorAs(t, crash.Catch(func() error { panic("oops") }), &bug)
	require.EqualError(t, bug, "bug in clusterawsadm: oops")
	require.Contains(t, bug.Stack, "TestCatch")
}

// A panic in one of several goroutines reaches the goroutine that waits for them, after all
// have ended.
func TestGroup(t *testing.T) {
	ended := false
	err := crash.Catch(func() error {
		var g crash.Group
		g.Go(func() { indexOf(nil) })
		g.Go(func() { ended = true })
		g.Wait()
		return nil
	})
	var bug *crash.Error
	require.ErrorAs(t, err, &bug)
	require.Contains(t, bug.Stack, "indexOf")
	require.True(t, ended)
}

func indexOf(list []int) int { return list[len(list)] }
