package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	program "github.com/clusterawsadm/clusterawsadm/internal/cli/version"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	words "github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// run is one run of a command that changes a cluster: its progress and its
// confirmation.
type run struct {
	*flags
	*subject
	verb    string   // "create", "delete"
	files   []string // of the manifest
	yes     bool
	word    string // what the user has to type to confirm
	insists bool   // the word has to be typed also with --yes, and for a plan that was made before

	report   string // file for the page of the run; "" for none
	events   events // for the report
	progress render.Progress
	who      identity
	caller   cluster.Caller        // as far as it is known
	budget   func(plan.Plan) error // refuses a plan; nil: none
	planned  *planFile             // what the run has to do; nil: what its plan says
}

// carryOut does the run, and shows its progress.
func (r *run) carryOut(ctx context.Context, do func(cluster.Options) (cluster.Result, error)) (res cluster.Result, err error) {
	if err := checkWritable("report", r.report); err != nil {
		return res, err
	}
	r.progress = r.newProgress()
	r.Env.RedirectMessages(r.progress.Note)
	var once sync.Once
	finish := func(err error, code int) { once.Do(func() { r.finish(err, code) }) }
	release := r.Env.OnExit(func() {
		finish(env.ErrInterrupted, env.Interrupted)
		r.writeReport()
	})
	r.progress.Look(render.Run{Verb: r.verb, Cluster: r.cluster.Name, Region: r.cluster.Region, Program: program.Get().String()})
	err = crash.Catch(func() (err error) {
		res, err = do(r.options(ctx))
		return err
	})
	late := env.Late(ctx, err)
	finish(late, env.ExitCode(ctx, late))
	release()
	if r.flags.progress.value != "json" {
		r.Env.RedirectMessages(nil)
	}
	r.writeReport()
	return res, err
}

// finish ends the progress of the run.
func (r *run) finish(err error, code int) {
	if r.caller == (cluster.Caller{}) {
		select {
		case r.caller = <-r.who.answer:
		default: // there is no answer yet
		}
	}
	r.progress.Result(render.Ending{
		ExitCode: code, Errors: env.Errors(err), Account: r.caller.Account, Caller: r.caller.ARN, Profile: r.who.profile, Calls: r.calls.List(),
	})
	r.progress.End()
}

func (r *run) newProgress() render.Progress {
	t := render.Terminal{Style: r.Env.ErrStyle(), Clock: r.Clock, Size: r.Env.Size}
	if r.report != "" && r.flags.progress.value == "json" {
		return render.NewNDJSON(io.MultiWriter(r.Env.Err, &r.events), t)
	}
	shown := r.shownProgress(t)
	if r.report != "" {
		return render.Both(shown, render.NewNDJSON(&r.events, t))
	}
	return shown
}

// progressKind is the value of --progress; auto is tree or plain.
func (f *flags) progressKind() string {
	switch {
	case f.progress.value != "auto":
		return f.progress.value
	case f.Env.ErrIsTerminal && !f.logsCalls() && f.Env.Getenv("TERM") != "dumb" && f.Env.Getenv("CI") == "":
		return "tree"
	}
	return "plain"
}

// shownProgress is the progress of a run on stderr.
func (f *flags) shownProgress(t render.Terminal) render.Progress {
	switch f.progressKind() {
	case "tree":
		return render.NewTree(f.Env.Err, t)
	case "json":
		return render.NewNDJSON(f.Env.Err, t)
	case "none":
		return render.NewNone(func(text string) { _, _ = io.WriteString(f.Env.Err, text+"\n") })
	}
	return render.NewLines(f.Env.Err, t)
}

// newBar is the progress of equal parts of work on stderr; see NewBar.
func (f *flags) newBar(title, bad string) *render.Bar {
	t := render.Terminal{Style: f.Env.ErrStyle(), Size: f.Env.Size}
	switch f.progressKind() {
	case "tree":
		return render.NewBar(f.Env.Err, t, title, bad)
	case "json":
		return render.NewBarOfLines(records{render.NewNDJSON(f.Env.Err, t)}, t, title, bad)
	case "none":
		return render.NewBarOfLines(io.Discard, t, title, bad)
	}
	return render.NewBarOfLines(f.Env.Err, t, title, bad)
}

