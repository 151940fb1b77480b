//go:build e2e

package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// kills is the number of runs to kill.
const kills = 20

// TestKilled kills a run at a random moment, continues it with another one, and deletes
// the cluster; every fourth time it kills the deletion. E2E_SEED repeats a sequence.
func TestKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("E2E_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("E2E_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	server := moto.Start(t)
	server.Bootstrap(t)
	before := inventory(t, server)
	s, manifest := newShell(t, server), example("quickstart")

	began := time.Now()
	s.run(t, 0, "create", "-f", manifest, "--yes")
	undisturbed := time.Since(began)
	want := kindsOf(inventory(t, server))
	began = time.Now()
	s.run(t, 0, "delete", "-f", manifest, "--yes")
	deletion := time.Since(began)
	require.Equal(t, before, inventory(t, server))
	t.Logf("undisturbed, create takes %s and delete %s", undisturbed.Round(time.Millisecond), deletion.Round(time.Millisecond))

	for n := range kills {
		if n%4 == 3 {
			s.run(t, 0, "create", "-f", manifest, "--yes")
			s.kill(t, random, deletion, "delete", "-f", manifest, "--yes")
		} else {
			s.kill(t, random, undisturbed, "create", "-f", manifest, "--yes")
			s.run(t, 0, "create", "-f", manifest, "--yes")
			assert.Equal(t, want, kindsOf(inventory(t, server)), "the same as of an undisturbed run")
			s.run(t, 0, "plan", "-f", manifest, "--detailed-exitcode")
		}
		s.run(t, 0, "delete", "-f", manifest, "--yes")
		require.Equal(t, before, inventory(t, server), "nothing is left")
	}
}

// kill starts a command and kills it within that time. Half of the moments are in the
// first fifth, which has most of the calls.
func (s *shell) kill(t *testing.T, random *rand.Rand, within time.Duration, args ...string) {
	t.Helper()
	if random.IntN(2) == 0 {
		within /= 5
	}
	moment := time.Duration(random.Int64N(int64(within)))
	cmd, _, story := s.command(t.Context(), args...)
	require.NoError(t, cmd.Start())
	time.Sleep(moment)
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
	t.Logf("%s killed after %s: %s", args[0], moment.Round(time.Millisecond), lastLine(story.String()))
}

func lastLine(story string) string {
	lines := strings.Split(strings.TrimSpace(story), "\n")
	return lines[len(lines)-1]
}

// kindsOf counts lines by their first word: IDs differ from run to run.
func kindsOf(inventory []string) map[string]int {
	kinds := map[string]int{}
	for _, line := range inventory {
		kind, _, _ := strings.Cut(line, " ")
		kinds[kind]++
	}
	return kinds
}
