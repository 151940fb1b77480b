// Package cluster has the commands below "cluster": one file for each, with its options,
// its constructor and its code.
package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// New returns the command with its subcommands.
func New(e *env.Env) *cobra.Command {
	f := &flags{
		Flags: account.Flags{Env: e}, progress: choice{value: "auto", of: []string{"auto", "tree", "plain", "json", "none"}},
	}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Create, show and delete clusters from Cluster API manifests",
		Long: `Create, show and delete Kubernetes clusters on AWS from Cluster API manifests.

There is no state file: all state is in the AWS account. Every command can be
stopped at any time and run again, on this machine or on another one.`,
		Example: `  clusterawsadm cluster generate demo > demo.yaml
  clusterawsadm cluster create -f demo.yaml --simulate
  clusterawsadm cluster describe demo --simulate`,
	}
	f.addTo(cmd)
	cmd.AddCommand(
		newValidate(f),
		newConvert(f),
		newPlan(f),
		newRehearse(f),
		newCreate(f),
		newUpgradePlan(f),
		newScale(f),
		newSet(f),
		newStop(f),
		newStart(f),
		newDelete(f),
		newList(f),
		newDescribe(
			f,
		),
		newWaitFor(f),
		newLogs(f),
		newExec(f),
		newSSH(f),
		newBackup(f),
		newKubeconfig(f),
		newExport(f),
		newHandover(f),
		newTakeback(f),
		newImport(f),
		newGraph(f),
		newReport(f),
		newGenerate(f),
		newSchema(f),
		newExplain(f),
		newPolicy(f),
	)
	for _, c := range cmd.Commands() {
		f.timed(c)
		f.completeNames(c)
	}
	hideInert(cmd)
	return cmd
}

// acting lists, for the commands that open no account, the shared flags that have an effect.
// All others have all of them.
func acting() map[string][]string {
	// The region of a manifest without one is that of the profile, or of the simulated account.
	// A management cluster may have its identities, and not answer.
	manifest := []string{"region", "profile", "simulate", "simulate-assume", "timeout"}
	return map[string][]string{
		"validate": manifest, "convert": {"timeout"}, "graph": manifest, "policy": manifest, "generate": {"region"}, "report": nil, "plan show": nil,
		"schema": nil, "explain": nil,
	}
}

// hideInert hides flags without an effect from the help of the commands below. They stay
// accepted, so that a script can pass the same flags to every command.
func hideInert(group *cobra.Command) {
	for name, acts := range acting() {
		cmd, _, err := group.Find(strings.Fields(name))
		if err != nil || cmd == group {
			panic("cluster: there is no command " + name) // an error in this file
		}
		group.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(acts, f.Name) {
				inert := *f
				inert.Hidden = true
				cmd.Flags().AddFlag(&inert)
			}
		})
	}
}

// flags are the flags that all commands share.
type flags struct {
	account.Flags

	emulatorSpeed float64
	parallel      int
	timeout       time.Duration
	progress      choice
	verbose       bool
	assume        bool // what manifests take for granted is put into the simulated account

	limit  *simulatedLimit // of a command with --timeout and --simulate; otherwise nil
	clock  *clock.Clock    // of the account that was opened last
	warned sync.Map        // texts of warnings
}

// warn prints a warning, unless the command has printed it already.
func (f *flags) warn(text string) {
	if _, before := f.warned.LoadOrStore(text, true); !before {
		f.Env.Story("warning: %s", text)
	}
}

func (f *flags) addTo(cmd *cobra.Command) {
	p := cmd.PersistentFlags()
	f.Add(p, "", "from the manifest, then from the environment, or us-east-1 with --simulate")
	p.Float64Var(
		&f.emulatorSpeed,
		"emulator-speed",
		1,
		"speed of the emulator at AWS_ENDPOINT_URL, as a multiple of that of AWS; all waits become shorter by this factor",
	)
	_ = p.MarkHidden("emulator-speed") // fails only for an unknown flag
	p.IntVar(&f.parallel, "parallel", 0, "maximum number of concurrent AWS calls (0: 32)")
	p.DurationVar(
		&f.timeout,
		"timeout",
		0,
		"stop after this time, with exit code 130 before the first write and 5 after it; simulated time with --simulate (0: no limit)",
	)
	p.Var(&f.progress, "progress", "how to show progress: "+strings.Join(f.progress.of, ", "))
	p.BoolVar(
		&f.assume,
		"simulate-assume",
		false,
		"put what the manifest takes for granted into the simulated account, and list it: VPC, subnets, security groups, roles, key pairs, images, keys, and so on",
	)
	p.BoolVar(&f.verbose, "verbose", false, "log every AWS call, as -v 4 does")
	complete(cmd, "progress", f.progress.of)
}

// manifestOnly refuses arguments of a command whose only input is a manifest.
func manifestOnly(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	for _, file := range []string{args[0], args[0] + ".yaml", args[0] + ".yml"} {
		if _, err := os.Stat(file); err == nil {
			return env.Usagef("unexpected argument %q: did you mean -f %s?", args[0], file)
		}
	}
	return env.Usagef("unexpected argument %q: name the manifest of the cluster with -f FILE", args[0])
}

// oneName requires the name of a cluster.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	problem := "the name of the cluster is missing"
	if len(args) > 1 {
		problem = fmt.Sprintf("unexpected argument %q", args[1])
	}
	return env.Usagef("%s: %s %s", problem, cmd.Parent().CommandPath(), cmd.Use)
}

// choice is the value of a flag with a fixed set of values.
type choice struct {
	value string
	of    []string
	also  map[string]string // other names of the values
	old   map[string]string // names of releases before, with a warning
	given string            // the old name that was used
}

// String implements pflag.Value.
func (c *choice) String() string { return c.value }

// Type implements pflag.Value.
func (c *choice) Type() string { return "string" }

// Set implements pflag.Value.
func (c *choice) Set(v string) error {
	if name, ok := c.also[v]; ok {
		v = name
	}
	if name, ok := c.old[v]; ok {
		v, c.given = name, v
	}
	if !slices.Contains(c.of, v) {
		if near := suggest.Nearest(v, c.of); near != "" && len(c.of) > 10 {
			return fmt.Errorf("did you mean %q? must be one of %s", near, strings.Join(c.of, ", "))
		}
		return fmt.Errorf("must be one of %s", strings.Join(c.of, ", "))
	}
	c.value = v
	return nil
}

// typed reports whether a flag is on the command line, and not from a setting.
func typed(cmd *cobra.Command, flag string) bool {
	f := cmd.Flags().Lookup(flag)
	return f != nil && f.Changed && env.SettingOf(f) == ""
}

// output adds the flag of the output format; the first format is the default.
func output(cmd *cobra.Command, c *choice, formats ...string) {
	*c = choice{value: formats[0], of: formats}
	cmd.Flags().VarP(c, "output", "o", "output format: "+strings.Join(formats, ", "))
	complete(cmd, "output", formats)
}

// complete sets the values that the shell completes for a flag.
func complete(cmd *cobra.Command, flag string, values []string) {
	// Fails only for an unknown flag, or one with a completion.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
