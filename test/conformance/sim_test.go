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

// TestSimulated compares the answers of the simulated AWS with what is known about AWS.
func TestSimulated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := awssim.New(awssim.Options{})
		before := a.Inventory()
		cfg := a.Config()
		cfg.RetryMaxAttempts = 20 // the suite calls faster than EC2's rate limit: with the SDK's three attempts, chance decides
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
