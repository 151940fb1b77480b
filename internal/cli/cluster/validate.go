package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

type validateOptions struct {
	manifestFlags
	output choice
}

func newValidate(f *flags) *cobra.Command {
	o := &validateOptions{manifestFlags: manifestFlags{flags: f}}
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Check a manifest without calling AWS",
		Long: `Check a manifest as an API server with the webhooks of Cluster API and CAPA does,
and summarize it. AWS is not called. If the manifest has several clusters, all of them are
checked, each by itself; --cluster chooses one. Three and more warnings of one sort are
one line; --output json and yaml have each of them.`,
		Example: `  clusterawsadm cluster validate -f demo.yaml
  clusterawsadm cluster generate demo | clusterawsadm cluster validate -f - --strict`,
		Args: manifestOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addManifest(cmd)
	o.addObjects(cmd)
	output(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

// valid is the JSON output: what a manifest describes.
type valid struct {
	Version       int      `json:"version"`
	Valid         bool     `json:"valid"`
	Cluster       string   `json:"cluster"`
	Region        string   `json:"region"`
	Kubernetes    string   `json:"kubernetes"`
	ControlPlanes int      `json:"controlPlanes"`
	Workers       int      `json:"workers"`
	Deployments   []string `json:"deployments"`
	EKS           bool     `json:"eks,omitempty"` // EKS runs the control plane
	Pools         []string `json:"pools,omitempty"`
	Fargate       []string `json:"fargateProfiles,omitempty"`
	Warnings      []string `json:"warnings"`
}

func (o *validateOptions) run(cmd *cobra.Command) error {
	all, err := o.loadAll(cmd.Context())
	if len(all) > 1 && err == nil {
		return o.several(cmd.Context(), all)
	}
	if err == nil {
		err = refusedBy(all[0].Warnings)
	}
	if err != nil {
		return o.printInvalid(err)
	}
	m := all[0].loaded
	v := describe(m.Manifest)
	if o.output.value != "text" {
		return render.Encode(o.Env.Out, render.Format(o.output.value), v)
	}
	var names []string
	for _, file := range o.files {
		names = append(names, sourceName(file))
	}
	return o.Env.Answer(cmd.Context(), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: valid: %s\n", strings.Join(names, ", "), v)
		return err
	})
}

// several checks several clusters.
func (o *validateOptions) several(ctx context.Context, all []*member) error {
	f := o.newFleet(all)
	for _, m := range all {
		if m.err == nil {
			m.err = refusedBy(m.Warnings)
		}
	}
	if o.output.value != "text" {
		err := render.Encode(o.Env.Out, render.Format(o.output.value), f.documents(ctx, func(_ int, m *member) any {
			var wrong *input.InvalidError
			switch {
			case m.err == nil:
				return describe(m.Manifest)
			case errors.As(m.err, &wrong):
				return found(m.name, wrong)
			}
			return nil
		}))
		if err != nil {
			return err
		}
		return f.end(false)
	}
	var lines []string
	for _, m := range all {
		if m.err != nil {
			continue
		}
		lines = append(lines, fmt.Sprintf("valid: %s\n", describe(m.Manifest)))
	}
	err := o.Env.Answer(ctx, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(lines, ""))
		return err
	})
	if err != nil {
		return err
	}
	return f.end(false)
}

// refusedBy returns the problems for which a run would be refused.
func refusedBy(warnings []input.Problem) error {
	problems := slices.DeleteFunc(slices.Clone(warnings), func(p input.Problem) bool { return !p.Refused })
	if len(problems) == 0 {
		return nil
	}
	return &input.InvalidError{Problems: problems}
}

// invalid is the JSON output for an invalid manifest.
type invalid struct {
	Version  int       `json:"version"`
	Valid    bool      `json:"valid"`             // false
	Cluster  string    `json:"cluster,omitempty"` // of several
	Findings []finding `json:"findings"`
}

// finding is one problem of a manifest.
type finding struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // 0: unknown
	Object  string `json:"object,omitempty"` // "AWSCluster/demo"
	Path    string `json:"path,omitempty"`   // "spec.region"
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"` // what to do about it
}

// printInvalid prints the problems of a manifest for programs, and returns the error.
func (o *validateOptions) printInvalid(err error) error {
	var wrong *input.InvalidError
	if o.output.value == "text" || !errors.As(err, &wrong) {
		return err
	}
	return errors.Join(render.Encode(o.Env.Out, render.Format(o.output.value), found("", wrong)), err)
}

// found is the JSON output for an invalid manifest.
func found(cluster string, wrong *input.InvalidError) invalid {
	out := invalid{Version: render.Version, Cluster: cluster}
	for _, p := range wrong.Problems {
		out.Findings = append(out.Findings, finding{File: p.File, Line: p.Line, Object: p.Object, Path: p.Path, Message: p.What, Fix: p.Fix})
	}
	return out
}

func describe(m *reconcile.Manifest) valid {
	s := m.Summary()
	v := valid{
		Version: render.Version, Valid: true, Cluster: m.Name(), Region: m.Region(), Kubernetes: s.KubernetesVersion,
		ControlPlanes: s.ControlPlanes, Workers: s.Workers, EKS: s.EKS,
		Deployments: append([]string{}, s.Deployments...), Pools: s.Pools, Fargate: s.FargateProfiles, Warnings: []string{},
	}
	for _, w := range m.Warnings {
		v.Warnings = append(v.Warnings, w.String())
	}
	return v
}

func (v valid) String() string {
	plane, version := text.Count(v.ControlPlanes, "control plane"), v.Kubernetes
	if v.EKS {
		plane = "EKS control plane"
	}
	if version == "" {
		version = "default of EKS"
	}
	line := fmt.Sprintf("cluster %s in %s, Kubernetes %s, %s, %s", v.Cluster, v.Region, version, plane, text.Count(v.Workers, "worker"))
	var groups []string
	for _, g := range []struct {
		names []string
		thing string
	}{{v.Deployments, "deployment"}, {v.Pools, "pool"}} {
		if n := len(g.names); n > 0 {
			groups = append(groups, text.Count(n, g.thing))
		}
	}
	if len(groups) > 0 {
		line += " in " + strings.Join(groups, " and ")
	}
	if n := len(v.Fargate); n > 0 {
		line += ", " + text.Count(n, "Fargate profile")
	}
	return line
}
