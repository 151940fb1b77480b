package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	program "github.com/clusterawsadm/clusterawsadm/internal/cli/version"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// planFile is a plan that 'cluster plan --to' has written, and that 'cluster create' carries
// out as it is. It contains no manifest and no value of --set, which may be secrets.
type planFile struct {
	Kind    string              `json:"kind"`
	Version int                 `json:"version"`
	Digest  string              `json:"digest"`  // of all other fields: what 'plan show' prints is what 'create' compares
	Program string              `json:"program"` // version of the program
	Made    time.Time           `json:"made"`
	Flags   map[string][]string `json:"flags"`         // with which the plan was made
	Set     []string            `json:"set,omitempty"` // names of the variables of --set
	Input   string              `json:"input"`         // digest of the manifest and its variables
	Plan    render.PlanDocument `json:"plan"`
	// Remedies are those of the changes of the steps, which a plan document does not contain.
	Remedies [][]plan.Remedy `json:"remedies"`
}

const (
	planFileKind    = "clusterawsadm/plan"
	planFileVersion = 2
)

// isPlanFile reports whether a file is a plan.
func isPlanFile(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	data, err := new(input.Reader).File(path)
	return err == nil && bytes.Contains(data[:min(len(data), 200)], []byte(`"kind": "`+planFileKind+`"`))
}

// readPlanFile reads a plan.
func readPlanFile(ctx context.Context, path string) (p planFile, err error) {
	data, err := new(input.Reader).FileContext(ctx, path)
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	if err != nil {
		return p, &env.UsageError{Err: noSuchFile(path, err)}
	}
	if err := json.Unmarshal(data, &p); err != nil || p.Kind != planFileKind {
		return p, env.Usagef("%s is not a plan: 'clusterawsadm cluster plan -f FILE --to %[1]s' writes one", path)
	}
	if p.Version != planFileVersion || len(p.Remedies) != len(p.Plan.Steps) {
		return p, env.Usagef("%s was written by %s, which has another format of plans: make the plan again", path, p.Program)
	}
	if p.Digest != p.digest() {
		return p, env.Usagef("%s has been changed since it was written: make the plan again", path)
	}
	for i, remedies := range p.Remedies {
		for j := range min(len(remedies), len(p.Plan.Steps[i].Diff)) {
			p.Plan.Steps[i].Diff[j].Remedy = remedies[j]
		}
	}
	return p, nil
}

// digest returns the digest of all fields but Digest; "" if they cannot be encoded.
func (p planFile) digest() string {
	p.Digest = ""
	data, err := json.Marshal(p)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// name is what a run records while it carries out the plan; "" for none.
func (p *planFile) name() string {
	if p == nil {
		return ""
	}
	return p.Digest
}

// forget lists the flags that say who makes a plan and how it is shown. A plan may be made by
// one identity and carried out by another.
func forget() []string {
	return []string{
		"set",
		"profile",
		"config",
		"output",
		"out",
		"to",
		"full",
		"check",
		"detailed-exitcode",
		"cost",
		"max-cost",
		"progress",
		"verbose",
		"v",
		"yes",
		"dry-run",
		"timeout",
		"parallel",
	}
}

// write writes a plan to a file.
func (o *planOptions) write(cmd *cobra.Command, p plan.Plan, v render.PlanView, digest string) error {
	f := planFile{
		Kind: planFileKind, Version: planFileVersion, Program: program.Get().String(), Made: time.Now().UTC().Truncate(time.Second), Flags: map[string][]string{},
		Set: variableNames(o.set), Input: digest, Plan: render.NewPlanDocument(p, v),
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if slices.Contains(forget(), flag.Name) {
			return
		}
		f.Flags[flag.Name] = []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			f.Flags[flag.Name] = list.GetSlice()
		}
	})
	for _, s := range p.Steps {
		remedies := []plan.Remedy{}
		for _, c := range s.Diff {
			remedies = append(remedies, c.Remedy)
		}
		f.Remedies = append(f.Remedies, remedies)
	}
	f.Digest = f.digest()
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := files.Replace(o.out, append(data, '\n'), files.Private); err != nil {
		return err
	}
	o.Env.Story("wrote %s: 'clusterawsadm cluster create %[1]s' carries out this plan, or says what has changed", o.out)
	return nil
}

