package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// sample returns the events of a run on a simulated account.
func sample(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/create.ndjson")
	require.NoError(t, err)
	return string(data)
}

func read(t *testing.T, events string) *Report {
	t.Helper()
	r, err := Read(strings.NewReader(events))
	require.NoError(t, err)
	return r
}

// events writes events, with the time in seconds as the first value of each.
func events(lines ...string) string {
	var b strings.Builder
	start := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for _, l := range lines {
		at, rest, _ := strings.Cut(l, " ")
		d, err := time.ParseDuration(at)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, `{"version":1,"at":%q,%s}`+"\n", start.Add(d).Format(time.RFC3339Nano), rest)
	}
	return b.String()
}

func step(id, action string, needs ...string) string {
	var list []string
	for _, n := range needs {
		list = append(list, fmt.Sprintf(`{"id":%q}`, n))
	}
	return fmt.Sprintf(`2s "type":"step","resource":%q,"action":%q,"needs":[%s]`, id, action, strings.Join(list, ","))
}

func happened(at, id, what, more string) string {
	return fmt.Sprintf(`%s "type":"resource","resource":%q,"what":%q,"tookSeconds":0%s`, at, id, what, more)
}

func TestModel(t *testing.T) {
	r := read(t, sample(t))
	got, err := json.MarshalIndent(r, "", " ")
	require.NoError(t, err)
	golden.Assert(t, "model.json", string(got)+"\n")

	require.NotEmpty(t, r.Path)
	for i, s := range r.Path[1:] {
		assert.GreaterOrEqual(t, s.From+tolerance, r.Path[i].To, "%s begins when %s is ready", s.Name, r.Path[i].Name)
	}
	assert.InDelta(t, r.Took.Seconds(), r.Path[len(r.Path)-1].To.Seconds(), 3, "the path explains the time of the run")
	for _, row := range r.Rows {
		last := time.Duration(0)
		for _, p := range row.Phases {
			assert.LessOrEqual(t, last, p.From, row.Name)
			assert.LessOrEqual(t, p.From, p.To, row.Name)
			last = p.To
		}
	}
}

// A deletion waits in the other direction.
func TestDeletion(t *testing.T) {
	r := read(t, events(
		`0s "type":"look","verb":"delete","cluster":"demo","region":"us-east-1"`,
		`2s "type":"plan","verb":"delete","cluster":"demo","region":"us-east-1","summary":{}`,
		step("subnet/a", "delete", "vpc"), step("vpc", "delete"),
		happened("2s", "subnet/a", "deleting", ""), happened("5s", "subnet/a", "done", ""),
		happened("5s", "vpc", "deleting", ""), happened("6s", "vpc", "done", ""),
		`6s "type":"end","verb":"delete","cluster":"demo","region":"us-east-1","tookSeconds":4,"result":{},"exitCode":0`))
	assert.Equal(t, Counts{Deleted: 2}, r.Counts)
	require.Len(t, r.Path, 2)
	assert.Equal(t, PathStep{Name: "subnet/a", Row: 0, From: 0, To: 3 * time.Second}, r.Path[0])
	assert.Equal(t, PathStep{Name: "vpc", Row: 1, From: 3 * time.Second, To: 4 * time.Second}, r.Path[1])
}

// The events of a killed process end somewhere, also within a line.
func TestKilledRun(t *testing.T) {
	all := sample(t)
	for _, part := range []int{3, 2} {
		r := read(t, all[:len(all)*1/part])
		assert.Equal(t, "not finished", r.Result())
		wellFormed(t, r.Page())
	}
	r := read(t, all[:len(all)/2])
	assert.True(t, r.Planned)
	assert.Positive(t, r.Counts.Busy)
}

