// Package env is the environment of a command: its streams, variables, folders and
// clients. Tests replace it.
package env

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Env is the environment of a command.
type Env struct {
	In       io.Reader
	Out, Err io.Writer // the answer on stdout; messages and progress on stderr

	InIsTerminal, OutIsTerminal, ErrIsTerminal bool

	// Size returns the columns and rows of the terminal; 0 without a terminal.
	Size func() (columns, rows int)
	// LookupEnv looks up an environment variable.
	LookupEnv func(name string) (string, bool)
	// Variables returns the names of all environment variables; nil: they are not known.
	Variables func() []string
	// HomeDir, ConfigDir, StateDir and CacheDir are folders of the user, "" if unknown.
	HomeDir, ConfigDir, StateDir, CacheDir string
	// Who is the user, the machine and the process, for the lock of a cluster.
	Who string
	// Program is the name with which the process was started: clusterawsadm, or another
	// name under which it is installed.
	Program string
	// LogLevel is the value of -v: 2 by default; 4 and above log every AWS call.
	LogLevel int
	// NoColour is the value of --no-color.
	NoColour bool
	// AWS returns the configuration for a region and a profile, either of which may be ""
	// for that of the environment. It makes no call.
	AWS func(ctx context.Context, region, profile string) (aws.Config, error)
	// Kubernetes carries requests to API servers; nil: the network.
	Kubernetes cluster.Transport
	// Helm is the program helm of the user; nil: there is none.
	Helm cluster.Helm
	// Page shows a text with a pager, and returns when the user has left it; nil: there is none.
	Page func(ctx context.Context, command []string, text string) error
	// Output runs a program of the user, and returns its standard output.
	Output func(ctx context.Context, command []string) (string, error)
	// Attach runs a program of the user on the terminal of this process, with more environment variables, and returns
	// its exit code. Ctrl-C is for that program.
	Attach func(command, variables []string) (code int, err error)
	// NoPager is the value of --no-pager.
	NoPager bool
	// HTTP is for servers that are not AWS.
	HTTP *http.Client
	// Interrupts delivers Ctrl-C and SIGTERM.
	Interrupts <-chan os.Signal
	// Exit ends the process at once.
	Exit func(code int)

	mu       sync.Mutex
	onExit   map[int]func()
	serials  int
	redirect func(string) // prints messages while the progress is displayed
}

// Getenv returns an environment variable, "" when it is not set.
func (e *Env) Getenv(name string) string {
	v, _ := e.LookupEnv(name)
	return v
}

// Input returns standard input, and says that it is read if a user has to type it.
func (e *Env) Input(what string) io.Reader {
	if e.InIsTerminal {
		e.Story("reading %s from standard input (Ctrl-D ends it)", what)
	}
	return e.In
}

// OnExit registers a function to call if the process has to end at once. The function
// that it returns removes it again.
func (e *Env) OnExit(do func()) (cancel func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.onExit == nil {
		e.onExit = map[int]func(){}
	}
	e.serials++
	serial := e.serials
	e.onExit[serial] = do
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.onExit, serial)
	}
}

// Leave ends the process at once, after CleanUp.
func (e *Env) Leave(code int) {
	e.CleanUp()
	e.Exit(code)
}

// CleanUp calls the functions of OnExit, in reverse order.
func (e *Env) CleanUp() {
	e.mu.Lock()
	hooks := e.onExit
	e.onExit = nil
	e.mu.Unlock()
	serials := make([]int, 0, len(hooks))
	for s := range hooks {
		serials = append(serials, s)
	}
	slices.Sort(serials)
	for _, s := range slices.Backward(serials) {
		hooks[s]()
	}
}

// Story prints one message. An error of stderr is ignored.
func (e *Env) Story(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	e.mu.Lock()
	write := e.redirect
	e.mu.Unlock()
	if write == nil {
		write = func(s string) { _, _ = io.WriteString(e.Err, text.WrapMessage(s, e.ErrWidth())+"\n") }
	}
	write(message)
}

// logLibraries is the lowest log level with which messages of libraries are printed.
const logLibraries = 4

// LibraryLog prints what a library logs. Errors that matter are also returned, so by default
// nothing is printed.
func (e *Env) LibraryLog(library, text string) {
	if e.LogLevel >= logLibraries {
		e.Story("%s: %s", library, text)
	}
}

// RedirectMessages passes all messages to a function that controls the screen; nil ends that.
func (e *Env) RedirectMessages(redirect func(string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.redirect = redirect
}

// OutStyle is the style for stdout.
func (e *Env) OutStyle() render.Style { return render.Style{Colour: e.colour(e.OutIsTerminal)} }

// ErrStyle is the style for stderr.
func (e *Env) ErrStyle() render.Style { return render.Style{Colour: e.colour(e.ErrIsTerminal)} }

// OutWidth is the number of columns of stdout if it is a terminal, and 0 otherwise.
func (e *Env) OutWidth() int { return e.columns(e.OutIsTerminal) }

// ErrWidth is the number of columns of stderr if it is a terminal, and 0 otherwise.
func (e *Env) ErrWidth() int { return e.columns(e.ErrIsTerminal) }

func (e *Env) columns(terminal bool) int {
	if !terminal || e.Size == nil {
		return 0
	}
	columns, _ := e.Size()
	return columns
}

// colour follows https://no-color.org.
func (e *Env) colour(terminal bool) bool {
	return terminal && !e.NoColour && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
}