// records writes lines as notes for programs.
type records struct{ render.Progress }

// Write implements io.Writer.
func (r records) Write(line []byte) (int, error) {
	r.Note(strings.TrimSpace(string(line)))
	return len(line), nil
}

// options connects the engine to the progress and the confirmation.
func (r *run) options(ctx context.Context) cluster.Options {
	r.who = r.askWho(ctx, r.cluster)
	return cluster.Options{
		Observe: r.progress.Event,
		Confirm: func(p plan.Plan) (bool, error) { return r.confirm(ctx, p) },
		Planned: r.planned.name(),
	}
}

// confirm shows the plan and asks for confirmation.
func (r *run) confirm(ctx context.Context, p plan.Plan) (bool, error) {
	view := r.who.in(
		render.PlanView{
			Cluster: r.cluster.Name,
			Region:  r.cluster.Region,
			Deletes: r.verb == "delete",
			Style:   r.Env.ErrStyle(),
			Notes:   r.notes(p),
			Width:   r.Env.ErrWidth(),
		},
	)
	r.caller = cluster.Caller{Account: view.Account, ARN: view.Caller}
	if r.planned != nil {
		if err := r.planned.check(p, view); err != nil {
			return false, err
		}
	}
	if r.budget != nil {
		if err := r.budget(p); err != nil {
			return false, err
		}
	}
	if (r.yes || r.planned != nil) && !r.insists {
		if r.flags.progress.value != "json" {
			if who := view.Who(); who != "" {
				r.Env.Story("%s", who)
			}
			r.Env.Story("%s", render.Headline(p, view))
		}
		r.progress.Begin(p)
		return true, nil
	}
	instead := "pass --yes"
	if r.insists {
		instead = "pass --new-etcd=" + r.word + " and --yes"
	}
	if err := r.checkTerminal(
		fmt.Sprintf("review with 'clusterawsadm cluster %s --dry-run', then %s\n%s", r.verb, instead, render.Headline(p, view)),
	); err != nil {
		return false, err
	}
	r.progress.Pause()
	if err := render.Plan(r.Env.Err, p, view); err != nil {
		return false, err
	}
	ok, err := r.ask(ctx, view)
	if ok && err == nil {
		r.progress.Begin(p)
	}
	return ok, err
}

// ask asks the user and waits for the answer, or for the end of the context.
func (r *run) ask(ctx context.Context, v render.PlanView) (bool, error) {
	where := v.Region
	if v.Account != "" {
		where += ", account " + v.Account
	}
	if r.insists {
		a, err := r.question(
			ctx,
			fmt.Sprintf("\nThis begins a new, empty etcd for the cluster in %s: all objects of the cluster are lost. Type its name to go on: ", where),
		)
		return a == r.word, err
	}
	if r.word != "" {
		a, err := r.question(ctx, fmt.Sprintf("\nThis deletes the cluster in %s, and cannot be undone. Type its name to delete it: ", where))
		return a == r.word, err
	}
	return r.agrees(ctx, fmt.Sprintf("\n%s cluster %s in %s?", strings.ToUpper(r.verb[:1])+r.verb[1:], v.Cluster, where))
}

// confirmed asks for a confirmation, unless --yes is set. Without a terminal the error says
// what to do instead. If the user declines, the error is ErrDeclined.
func (f *flags) confirmed(ctx context.Context, yes bool, question, instead string) error {
	if yes {
		return nil
	}
	if err := f.checkTerminal(instead); err != nil {
		return err
	}
	ok, err := f.agrees(ctx, question)
	if err == nil && !ok {
		err = plan.ErrDeclined
	}
	return err
}

// checkTerminal returns an error if the user cannot be asked, which says what to do instead.
func (f *flags) checkTerminal(instead string) error {
	switch {
	case !f.Env.InIsTerminal:
		return env.Usagef("stdin is not a terminal: %s", instead)
	case !f.Env.ErrIsTerminal:
		return env.Usagef("stderr is not a terminal: %s", instead)
	}
	return nil
}

