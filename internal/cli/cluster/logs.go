package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	program "github.com/clusterawsadm/clusterawsadm/internal/cli/version"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type logsOptions struct {
	manifestFlags
	output destination
	follow bool
}

func newLogs(f *flags) *cobra.Command {
	o := &logsOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "logs {-f FILE | NAME} [NODE...]",
		Short: "Collect the state and the logs of a cluster in one archive, or follow its consoles",
		Long: `Collect the state and the logs of a cluster in one archive, for a bug report: what
describe shows, the plan if there is a manifest, the console output of the machines and,
if the API server answers, the pods and events of the cluster. The command only reads.

The logs of the kubelet and of cloud-init are read on the machines with SSM Run Command:
where the agent of Systems Manager runs, the role of the machine has the permissions of
AmazonSSMManagedInstanceCore, and you have ssm:DescribeInstanceInformation,
ssm:SendCommand and ssm:GetCommandInvocation. What AWS stores of them is encrypted with a
key of this run. Logs that cannot be read are listed in missing.txt.

With --follow, the command shows the console output of the machines instead, and what is
added to it, until Ctrl-C or --timeout: of all machines, also of new ones, or of the named
ones. NODE is a machine, as in exec. EC2 keeps the last 64 KiB of a console, and shows new
lines within seconds only on Nitro instances.

Keys, certificates, tokens, passwords and other long words without spaces are replaced by
[secret]. The archive names machines, addresses, pods and the account: look at it before
you publish it. Runs of this program store no events; 'create --progress json' prints
them.`,
		Example: `  clusterawsadm cluster logs demo
  clusterawsadm cluster logs -f demo.yaml --to demo-logs.tar.gz
  clusterawsadm cluster logs demo --follow demo-md-0/0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.follow {
				return o.runFollow(cmd.Context(), args)
			}
			if len(args) > 1 {
				return env.Usagef("unexpected argument %q: machines are named only with --follow", args[1])
			}
			return o.run(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&o.follow, "follow", false, "show the console output of the machines, and what is added to it")
	o.addManifest(cmd)
	o.output.addTo(cmd, "`FILE` to write, which must not exist (default NAME-logs.tar.gz)", "text", "json")
	return cmd
}

func (o *logsOptions) run(ctx context.Context, args []string) (err error) {
	x, err := o.subject(ctx, args, runFlags{waits: true, wait: choice{value: string(plan.NodesJoined)}})
	if err != nil {
		return err
	}
	defer x.end(ctx, &err)
	c, s := x.cluster, x.session
	if o.output.to == "" {
		o.output.to = c.Name + "-logs.tar.gz"
	}
	if _, err := os.Lstat(o.output.to); err == nil {
		return env.Usagef("%s exists: name another file with --to FILE", o.output.to)
	}
	if err := checkWritable("to", o.output.to); err != nil {
		return err
	}
	l, err := c.Logs(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 && len(l.Status.Resources) == 0 {
		return o.notFound(c.Name, c.Region)
	}
	files, err := o.documents(l, s.Clock.Now())
	if err != nil {
		return err
	}
	if len(args) == 0 {
		files = append(files, o.plan(ctx, c, &l)...)
	}
	files = append(files, l.Files...)
	for _, x := range l.Missing {
		o.Env.Story("missing: %s", env.Valid(x))
	}
	if len(l.Missing) > 0 {
		files = append(files, cluster.LogFile{Name: "missing.txt", Text: strings.Join(l.Missing, "\n") + "\n"})
	}
	if err := o.write(c.Name, files, s.Clock.Now()); err != nil || o.output.value == "text" {
		return err
	}
	out := logsOutput{Version: render.Version, File: o.output.to, Missing: l.Missing}
	for _, x := range files {
		out.Files = append(out.Files, logsFile{x.Name, len(x.Text)})
	}
	return render.Encode(o.Env.Out, render.JSON, out)
}

// logsOutput is the JSON output.
type logsOutput struct {
	Version int        `json:"version"`
	File    string     `json:"file"` // the archive
	Files   []logsFile `json:"files"`
	Missing []string   `json:"missing,omitempty"` // what could not be read, and why
}

// logsFile is a file in the archive.
type logsFile struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// documents are the files about the program and the state of the cluster.
func (o *logsOptions) documents(l cluster.Logs, now time.Time) ([]cluster.LogFile, error) {
	var tree, document bytes.Buffer
	if err := render.Status(&tree, l.Status, render.StatusView{Full: true, Now: now}); err != nil {
		return nil, err
	}
	if err := render.Encode(&document, render.JSON, described(l.Status)); err != nil {
		return nil, err
	}
	return []cluster.LogFile{
		{Name: "version.txt", Text: program.Get().String() + "\n"}, {Name: "describe.txt", Text: tree.String()}, {Name: "describe.json", Text: document.String()},
	}, nil
}

// plan is the file of the plan. If it cannot be made, the archive says so.
func (o *logsOptions) plan(ctx context.Context, c *reconcile.Cluster, l *cluster.Logs) []cluster.LogFile {
	var document bytes.Buffer
	p, err := c.Plan(ctx)
	if err == nil {
		err = render.Encode(&document, render.JSON, render.NewPlanDocument(p, render.PlanView{Cluster: c.Name, Region: c.Region}))
	}
	if err != nil {
		l.Missing = append(l.Missing, "plan.json: "+err.Error())
		return nil
	}
	return []cluster.LogFile{{Name: "plan.json", Text: document.String()}}
}

// write writes the archive, which only the user may read, and lists what is in it.
func (o *logsOptions) write(cluster string, content []cluster.LogFile, now time.Time) error {
	data, err := archive(cluster+"-logs", content, now)
	if err != nil {
		return err
	}
	err = files.Create(o.output.to, data, files.Private)
	if errors.Is(err, fs.ErrExist) {
		return env.Usagef("%s exists: name another file with --to FILE", o.output.to)
	}
	if err != nil {
		return fmt.Errorf("the logs: %w", err)
	}
	for _, x := range content {
		o.Env.Story("  %s  %d bytes", env.Valid(x.Name), len(x.Text))
	}
	o.Env.Story("%s has %d files. Look at them before you publish it.", o.output.to, len(content))
	return nil
}

func archive(folder string, files []cluster.LogFile, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	w := tar.NewWriter(packed)
	for _, f := range files {
		h := &tar.Header{Name: path.Join(folder, f.Name), Mode: 0o600, Size: int64(len(f.Text)), ModTime: now}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if _, err := w.Write([]byte(f.Text)); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), packed.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