// variableNames lists the names of the variables that --set has set, sorted.
func variableNames(set []string) (names []string) {
	for _, s := range set {
		name, _, _ := strings.Cut(s, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// useFlags sets the flags with which the plan was made. The command line may repeat them, and
// not change them.
func (p planFile) useFlags(cmd *cobra.Command, set []string) error {
	if names := variableNames(set); !slices.Equal(names, p.Set) {
		return env.Usagef("the plan was made with %s: use the same values", strings.Join(prefixed("--set ", p.Set, "no --set"), " "))
	}
	for name, values := range p.Flags {
		flag := cmd.Flag(name)
		if flag == nil {
			return env.Usagef("the plan was made with --%s, which this command does not have", name)
		}
		have := []string{flag.Value.String()}
		list, many := flag.Value.(pflag.SliceValue)
		if many {
			have = list.GetSlice()
		}
		switch {
		case flag.Changed && !slices.Equal(have, values):
			return env.Usagef("the plan was made with --%s=%s: make it again for another value", name, strings.Join(values, ","))
		case flag.Changed:
			continue
		case many:
			if err := list.Replace(values); err != nil {
				return &env.UsageError{Err: err}
			}
		default:
			if err := flag.Value.Set(values[0]); err != nil {
				return &env.UsageError{Err: err}
			}
		}
		flag.Changed = true
	}
	var wrong error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if _, known := p.Flags[flag.Name]; !known && !slices.Contains(forget(), flag.Name) && wrong == nil {
			wrong = env.Usagef("the plan was made without --%s: make it again", flag.Name)
		}
	})
	return wrong
}

func prefixed(prefix string, all []string, none string) (out []string) {
	for _, s := range all {
		out = append(out, prefix+s)
	}
	if len(out) == 0 {
		return []string{none}
	}
	return out
}

// check returns a RefusedError that says what has changed since the plan was made.
func (p planFile) check(now plan.Plan, v render.PlanView) error {
	steps := p.checkSteps
	if now.Continues {
		steps = p.checkRest
	}
	reasons := append(p.checkTarget(v), steps(now)...)
	if len(reasons) == 0 {
		return nil
	}
	return &plan.RefusedError{Reasons: append(reasons, fmt.Errorf("the plan of %s does not apply any more: make it again", p.Made.Format(time.RFC3339)))}
}

// checkTarget compares the account, the cluster and the region.
func (p planFile) checkTarget(v render.PlanView) (reasons []error) {
	if p.Plan.Account != "" && v.Account != p.Plan.Account {
		reasons = append(reasons, fmt.Errorf("the plan is for account %s, and the credentials are those of %s", p.Plan.Account, v.Account))
	}
	if p.Plan.Cluster != v.Cluster || p.Plan.Region != v.Region {
		reasons = append(reasons, fmt.Errorf("the plan is for cluster %s in %s, and this is cluster %s in %s", p.Plan.Cluster, p.Plan.Region, v.Cluster, v.Region))
	}
	return reasons
}

// checkSteps compares the steps that change something.
func (p planFile) checkSteps(now plan.Plan) (reasons []error) {
	have := map[plan.ID]plan.Step{}
	for _, s := range now.Steps {
		if acts(s) {
			have[s.Resource] = s
		}
	}
	for _, s := range p.Plan.Steps {
		if !acts(s) {
			continue
		}
		if is, ok := have[s.Resource]; ok {
			reasons = append(reasons, checkStep(s, is)...)
		} else {
			reasons = append(reasons, fmt.Errorf("%s: the plan would %s it, which is not necessary any more", s.Resource, s.Action))
		}
		delete(have, s.Resource)
	}
	for _, s := range now.Steps {
		if _, more := have[s.Resource]; more {
			reasons = append(reasons, fmt.Errorf("%s: is to %s now, which is not in the plan", s.Resource, s.Action))
		}
	}
	return reasons
}

// checkRest compares what is left of a plan that an earlier run has begun: each step that changes something has to be
// one of the plan, or the rest of one.
func (p planFile) checkRest(now plan.Plan) (reasons []error) {
	planned := map[plan.ID]plan.Step{}
	for _, s := range p.Plan.Steps {
		if acts(s) {
			planned[s.Resource] = s
		}
	}
	for _, s := range now.Steps {
		was, ok := planned[s.Resource]
		created := was.Action == plan.Create && s.Action == plan.Update
		switch {
		case !acts(s):
		case !ok:
			reasons = append(reasons, fmt.Errorf("%s: is to %s now, which is not in the plan", s.Resource, s.Action))
		case !created && (s.Action != was.Action || s.CloudID != was.CloudID):
			reasons = append(reasons, checkStep(was, s)...)
		default:
			for _, c := range s.Diff {
				if c.Remedy != plan.ByItself && !contains(was.Diff, c) {
					reasons = append(reasons, fmt.Errorf("%s: now: %s", s.Resource, c))
				}
			}
		}
	}
	return reasons
}

// contains reports whether a plan has a change: of the same field to the same value, or to one that was not known.
func contains(planned plan.Diff, c plan.Change) bool {
	return slices.ContainsFunc(planned, func(x plan.Change) bool {
		return x.Field == c.Field && (x.Want == c.Want || x.Want == plan.Unknown)
	})
}

// checkStep compares a step of the plan with the same one now.
func checkStep(planned, now plan.Step) (reasons []error) {
	if now.Action != planned.Action || now.CloudID != planned.CloudID {
		return []error{fmt.Errorf("%s: the plan would %s it (%s), and now it is to %s (%s)",
			planned.Resource, planned.Action, cmp.Or(planned.CloudID, "new"), now.Action, cmp.Or(now.CloudID, "new"))}
	}
	for _, d := range differences(planned.Diff, now.Diff) {
		reasons = append(reasons, fmt.Errorf("%s: %s", planned.Resource, d))
	}
	return reasons
}

// acts reports whether a step changes something: a wait has no effect on what a run does.
func acts(s plan.Step) bool {
	return slices.Contains([]plan.Action{plan.Create, plan.Update, plan.Remove, plan.Conflict}, s.Action)
}

// differences describes the differences between the changes of a step and those of the plan.
func differences(planned, now plan.Diff) (out []string) {
	lines := func(d plan.Diff) (all []string) {
		for _, c := range d {
			if c.Remedy != plan.ByItself {
				all = append(all, c.String())
			}
		}
		return all
	}
	was, is := lines(planned), lines(now)
	for _, l := range was {
		if !slices.Contains(is, l) {
			out = append(out, "in the plan: "+l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			out = append(out, "now: "+l)
		}
	}
	return out
}

// digestOf returns a digest of the input of a run: files, and the variables that they use.
func digestOf(sources [][]input.Source, variables map[string]string) string {
	var all bytes.Buffer
	for _, list := range sources {
		for _, s := range list {
			all.WriteString(strconv.Itoa(len(s.Data)) + ":")
			all.Write(s.Data)
		}
		all.WriteString("\x00")
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		all.WriteString(name + "\x00" + variables[name] + "\x00")
	}
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:])
}

