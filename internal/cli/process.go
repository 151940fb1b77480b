package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/helm"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
)

// Process returns the environment of this process. It takes over the handling of
// interrupts.
func Process() *env.Env {
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	home := homeDir()
	configHome, _ := os.UserConfigDir() // as above
	cacheHome, _ := os.UserCacheDir()   // as above
	e := &env.Env{
		In:            os.Stdin,
		Out:           render.NewOutput(os.Stdout),                  //nolint:forbidigo // the only use of stdout
		Err:           render.NewOutput(os.Stderr),                  //nolint:forbidigo // as above
		InIsTerminal:  isTerminal(os.Stdin),                         //
		OutIsTerminal: isTerminal(os.Stdout),                        //nolint:forbidigo // only asks whether it is a terminal
		ErrIsTerminal: isTerminal(os.Stderr),                        //nolint:forbidigo // as above
		Size:          func() (int, int) { return size(os.Stderr) }, //nolint:forbidigo // as above
		LookupEnv:     os.LookupEnv,                                 //nolint:forbidigo // passed on, not read
		Variables:     variables,
		Program:       strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"),
		HomeDir:       home,
		ConfigDir:     configHome,
		StateDir:      stateDir(home),
		CacheDir:      cacheHome,
		Who:           who(),
		HTTP:          &http.Client{}, // uses the proxy variables
		Helm:          &helm.Program{Environ: os.Environ()},
		Page:          page,
		Output:        programOutput,
		Attach:        func(command, variables []string) (int, error) { return attach(interrupts, command, variables) },
		Interrupts:    interrupts,
		Exit:          os.Exit, //nolint:forbidigo // passed on, not called
	}
	e.AWS = func(ctx context.Context, region, profile string) (aws.Config, error) {
		return awsConfig(ctx, e, region, profile)
	}
	redirectLogs(e)
	return e
}

// page runs a pager on the terminal of this process. Without settings of the user, less ends at once for a text
// that fits, and shows colours, as with git.
func page(ctx context.Context, command []string, text string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)                       //nolint:gosec // a command that the user chose
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), os.Stdout, os.Stderr //nolint:forbidigo // part of Process
	cmd.Env = os.Environ()
	for _, setting := range []string{"LESS=FRX", "LV=-c"} {
		name, _, _ := strings.Cut(setting, "=")
		if _, set := os.LookupEnv(name); !set { //nolint:forbidigo // part of Process
			cmd.Env = append(cmd.Env, setting)
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = cmd.Wait() // the user may leave it before its end
	return nil
}

// programOutput runs a program, and returns its standard output.
func programOutput(ctx context.Context, command []string) (string, error) {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output() //nolint:gosec // programs of the user, by names in this module
	return string(out), err
}

// attach runs a program on the terminal of this process. Meanwhile, this process takes no interrupts: the terminal sends
// them to both.
func attach(interrupts chan<- os.Signal, command, variables []string) (int, error) {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, os.Interrupt) // signal.Ignore would be inherited by the program
	signal.Stop(interrupts)
	defer func() {
		signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
		signal.Stop(ignored)
	}()
	cmd := exec.Command(command[0], command[1:]...)                    //nolint:gosec,noctx // a program of the user, which ends the session itself
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr //nolint:forbidigo // part of Process
	cmd.Env = append(os.Environ(), variables...)
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// variables returns the names of the environment variables of the process.
func variables() (names []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	return names
}

// redirectLogs passes what libraries log to the log of the program: they would write into the
// display of the progress, or between the lines of a machine-readable format.
func redirectLogs(e *env.Env) {
	log.SetFlags(0)
	log.SetOutput(libraryLog{e, "Go"})
	klog.SetLogger(funcr.New(func(_, text string) { e.LibraryLog("Kubernetes client", text) }, funcr.Options{}))
}

// libraryLog writes the lines of a library to the log of the program.
type libraryLog struct {
	e    *env.Env
	name string
}

// Write implements io.Writer.
func (l libraryLog) Write(text []byte) (int, error) {
	l.e.LibraryLog(l.name, strings.TrimSpace(string(text)))
	return len(text), nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func size(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// stateDir is the folder for state: XDG_STATE_HOME and its default, or the local
// application data on Windows.
func stateDir(home string) string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) { //nolint:forbidigo // part of Process
		return dir
	}
	if runtime.GOOS == "windows" {
		return os.Getenv("LOCALAPPDATA") //nolint:forbidigo // part of Process
	}
	if home == "" { // a folder that all users share is no place for state
		return ""
	}
	return filepath.Join(home, ".local", "state")
}

// homeDir is the home directory of the user: $HOME, or that of the system's list of users. ""
// means unknown.
func homeDir() string {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return home
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

func who() string {
	login := "somebody"
	if u, err := user.Current(); err == nil {
		login = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s pid %d", login, host, os.Getpid())
}

// awsConfig returns the configuration of the environment and of the user's files. The
// metadata service of EC2 is queried last and only once, because a laptop has none.
func awsConfig(ctx context.Context, e *env.Env, region, profile string) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithLogger(logging.LoggerFunc(func(_ logging.Classification, format string, v ...any) {
			e.LibraryLog("AWS SDK", fmt.Sprintf(format, v...))
		})),
		// These are also for the clients of the sources of credentials.
		config.WithAPIOptions([]func(*middleware.Stack) error{awshttp.Middleware, awshttp.Reporter(func(text string) { e.Story("%s", text) })}),
		config.WithEC2RoleCredentialOptions(func(o *ec2rolecreds.Options) {
			o.Client = imds.New(imds.Options{
				HTTPClient: &brief{},
				Retryer:    retry.NewStandard(func(r *retry.StandardOptions) { r.MaxAttempts = 1 }),
			})
		}),
		config.WithAssumeRoleCredentialOptions(func(o *stscreds.AssumeRoleOptions) {
			o.TokenProvider = func() (string, error) { return askToken(aws.ToString(o.SerialNumber)) }
		}),
	}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	if profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
	}
	return config.LoadDefaultConfig(ctx, options...)
}

// askToken asks on the terminal for the code of the MFA device that the profile names in
// mfa_serial. The manifest may come from standard input, so the terminal is opened by name.
func askToken(device string) (string, error) {
	tty, err := os.OpenFile(terminalName(), os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf(
			"the profile needs a code of the MFA device %s, and there is no terminal to ask on: get temporary credentials with 'aws sts get-session-token' or 'aws configure export-credentials'",
			device,
		)
	}
	defer func() { _ = tty.Close() }()
	_, _ = fmt.Fprintf(tty, "Code of the MFA device %s: ", device)
	line, err := bufio.NewReader(tty).ReadString('\n')
	return strings.TrimSpace(line), err
}

// terminalName is the name of the terminal of this process.
func terminalName() string {
	if runtime.GOOS == "windows" {
		return "CONIN$"
	}
	return "/dev/tty"
}

// metadataTimeout limits a request to the metadata service of EC2, which is one hop
// away and answers within milliseconds.
const metadataTimeout = time.Second
