package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// screen is a terminal with a few rows. It interprets the control sequences of the tree,
// so that a test can compare what a user sees.
type screen struct {
	mu     sync.Mutex
	raw    strings.Builder
	lines  []string
	row    int
	hidden bool
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw.Write(p)
	sequence := regexp.MustCompile(`^\x1b\[(\??)(\d*)([a-zA-Z])`)
	text := string(p)
	for text != "" {
		if m := sequence.FindStringSubmatch(text); m != nil {
			s.control(m[1]+m[2], m[3])
			text = text[len(m[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch r {
		case '\n':
			s.row++
		default:
			s.line(s.at() + string(r))
		}
		text = text[size:]
	}
	for s.row >= len(s.lines) {
		s.lines = append(s.lines, "")
	}
	return len(p), nil
}

func (s *screen) line(text string) {
	for s.row >= len(s.lines) {
		s.lines = append(s.lines, "")
	}
	s.lines[s.row] = text
}

func (s *screen) at() string {
	if s.row < len(s.lines) {
		return s.lines[s.row]
	}
	return ""
}

func (s *screen) control(argument, command string) {
	switch {
	case argument == "?25" && command == "l":
		s.hidden = true
	case argument == "?25":
		s.hidden = false
	case command == "G":
		s.line("")
	case command == "A":
		var n int
		_, _ = fmt.Sscan(argument, &n)
		s.row -= n
		for i := s.row; i < len(s.lines); i++ {
			s.lines[i] = "" // new text replaces the tree
		}
	case command == "J":
		s.lines = s.lines[:min(len(s.lines), s.row)]
	}
}

// shown returns the content of the screen.
func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimRight(strings.Join(s.lines, "\n"), "\n") + "\n"
}

// play runs the sample cluster: everything is created immediately, except for slow
// resources; at the end one NAT gateway fails, unless all goes well.
func play(p Progress, workers int, well bool, at func(step string)) {
	planned := sample(workers)
	p.Look(Run{Verb: "create", Cluster: "demo", Region: "us-east-1", Program: "v0.1.0"})
	time.Sleep(2 * time.Second)
	at("looking")
	planned.Expected = 3 * time.Minute
	planned.Cost = costOf([]float64{0, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1})
	p.Begin(planned)
	p.Note("warning: the lock could not be kept in SSM")
	slow := map[string]time.Duration{"nat-gateway": 100 * time.Second, "load-balancer": 150 * time.Second, "machine": 30 * time.Second}
	p.Event(plan.Event{Resource: "bucket", What: plan.Kept, At: time.Now()})
	for _, s := range planned.Steps {
		takes := slow[s.Resource.Kind()]
		p.Event(plan.Event{Resource: s.Resource, What: plan.Creating, Expected: takes, At: time.Now()})
		if takes > 0 {
			p.Event(
				plan.Event{Resource: s.Resource, What: plan.Waiting, CloudID: "id-1", Detail: "state to become available, is pending", Expected: takes, At: time.Now()},
			)
			continue
		}
		p.Event(plan.Event{Resource: s.Resource, What: plan.Done, CloudID: "id-1", Took: time.Second, At: time.Now()})
	}
	time.Sleep(42 * time.Second)
	at("waiting")
	for _, s := range planned.Steps {
		switch {
		case slow[s.Resource.Kind()] == 0:
		case s.Resource == "nat-gateway/us-east-1c" && !well:
			p.Event(plan.Event{Resource: s.Resource, What: plan.Failed, Err: errors.New("create: NatGatewayLimitExceeded"), Took: 42 * time.Second, At: time.Now()})
			p.Event(plan.Event{Resource: "api-server", What: plan.Blocked, Detail: string(s.Resource), At: time.Now()})
		default:
			p.Event(plan.Event{Resource: s.Resource, What: plan.Done, CloudID: "id-1", Took: 42 * time.Second, At: time.Now()})
		}
	}
	time.Sleep(time.Second)
	at("late")
	p.Result(Ending{
		Errors: []string{
			"nat-gateway/us-east-1c: create: NatGatewayLimitExceeded",
		},
		ExitCode: 5,
		Account:  "123456789012",
		Caller:   "arn:aws:iam::123456789012:user/ada",
		Profile:  "dev",
		Calls: []Calls{
			{Service: "EC2", Operation: "CreateNatGateway", Count: 3, Attempts: 4, Writes: true, Failures: []CallError{{"NatGatewayLimitExceeded", 1}}, Seconds: 0.9},
		},
	})
	p.End()
	p.End() // a second time, as an interrupt may
	at("end")
}

func TestTree(t *testing.T) {
	for name, c := range map[string]struct {
		wide, high, workers int
		well, colour        bool
	}{
		"usual":  {80, 24, 3, true, false},
		"colour": {80, 24, 3, false, true},
		"large":  {120, 50, 1000, true, false},
		"small":  {50, 6, 40, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &screen{}
				tree := NewTree(NewOutput(s), Terminal{Style: Style{Colour: c.colour}, Size: func() (int, int) { return c.wide, c.high }})
				var seen strings.Builder
				play(tree, c.workers, c.well, func(step string) {
					synctest.Wait()
					frame := s.shown()
					seen.WriteString("=== " + step + "\n" + frame)
					if step == "end" {
						assert.False(t, s.hidden, "the cursor is back")
						return
					}
					assert.True(t, s.hidden)
					for line := range strings.Lines(frame) {
						if !strings.HasPrefix(line, "✗ nat-gateway/") { // an error is printed completely, above the tree
							assert.Less(t, width(strings.TrimSuffix(line, "\n")), c.wide, line)
						}
					}
					if step == "waiting" {
						assert.LessOrEqual(t, strings.Count(frame, "\n"), c.high+1, "the note is above")
					}
				})
				golden.Assert(t, "tree-"+name+".txt", seen.String())
				assert.Equal(t, c.colour, strings.Contains(s.raw.String(), "\x1b[3"), "colours only where they are wanted")
			})
		})
	}
}

func TestTreeMakesRoomForAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		tree := NewTree(NewOutput(s), Terminal{})
		tree.Look(Run{Verb: "delete", Cluster: "demo", Region: "us-east-1"})
		time.Sleep(time.Second)
		assert.Contains(t, s.shown(), "reading the state of cluster demo")
		tree.Pause()
		assert.False(t, s.hidden)
		_, _ = s.Write([]byte("the plan\nsure? y\n"))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "the plan\nsure? y\n", s.shown(), "nothing is painted over the question")
		tree.Begin(sample(1))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Contains(t, s.shown(), "sure? y\nDeleting demo in us-east-1")
		tree.End()
		assert.Equal(t, "the plan\nsure? y\n", s.shown(), "nothing was done, so nothing stays")
	})
}

func TestTreeOfATerminalThatShrinks(t *testing.T) {
	tr := &canvas{painted: []string{strings.Repeat("x", 79), "y"}}
	assert.Equal(t, firstColumn+"\xff[2A", tr.home(80))
	assert.Equal(t, firstColumn+"\xff[3A", tr.home(40), "a long line has become two")
	assert.Equal(t, "abc", plain(Style{true}.paint(bold, "a")+"b"+Style{true}.paint(red, "c")))
	wide, high := tr.size()
	assert.Equal(t, []int{80, 24}, []int{wide, high})
}

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		workers int
		well    bool
	}{"usual": {3, true}, "failed": {3, false}, "large": {1000, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b strings.Builder
				play(NewLines(&b, Terminal{}), c.workers, c.well, func(string) {})
				golden.Assert(t, "lines-"+name+".txt", b.String())
				assert.NotContains(t, b.String(), "\x1b")
				assert.Less(t, strings.Count(b.String(), "\n"), 90, "a thousand machines do not flood")
			})
		})
	}
}

func TestWhatIsThereAtOnceIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, j := &screen{}, &strings.Builder{}, &strings.Builder{}
		for _, p := range []Progress{
			NewTree(NewOutput(s), Terminal{Size: func() (int, int) { return 80, 24 }}),
			NewLines(b, Terminal{}),
			NewNDJSON(j, Terminal{}),
		} {
			p.Look(Run{Verb: "create", Cluster: "demo", Region: "us-east-1"})
			p.Begin(plan.Plan{Steps: []plan.Step{
				{Resource: "node/demo-md-0/0", Action: plan.Await},
				{Resource: "workloads/flannel", Action: plan.Await},
				{Resource: "vpc", Action: plan.Keep},
			}})
			p.Event(plan.Event{Resource: "vpc", What: plan.Kept, At: time.Now()})
			p.Event(plan.Event{Resource: "node/demo-md-0/0", What: plan.Waiting, Detail: "the resource to exist", At: time.Now()})
			p.Event(plan.Event{Resource: "node/demo-md-0/0", What: plan.Done, At: time.Now()})
			p.Event(plan.Event{Resource: "workloads/flannel", What: plan.Kept, CloudID: "flannel", At: time.Now()})
			p.End()
		}
		assert.Contains(t, s.shown(), "✓ kubernetes")
		assert.Contains(t, s.shown(), "2/2")
		assert.Regexp(t, `workloads/flannel +done  flannel\n`, b.String())
		assert.NotContains(t, b.String(), "vpc")
		assert.Contains(t, j.String(), `"resource":"workloads/flannel","what":"done"`)
		assert.Contains(t, j.String(), `"result":{"done":2,"kept":1,"failed":0,"blocked":0}`)
	})
}

func TestLinesHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := NewLines(&b, Terminal{})
		p.Look(Run{Verb: "create", Cluster: "demo", Region: "us-east-1"})
		p.Event(plan.Event{Resource: "nat-gateway/a", What: plan.Creating, Expected: 100 * time.Second, At: time.Now()})
		time.Sleep(95 * time.Second)
		p.End()
		assert.Equal(t, 3, strings.Count(b.String(), "still in progress: nat-gateway/a creating"))
		assert.Contains(t, b.String(), "creating 1m30s of ~1m40s")
	})
}

func TestNDJSON(t *testing.T) {
	schema := readSchema(t)
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := NewNDJSON(&b, Terminal{})
		play(p, 3, false, func(string) {})
		golden.Assert(t, "events.ndjson", b.String())
		types := map[string]bool{}
		for line := range strings.Lines(b.String()) {
			var record map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &record))
			assert.Empty(t, schema.check(record), line)
			types[fmt.Sprint(record["type"])] = true
		}
		assert.Equal(t, map[string]bool{"look": true, "plan": true, "note": true, "resource": true, "step": true, "calls": true, "end": true}, types)
	})
}

func TestNoneStillWarns(t *testing.T) {
	var notes []string
	p := NewNone(func(s string) { notes = append(notes, s) })
	synctest.Test(t, func(*testing.T) { play(p, 1, true, func(string) {}) })
	assert.Equal(t, []string{"warning: the lock could not be kept in SSM"}, notes)
}

// eventSchema is the part of JSON Schema that docs/events.schema.json uses.
type eventSchema struct {
	Type       string                 `json:"type"`
	Const      any                    `json:"const"`
	Enum       []any                  `json:"enum"`
	Required   []string               `json:"required"`
	Properties map[string]eventSchema `json:"properties"`
	Additional *bool                  `json:"additionalProperties"`
	Minimum    *float64               `json:"minimum"`
	Format     string                 `json:"format"`
	OneOf      []eventSchema          `json:"oneOf"`
	Items      *eventSchema           `json:"items"`
}

func readSchema(t *testing.T) (s eventSchema) {
	t.Helper()
	data, err := os.ReadFile("../../docs/events.schema.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &s))
	require.NotEmpty(t, s.OneOf)
	return s
}

// check returns an error for an invalid value, "" for none.
func (s eventSchema) check(v any) string {
	if len(s.OneOf) > 0 {
		var why []string
		for _, one := range s.OneOf {
			if e := one.check(v); e != "" {
				why = append(why, e)
			}
		}
		if len(why) == len(s.OneOf)-1 {
			return ""
		}
		return "fits none or several: " + strings.Join(why, "; ")
	}
	switch {
	case s.Const != nil && s.Const != v:
		return fmt.Sprintf("%v is not %v", v, s.Const)
	case s.Enum != nil && !contain(s.Enum, v):
		return fmt.Sprintf("%v is none of %v", v, s.Enum)
	}
	switch value := v.(type) {
	case string:
		if s.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339Nano, value); err != nil {
				return err.Error()
			}
		}
		return is(s.Type, "string")
	case float64:
		if s.Minimum != nil && value < *s.Minimum {
			return fmt.Sprintf("%v is too small", value)
		}
		if s.Type == "integer" && value == float64(int(value)) {
			return ""
		}
		return is(s.Type, "number")
	case map[string]any:
		return s.checkObject(value)
	case bool:
		return is(s.Type, "boolean")
	case []any:
		for _, item := range value {
			if s.Items == nil {
				return "no list is expected"
			}
			if e := s.Items.check(item); e != "" {
				return e
			}
		}
		return is(s.Type, "array")
	}
	return fmt.Sprintf("%T is not expected", v)
}

func (s eventSchema) checkObject(v map[string]any) string {
	for _, r := range s.Required {
		if _, ok := v[r]; !ok {
			return r + " is missing"
		}
	}
	for key, value := range v {
		p, ok := s.Properties[key]
		if !ok {
			return key + " is not in the schema"
		}
		if e := p.check(value); e != "" {
			return key + ": " + e
		}
	}
	return is(s.Type, "object")
}

func is(want, have string) string {
	if want != "" && want != have {
		return "want " + want + ", have " + have
	}
	return ""
}

func contain(list []any, v any) bool {
	for _, e := range list {
		if e == v {
			return true
		}
	}
	return false
}

func TestTheSchemaCheckNotices(t *testing.T) {
	s := readSchema(t)
	good := map[string]any{"version": 1.0, "type": "note", "at": "2026-11-20T12:00:00Z", "text": "x"}
	assert.Empty(t, s.check(good))
	for key, bad := range map[string]any{"version": 2.0, "type": "nope", "at": "noon", "text": 1.0, "more": "x"} {
		record := map[string]any{}
		for k, v := range good {
			record[k] = v
		}
		record[key] = bad
		assert.NotEmpty(t, s.check(record), key)
	}
	delete(good, "text")
	assert.NotEmpty(t, s.check(good))
}