func TestFailedRun(t *testing.T) {
	r := read(t, events(
		`0s "type":"look","verb":"create","cluster":"demo","region":"us-east-1"`,
		`2s "type":"plan","verb":"create","cluster":"demo","region":"us-east-1","summary":{}`,
		step("vpc", "create"), step("subnet/a", "create", "vpc"),
		`2s "type":"note","text":"warning: the lock is stored on this machine only"`, `2s "type":"note","text":"something else"`,
		happened("2s", "vpc", "creating", ""), happened("3s", "vpc", "failed", `,"error":"create: VpcLimitExceeded: <none left>"`),
		happened("3s", "subnet/a", "blocked", `,"detail":"vpc"`),
		`3s "type":"end","verb":"create","cluster":"demo","region":"us-east-1","tookSeconds":1,"result":{},"exitCode":5`,
		`3s "type":"note","text":"warning: too late"`))
	assert.Equal(t, "failed", r.Result())
	assert.Equal(t, Counts{Failed: 1, NotStarted: 1}, r.Counts)
	assert.Equal(t, []string{"vpc: create: VpcLimitExceeded: <none left>"}, r.Errors)
	assert.Equal(t, []string{"the lock is stored on this machine only"}, r.Warnings)
	assert.Empty(t, r.Path)
	page := r.Page()
	wellFormed(t, page)
	assert.Contains(t, page, "VpcLimitExceeded: &lt;none left&gt;")
}

// A thousand machines are a few lines, those that failed among them, and one error.
func TestThousandMachines(t *testing.T) {
	lines := []string{
		`0s "type":"look","verb":"create","cluster":"demo","region":"us-east-1"`,
		`2s "type":"plan","verb":"create","cluster":"demo","region":"us-east-1","summary":{}`, step("vpc", "create"),
	}
	var failed []string
	for i := range 1000 {
		lines = append(lines, step(fmt.Sprintf("machine/md-0/%d", i), "create", "vpc"))
	}
	lines = append(lines, happened("2s", "vpc", "creating", ""), happened("3s", "vpc", "done", ""))
	for i := range 1000 {
		lines = append(lines, happened("3s", fmt.Sprintf("machine/md-0/%d", i), "creating", ""))
	}
	for i := range 1000 {
		id, what := fmt.Sprintf("machine/md-0/%d", i), "done"
		if i < 10 {
			what = "failed"
			failed = append(failed, fmt.Sprintf("%q", id+": create: InsufficientInstanceCapacity"))
		}
		lines = append(lines, happened(fmt.Sprintf("%dms", 40000+i), id, what, ""))
	}
	lines = append(
		lines,
		`41s "type":"end","verb":"create","cluster":"demo","region":"us-east-1","tookSeconds":39,"result":{},"exitCode":5,"errors":[`+strings.Join(failed, ",")+`]`,
	)
	r := read(t, events(lines...))
	require.Len(t, r.Rows, 3)
	assert.Equal(t, []string{"10 × machine/md-0/…: create: InsufficientInstanceCapacity"}, r.Errors)
	assert.Equal(t, Counts{Created: 991, Failed: 10}, r.Counts)
	assert.Equal(t, "machine/md-0/999", r.Path[1].Name)
	assert.Equal(t, render.BoxFailed, r.Picture.Resources[1].State, "the box of all has the state of the worst")
	page := r.Page()
	wellFormed(t, page)
	assert.Less(t, len(page), 100_000)
}

// No name and no error is understood as markup.
func TestHostileTexts(t *testing.T) {
	const evil = `\"><script src=https://evil.example/x></script><img src=x onerror=alert(1)>'&amp;\u0000\u001b[2J\u202e`
	r := read(t, events(
		`0s "type":"look","verb":"create","cluster":"`+evil+`","region":"`+evil+`","program":"`+evil+`"`,
		`2s "type":"plan","verb":"create","cluster":"x","region":"x","summary":{}`,
		`2s "type":"step","resource":"vpc/`+evil+`","action":"create","origin":"`+evil+`","needs":[{"id":"`+evil+`"},{"id":"vpc/`+evil+`"}]`,
		`2s "type":"note","text":"warning: `+evil+`"`,
		`2s "type":"resource","resource":"vpc/`+evil+`","what":"waiting","tookSeconds":0,"cloudID":"`+evil+`","detail":"`+evil+`"`,
		`3s "type":"resource","resource":"vpc/`+evil+`","what":"failed","tookSeconds":1,"error":"`+evil+`"`,
		`3s "type":"calls","service":"`+evil+`","operation":"`+evil+`","count":1,"attempts":2,"writes":true,"seconds":1,"failures":[{"code":"`+evil+`","count":1}]`,
		`3s "type":"end","verb":"create","cluster":"x","region":"x","tookSeconds":1,"result":{},"exitCode":5,"errors":["`+evil+`"],"account":"`+evil+`","caller":"`+evil+`","profile":"`+evil+`"`,
	))
	page := r.Page()
	wellFormed(t, page)
	assert.Equal(t, 1, strings.Count(page, "<script"), "only that of the page")
	assert.NotContains(t, page, "<img")
	assert.NotRegexp(t, "[\x00\x1b\u202e]", page)
	assert.Contains(t, page, "&lt;script src=https://evil.example/x&gt;")
}

