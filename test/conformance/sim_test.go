package conformance

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// TestSimulated has the simulated AWS answer as AWS does, as far as we know.
func TestSimulated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		before := a.Inventory()
		cfg := a.Config()
		cfg.RetryMaxAttempts = 20 // the suite asks faster than EC2 launches: with the SDK's three, chance decides whether it is throttled
		answers := run(t, cfg, func() { time.Sleep(10 * time.Minute) })
		golden.Assert(t, "answers.txt", printed(answers))
		time.Sleep(time.Hour)
		require.Equal(t, before, a.Inventory(), "the suite leaves nothing behind")
	})
}

func printed(answers []answer) string {
	var b strings.Builder
	for _, a := range answers {
		b.WriteString(a.question + ": " + a.said + "\n")
	}
	return b.String()
}
