package conformance

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
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
		cfg.RetryMaxAttempts = 20 // the suite calls faster than the rate limits: with the SDK's three attempts, chance decides
		answers := run(t, cfg, func() { time.Sleep(10 * time.Minute) })
		golden.Assert(t, "answers.txt", printed(answers))
		requireDocumented(t, a.Calls())
		time.Sleep(time.Hour)
		require.Equal(t, before, a.Inventory(), "the suite leaves nothing behind")
	})
}

// requireDocumented requires that the table of operations in docs/simulator.md, which is generated
// from the code, has the errors of calls.
func requireDocumented(t *testing.T, calls []awssim.Call) {
	t.Helper()
	page, err := os.ReadFile("../../docs/simulator.md")
	require.NoError(t, err)
	rows, service := map[string]string{}, ""
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			service = strings.TrimSpace(title)
		}
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			rows[service+" "+strings.TrimPrefix(cells[0], "| ")] = cells[2]
		}
	}
	failed, p := 0, awssim.New(awssim.Options{}).Process()
	for _, c := range calls {
		ofKind := slices.Contains([]string{"CreateTags", "DeleteTags"}, c.Operation) && strings.HasSuffix(c.Err, ".NotFound")
		if l, limited := p.Limits(c.Service); c.Err == "" || limited && c.Err == l.Code || ofKind {
			continue
		}
		failed++
		assert.Contains(t, strings.Split(rows[c.Service+" "+c.Operation], ", "), c.Err, "%s %s", c.Service, c.Operation)
	}
	require.Greater(t, failed, 50)
}

func printed(answers []answer) string {
	var b strings.Builder
	for _, a := range answers {
		b.WriteString(a.question + ": " + a.said + "\n")
	}
	return b.String()
}