func TestWrongEvents(t *testing.T) {
	for events, want := range map[string]string{
		"":          "there is no event of a run",
		"hello\n\n": "line 1 is not an event of --progress json",
		`{"a":1}`:   "line 1 is not an event",
		`{"version":2,"type":"look","at":"2026-11-24T12:00:00Z"}`: "line 1 is an event of version 2, and this program knows version 1",
		sample(t) + "{\n{}\n": "is not an event",
	} {
		_, err := Read(strings.NewReader(events))
		require.ErrorContains(t, err, want)
	}
	broken := errors.New("broken")
	_, err := Read(io.MultiReader(strings.NewReader(sample(t)), &failing{broken}))
	assert.ErrorIs(t, err, broken)
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// The page loads nothing, and has what a screen reader needs.
func TestPage(t *testing.T) {
	page := read(t, sample(t)).Page()
	wellFormed(t, page)
	assert.NotRegexp(t, `(?i)(src|href|action|data|poster|srcset)="(https?:)?//`, page)
	assert.NotRegexp(t, `(?i)@import|url\([^#]|<(link|iframe|object|embed|form|base)[^>]+https?:`, page)
	assert.NotContains(t, page, ` style="`, "the policy of the page forbids them")
	assert.NotContains(t, page, ` onclick=`)
	assert.Equal(t, 1, strings.Count(page, "<h1"))
	assert.Equal(t, []string{"Timeline", "Critical path", "Graph", "Calls"}, submatches(`<h2>([^<]*)</h2>`, page))
	ids := map[string]bool{}
	for _, id := range submatches(` id="([^"]*)"`, page) {
		assert.False(t, ids[id], id)
		ids[id] = true
	}
	for _, to := range submatches(` href="#([^"]*)"`, page) {
		assert.True(t, ids[to], "the link to %s leads somewhere", to)
	}
	assert.Equal(t, page, read(t, sample(t)).Page(), "the same events make the same page")
}

func submatches(pattern, text string) (out []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// wellFormed fails if elements are not closed in order, or something is not escaped. The page
// is valid XML, too.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader([]byte(page)))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// The plan says what the cluster costs, and the page has every item.
func TestCostOfTheCluster(t *testing.T) {
	const cost = `"cost":{"currency":"USD","before":0,"after":98.55,"pricesOf":"2026-09-18","notCounted":["data transfer"],"items":[
		{"resource":"nat-gateway/us-east-1a","group":"NAT gateways","item":"NAT gateway","unit":"hour","unitPrice":0.045,"before":{"pieces":0,"monthlyQuantity":0,"monthlyAmount":0},"after":{"pieces":1,"monthlyQuantity":730,"monthlyAmount":32.85}}]}`
	look := `0s "type":"look","verb":"create","cluster":"demo","region":"us-east-1"`
	page := read(t, events(look, `1s "type":"plan","verb":"create","cluster":"demo",`+strings.Join(strings.Fields(cost), " "))).Page()
	for _, want := range []string{"<h2>Cost</h2>", "Prices of 2026-09-18. Not included: data transfer.", `>nat-gateway/us-east-1a<span class="item">NAT gateway, $0.045 / hour</span></th>` + "\n<td>$32.85</td>", ">Total</th>\n<td>$98.55</td>", ">A month</th>"} {
		assert.Contains(t, page, want)
	}
	assert.NotContains(t, read(t, events(look, `1s "type":"plan","verb":"create","cluster":"demo"`)).Page(), "<h2>Cost</h2>")
}