// agrees asks a question that is answered with yes or no.
func (f *flags) agrees(ctx context.Context, question string) (bool, error) {
	a, err := f.question(ctx, question+" [y/N] ")
	a = strings.ToLower(a)
	return a == "y" || a == "yes", err
}

// question asks the user, and returns the answer; "" without one. Meanwhile, simulated time
// stands still.
func (f *flags) question(ctx context.Context, text string) (string, error) {
	defer f.clock.Hold()()
	if _, err := io.WriteString(f.Env.Err, words.WrapMessage(text, f.Env.ErrWidth())); err != nil {
		return "", err
	}
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(f.Env.In).ReadString('\n') // no input means no
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case a := <-answer:
		return a, nil
	}
}

// outcome is the JSON output of a command that changes a cluster.
type outcome struct {
	Version int           `json:"version"`
	Cluster string        `json:"cluster"`
	Region  string        `json:"region"`
	Changed render.Counts `json:"changed"`
	Reads   int64         `json:"reads"`
	Writes  int64         `json:"writes"`
	// Throttled attempts are those that AWS has refused for their rate, and that were repeated.
	Throttled   int64     `json:"throttled,omitempty"`
	ThrottledBy []string  `json:"throttledBy,omitempty"`      // the services that have refused them
	Late        float64   `json:"throttledSeconds,omitempty"` // for how long at least one call waited for that reason
	Took        float64   `json:"tookSeconds"`
	Endpoint    string    `json:"endpoint,omitempty"` // https://host:port of the API server
	Kept        []string  `json:"kept,omitempty"`     // IDs of the volumes that a deletion keeps
	Absent      []absence `json:"absent,omitempty"`   // what a deletion has looked for again
}

// absence is a resource that was deleted and that AWS does not show any more.
type absence struct {
	Resource plan.ID   `json:"resource"`
	ID       string    `json:"id"`
	Asked    []string  `json:"asked"` // IAM actions, such as "ec2:DescribeVpcs"
	At       time.Time `json:"at"`
}

func (r *run) outcome(res cluster.Result) outcome {
	return outcome{
		Version:     render.Version,
		Cluster:     r.cluster.Name,
		Region:      r.cluster.Region,
		Changed:     render.Summarize(res.Plan),
		Reads:       res.Reads,
		Writes:      res.Writes,
		Throttled:   res.Throttled,
		ThrottledBy: res.ThrottledBy,
		Late:        res.Late.Round(time.Millisecond).Seconds(),
		Took:        res.Took.Round(time.Millisecond).Seconds(),
	}
}

// changed describes what a run has changed, and how long it took: "36 created, 4m2s".
func changed(res cluster.Result) string {
	var parts []string
	for _, x := range []struct {
		action plan.Action
		word   string
	}{{plan.Create, "created"}, {plan.Update, "changed"}, {plan.Remove, "deleted"}} {
		if n := res.Plan.Count(x.action); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, x.word))
		}
	}
	return strings.Join(append(parts, rounded(res.Took).String()), ", ") + throttled(res)
}

// throttled says that AWS has slowed a run down, and by how much.
func throttled(res cluster.Result) string {
	const little = 10 * time.Second // some calls at the beginning of a run are throttled where others run, too
	if res.Late < little {
		return ""
	}
	return fmt.Sprintf(
		"; AWS throttled %d calls (%s), up to %s late: all programs of the account share its limits",
		res.Throttled, strings.Join(res.ThrottledBy, ", "), rounded(res.Late),
	)
}

// rounded rounds a duration for messages.
func rounded(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// again returns the command line of another command for the same cluster.
func (r *run) again(command string) string {
	words := "clusterawsadm cluster " + command
	for _, file := range r.files {
		if file == "-" {
			words += " " + r.cluster.Name
			break
		}
		words += " -f " + env.Shell([]string{file})
	}
	if len(r.files) == 0 {
		words += " " + r.cluster.Name
	}
	if r.Region != "" && r.RegionSetting() == "" || len(r.files) == 0 || r.files[0] == "-" {
		words += " --region " + r.cluster.Region
	}
	return words + r.Again()
}