// planShowOptions are the options of "plan show".
type planShowOptions struct {
	*flags
	output choice
	full   bool
}

// newPlanShow returns the command that prints a plan file.
func newPlanShow(f *flags) *cobra.Command {
	o := &planShowOptions{flags: f}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print a plan that 'plan --to' has written",
		Example: `  clusterawsadm cluster plan -f demo.yaml --to demo.plan
  clusterawsadm cluster plan show demo.plan`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return env.Usagef("name one file: clusterawsadm cluster plan show FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	output(cmd, &o.output, "text", "markdown", "json", "yaml")
	cmd.Flags().BoolVar(&o.full, "full", false, "list every machine and every tag")
	return cmd
}

// run prints a plan file.
func (o *planShowOptions) run(ctx context.Context, path string) error {
	p, err := readPlanFile(ctx, path)
	if err != nil {
		return err
	}
	if o.output.value == "json" || o.output.value == "yaml" {
		return render.Encode(o.Env.Out, render.Format(o.output.value), p.Plan)
	}
	o.Env.Story("plan of %s for cluster %s", p.Made.Format(time.RFC3339), p.Plan.Cluster)
	plan := plan.Plan{Steps: p.Plan.Steps, Expected: time.Duration(p.Plan.Expected * float64(time.Second)), Quotas: p.Plan.Quotas, Cost: p.Plan.Cost}
	return show(ctx, o.flags, o.output.value, plan, render.PlanView{
		Cluster: p.Plan.Cluster, Region: p.Plan.Region, Account: p.Plan.Account, Caller: p.Plan.Caller, Notes: p.Plan.Notes, Full: o.full, Style: o.Env.OutStyle(),
	})
}

// fromPlan prepares the command to carry out a plan file: it has the flags of the plan from
// then on, and the manifest has to be the same.
func (o *createOptions) fromPlan(cmd *cobra.Command, path string) (*planFile, error) {
	p, err := readPlanFile(cmd.Context(), path)
	if err == nil {
		err = p.useFlags(cmd, o.set)
	}
	return &p, err
}

// checkInput refuses a manifest that is not that of the plan, if there is one.
func (p *planFile) checkInput(digest string) error {
	if p == nil || p.Input == digest {
		return nil
	}
	return &plan.RefusedError{
		Reasons: []error{fmt.Errorf("%s or its variables have changed since the plan was made: make the plan again", strings.Join(p.Flags["filename"], ", "))},
	}
}
