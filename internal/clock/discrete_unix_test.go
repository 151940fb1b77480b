//go:build !windows

package clock_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// Something outside of the program holds the time: a system call by itself, as at a prompt, and
// the rest with Hold.
func TestDiscreteHeldFromOutside(t *testing.T) {
	var ends [2]int
	require.NoError(t, syscall.Pipe(ends[:]))
	from, to := os.NewFile(uintptr(ends[0]), "from"), os.NewFile(uintptr(ends[1]), "to")
	defer func() { require.NoError(t, from.Close()) }()

	c := clock.Discrete(origin())
	woken, read := make(chan string, 1), make(chan error, 1)
	asleep := make(chan struct{})
	go func() {
		close(asleep)
		_, err := from.Read(make([]byte, 1))
		read <- err
	}()
	<-asleep
	awake(t.Context(), c, time.Second, "sleeper", woken)
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, origin(), c.Now())
	release := c.Hold()
	require.NoError(t, to.Close())
	require.Error(t, <-read)
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, origin(), c.Now())
	release()
	release()
	require.Equal(t, "sleeper at 1s", <-woken)
}
