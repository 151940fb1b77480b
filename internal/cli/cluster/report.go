package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/render/report"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

type reportOptions struct {
	*flags
	output destination
}

func newReport(f *flags) *cobra.Command {
	o := &reportOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "report EVENTS",
		Short: "Make a web page of a run from its events",
		Long: `Make a web page of a run from its events, which 'cluster create' and 'cluster delete'
write to stderr with --progress json; EVENTS is the file, or - for standard input.
'--report FILE' of these commands writes the same page at the end of the run.

The page shows what each resource waited for, the critical path, the graph with the
final states, the cost, the calls to AWS, warnings and errors. It is one file, and loads
nothing from elsewhere. A run that was killed has a page, too.`,
		Example: `  clusterawsadm cluster create -f demo.yaml --yes --progress json 2> demo.ndjson
  clusterawsadm cluster report demo.ndjson --to demo.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return env.Usagef("name the file with the events of the run, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.output.addTo(cmd, "`FILE` for the page (default: standard output)", "html")
	return cmd
}

func (o *reportOptions) run(ctx context.Context, file string) error {
	r, err := o.read(ctx, file)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	if o.output.to == "" {
		_, err = io.WriteString(o.Env.Out, r.Page())
		return err
	}
	if err := files.Replace(o.output.to, []byte(r.Page()), files.Private); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	o.Env.Story("Report: %s", o.output.to)
	return nil
}

// read reads the events of a run from a file or from standard input.
func (o *reportOptions) read(ctx context.Context, file string) (*report.Report, error) {
	if file == "-" {
		r, err := report.Read(input.Interruptible(ctx, o.Env.Input("the events")))
		if err != nil {
			err = env.Usagef("%s: %w", file, err)
		}
		return r, err
	}
	f, err := input.Open(ctx, file)
	if err != nil {
		return nil, &env.UsageError{Err: noSuchFile(file, err)}
	}
	r, err := report.Read(f)
	if err != nil {
		err = env.Usagef("%s: %w", file, err)
	}
	if ctx.Err() == nil {
		_ = f.Close()
	}
	return r, err
}

// addReport adds --report.
func addReport(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "report", "", "write a web page of the run to `FILE` at its end, also if it fails")
}

// checkNoReport returns an error if --report is used with --dry-run, which is no run.
func checkNoReport(file string) error {
	if file != "" {
		return env.Usagef("use --report or --dry-run, not both")
	}
	return nil
}

// writeReport writes the page of the run. The run does not fail with it.
func (r *run) writeReport() {
	if r.report == "" {
		return
	}
	page, err := report.Read(r.events.reader())
	if err == nil {
		err = files.Replace(r.report, []byte(page.Page()), files.Private)
	}
	r.saidReport(r.report, err)
}

// saidReport says where a report is, or why it is not there.
func (f *flags) saidReport(file string, err error) {
	switch {
	case err != nil:
		f.Env.Story("warning: the report was not written: %v", err)
	case f.progress.value != "json":
		f.Env.Story("Report: %s", file)
	}
}

// events keeps the events of a run. It is for concurrent use.
type events struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (e *events) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all.Write(p)
}

func (e *events) reader() io.Reader {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.NewReader(bytes.Clone(e.all.Bytes()))
}
