// Package cli is the command line: the root command, its settings and the exit
// codes.
package cli

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/ami"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/cluster"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/controller"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/gc"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/resource"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/simulate"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/version"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// name is the name of the program.
const name = "clusterawsadm"

// Main runs the command for the arguments and returns the exit code.
func Main(args []string, e *env.Env) int {
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // the root of all contexts
	defer cancel(nil)
	defer watch(e, cancel)()
	root, begun := newRoot(e)
	root.SetArgs(append([]string{}, args...)) // nil would mean the arguments of the process
	var cmd *cobra.Command
	err := crash.Catch(func() (err error) {
		cmd, err = root.ExecuteContextC(ctx)
		return err
	})
	e.CleanUp()
	if err != nil && *begun == nil {
		err = &env.UsageError{Err: err} // an error of cobra: the command line is wrong
	}
	code := env.ExitCode(ctx, err)
	if upstream(cmp.Or(cmd, *begun, root)) && code != env.Interrupted {
		code = min(code, env.Failed) // upstream has no other codes
	}
	e.Explain(err)
	printRefusal(ctx, e, cmp.Or(cmd, *begun, root), err)
	printContinue(e, cmp.Or(cmd, *begun, root), err, args)
	return code
}

// Commands returns the root command, for the reference of all commands.
func Commands(e *env.Env) *cobra.Command {
	root, _ := newRoot(e)
	return root
}

// newRoot returns the root command, and a pointer that is set to the command that starts:
// errors before that are errors of the command line.
func newRoot(e *env.Env) (root *cobra.Command, begun **cobra.Command) {
	begun = new(*cobra.Command)
	root = &cobra.Command{
		Use:   name,
		Short: "Prepare AWS accounts for Cluster API, and create clusters from its manifests",
		Long: `clusterawsadm is the admin tool of Cluster API Provider AWS (CAPA). It prepares
AWS accounts, finds machine images and manages the credentials of management
clusters. With "clusterawsadm cluster" it also creates, shows and deletes
clusters itself: from unchanged Cluster API manifests, without a management
cluster.

Every flag can also be set by an environment variable (CLUSTERAWSADM_REGION for
--region) or in the configuration file (region: us-east-1). A region that is set
there is only a default: the region of a manifest has priority.`,
		Version:           version.Get().String(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := configure(cmd, e); err != nil {
				return &env.UsageError{Err: err}
			}
			if err := missingFlags(cmd); err != nil {
				return err
			}
			*begun = cmd
			return nil
		},
	}
	root.PersistentFlags().String("config", "", "configuration file (default "+defaultConfig(e, "…")+")")
	root.PersistentFlags().IntVarP(&e.LogLevel, "v", "v", 2, "log level; 4 and above log every AWS call")
	root.PersistentFlags().BoolVar(&e.NoColour, "no-color", false, "no colours, as with NO_COLOR in the environment")
	root.PersistentFlags().BoolVar(&e.NoPager, "no-pager", false, "print long output at once, and not with the pager of PAGER, or less")
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.SetFlagErrorFunc(flagError)
	printHelp(root, e)
	root.AddCommand(ami.New(e), bootstrap.New(e), cluster.New(e), controller.New(e), eks.New(e), gc.New(e), resource.New(e), simulate.New(e), version.New(e))
	makeGroup(root)
	root.InitDefaultCompletionCmd()
	helpTopics(root)
	groups(root)
	completeFlags(root, e)
	return root, begun
}

// upstream reports whether a command is also in Cluster API Provider AWS's clusterawsadm,
// as the root command is.
func upstream(cmd *cobra.Command) bool {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		if !cmd.Parent().HasParent() {
			return cmd.Name() != "cluster" && cmd.Name() != "simulate"
		}
	}
	return true
}

// watch stops the command at the first interrupt, after the current calls, and the
// process at the second.
func watch(e *env.Env, cancel context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case _, ok := <-e.Interrupts:
				if !ok {
					return
				}
			}
			if n > 0 {
				e.Leave(env.Interrupted)
				return
			}
			e.Story("stopping, within two seconds; press Ctrl-C again to exit immediately")
			cancel(env.ErrInterrupted)
		}
	})
	return func() {
		close(done)
		ended.Wait()
	}
}

// printContinue prints how to continue a run that stopped halfway.
func printContinue(e *env.Env, cmd *cobra.Command, err error, args []string) {
	var left *plan.LeftoverError
	if errors.As(err, &left) {
		if left.Err != nil { // only the user can delete them
			e.Story("Delete or move what is named above, then run the command again:\n\n  %s\n", env.Shell(append([]string{name}, args...)))
		}
		return
	}
	var halfway *plan.HalfwayError
	var end plan.Diagnosed
	if !errors.As(err, &halfway) && !errors.As(err, &end) {
		return
	}
	if errors.As(err, &end) {
		if _, command := end.Diagnosis(); command != "" {
			e.Story("For more output of the machine:\n\n  %s\n", command)
		}
	}
	if cmd.Name() == "wait" {
		e.Story(
			"This command changes nothing. To wait again, repeat it, with a longer --timeout if the cluster needs more time:\n\n  %s\n",
			env.Shell(append([]string{name}, args...)),
		)
		return
	}
	then := ""
	switch reconcile.Repeats(err) {
	case plan.RepeatContinues:
		then = "To continue, run the command again"
	case plan.RepeatAfterChange:
		then = "Another run would end in the same way: change what is named above, such as in the manifest. Then run the command again"
	case plan.RepeatCheck:
		then = "If a cause above is in the manifest or in the boot data of machines, change it first: another run alone does not help then. To continue, run the command again"
	case plan.RepeatLater:
		then = "AWS has no capacity for a type of machine at the moment: another run helps when it has. " +
			"Or choose another instanceType, another zone (failureDomain, or the subnets of the pool), or on-demand instead of Spot machines. Then run the command again"
	}
	e.Story("No cleanup is needed. %s:\n\n  %s\n", then, env.Shell(append([]string{name}, args...)))
}
