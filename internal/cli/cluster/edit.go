package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// editFlags are the flags of commands that edit a manifest.
type editFlags struct {
	manifestFlags
	dry    bool
	noPlan bool
}

// addEdit adds the flags.
func (f *editFlags) addEdit(cmd *cobra.Command) {
	f.addManifest(cmd)
	f.addObjects(cmd)
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "write nothing; show the plan that the edited manifest would have")
	cmd.Flags().BoolVar(&f.noPlan, "no-plan", false, "show no plan, and call AWS for nothing")
}

// fieldChange is a change of a field of the manifest.
type fieldChange struct {
	object textObject
	path   []string
	value  string
	remove bool
	tag    string // of an image in a text: see convert.Change
}

// textObject is an object in the text of one of the files.
type textObject struct {
	convert.Object

	file  int    // index of the source
	named string // the name with its variables replaced
}

// editor edits the files of a manifest.
type editor struct {
	*editFlags
	sources   []input.Source
	variables map[string]string
	objects   []textObject
}

// newEditor reads the files and finds the objects.
func (f *editFlags) newEditor(ctx context.Context) (e *editor, m loaded, err error) {
	ctx, done := f.whileReading(ctx)
	defer done()
	e = &editor{editFlags: f}
	if e.sources, err = f.manifestSources(ctx); err != nil {
		return nil, m, err
	}
	for _, s := range e.sources {
		if s.Name == sourceName("-") {
			return nil, m, env.Usagef("the manifest is edited in its file: standard input is not one")
		}
	}
	if m, err = f.loadSources(ctx, e.sources); err != nil {
		return nil, m, err
	}
	e.variables = m.Variables()
	for i, s := range e.sources {
		for _, o := range convert.Objects(s.Data) {
			e.objects = append(e.objects, textObject{Object: o, file: i, named: replaced(o.Name, e.variables)})
		}
	}
	return e, m, nil
}

// replaced replaces the ${VARIABLES} of a name by their values or defaults.
func replaced(name string, values map[string]string) string {
	variable := regex.Of(`\$\{(\w+)(?::?[=-]([^}]*))?\}`)
	return variable.ReplaceAllStringFunc(name, func(v string) string {
		m := variable.FindStringSubmatch(v)
		if values[m[1]] != "" {
			return values[m[1]]
		}
		return m[2]
	})
}

// find returns the object of a kind and a name. If there are several, such as those of other clusters, it is the one that
// the manifest has been made of.
func (e *editor) find(title string, m loaded) (found textObject, err error) {
	at := m.At(title, "")
	n := 0
	for _, o := range e.objects {
		if o.Kind+"/"+o.named != title {
			continue
		}
		if e.sources[o.file].Name == at.File && o.Line <= at.Line {
			found, n = o, 1
			continue
		}
		if n == 0 || e.sources[found.file].Name != at.File {
			found, n = o, n+1
		}
	}
	switch {
	case n == 0 && at.File != "":
		return found, env.Usagef("%s: %s is not in the text as it is: edit it by hand", at, title)
	case n == 0:
		return found, env.Usagef("there is no %s in the files%s", title, e.instead(title))
	case n > 1:
		return found, env.Usagef("there are several %s in the files: choose the cluster with --cluster", title)
	}
	return found, nil
}

// instead says where an object comes from that is not in the files.
func (e *editor) instead(title string) string {
	var names []string
	for _, o := range e.objects {
		if o.Kind == "ClusterClass" {
			return ": if the ClusterClass makes it, set a field of Cluster.spec.topology"
		}
		names = append(names, o.Kind+"/"+o.named)
	}
	return suggested(title, names)
}

func suggested(name string, known []string) string {
	if near := suggest.DidYouMean(name, known); near != "" {
		return ": " + near
	}
	return ""
}

// apply makes the changes in the texts, and checks the result before it writes it. Then it shows the plan.
func (e *editor) apply(ctx context.Context, changes []fieldChange) error {
	edited := slices.Clone(e.sources)
	was := make([][]string, len(edited))
	var wrong input.InvalidError
	for i, s := range e.sources {
		var of []convert.Change
		for _, c := range changes {
			if c.object.file == i {
				of = append(of, convert.Change{Object: c.object.Object, Path: c.path, Value: c.value, Remove: c.remove, Tag: c.tag, Variables: e.variables})
			}
		}
		text, old, err := convert.Set(s.Name, s.Data, of)
		if err != nil {
			var invalid *input.InvalidError
			if !errors.As(err, &invalid) {
				return err
			}
			wrong.Problems = append(wrong.Problems, invalid.Problems...)
			continue
		}
		edited[i].Data, was[i] = text, old
	}
	if len(wrong.Problems) > 0 {
		return &wrong
	}
	m, err := e.loadSources(ctx, edited)
	if err != nil {
		e.Env.Story("the file is not changed: the edited manifest would be invalid")
		return err
	}
	if err := e.write(edited); err != nil {
		return err
	}
	e.tell(changes, was, m)
	if e.noPlan {
		return nil
	}
	if err := e.plan(ctx, m); err != nil {
		return err
	}
	if !e.dry {
		e.Env.Story("Nothing in AWS is changed. Next: clusterawsadm cluster create -f %s%s", strings.Join(e.files, " -f "), e.Again())
	}
	return nil
}

// tell says what has changed, by line.
func (e *editor) tell(changes []fieldChange, was [][]string, m loaded) {
	for _, c := range changes {
		old, value := was[c.object.file][0], c.value
		was[c.object.file] = was[c.object.file][1:]
		if old == "" {
			old = "not set"
		}
		if c.remove {
			value = "not set"
		}
		what := old + " → " + value
		if old == value {
			what = value + ", as before"
		}
		object, path := c.object.Kind+"/"+c.object.named, convert.Path(c.path)
		at := m.At(object, path)
		if at.File == "" {
			at = input.Position{File: e.sources[c.object.file].Name, Line: c.object.Line}
		}
		e.Env.Story("%s: %s %s: %s", at, object, path, what)
	}
}

// write replaces the files whose text is another one.
func (e *editor) write(edited []input.Source) error {
	for i, s := range edited {
		if e.dry || bytes.Equal(s.Data, e.sources[i].Data) {
			continue
		}
		mode := files.Private
		if info, err := os.Stat(s.Name); err == nil {
			mode = info.Mode().Perm()
		}
		if now, err := os.ReadFile(s.Name); err != nil || !bytes.Equal(now, e.sources[i].Data) {
			return env.Usagef("%s has changed in the meantime: run the command again", s.Name)
		}
		if err := files.Replace(s.Name, s.Data, mode); err != nil {
			return err
		}
	}
	return nil
}

// plan shows the plan of the edited manifest.
func (e *editor) plan(ctx context.Context, m loaded) (err error) {
	how := runFlags{waits: true, drain: true, cost: choice{value: "on"}}
	x, err := e.opened(ctx, m, how)
	if err != nil {
		return err
	}
	defer x.Close(&err)
	who := e.askWho(ctx, x.cluster)
	p, err := x.cluster.Plan(ctx)
	if err != nil && !worthShowing(p, err) {
		return err
	}
	v := view(e.flags, x.cluster, who, false)
	v.Notes = x.notes(p)
	if shown := show(ctx, e.flags, "text", p, v); shown != nil {
		return shown
	}
	if errors.As(err, new(*plan.RefusedError)) && !e.dry {
		e.Env.Story("The file is edited, but create would be refused.")
	}
	return err
}
