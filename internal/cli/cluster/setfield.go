package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/schema"
)

type setOptions struct{ editFlags }

func newSet(f *flags) *cobra.Command {
	o := &setOptions{editFlags{manifestFlags: manifestFlags{flags: f}}}
	cmd := &cobra.Command{
		Use:   "set -f FILE KIND[/NAME].FIELD=VALUE…",
		Short: "Set fields of a manifest",
		Long: `Set fields of a manifest, and show the plan. Nothing in AWS is changed: 'cluster create'
does that.

The name of the object may be left out if the manifest has only one of its kind. VALUE is
YAML on one line; a text needs no quotes. KIND/NAME.FIELD- (with a dash, and without a
value) removes the field. 'cluster explain' says what there is to set.

The text stays as it is: comments, order, quotes. A value that comes from a ${VARIABLE} or
an anchor is not edited; the error says where it comes from. The edited manifest is
checked before it is written.`,
		Example: `  clusterawsadm cluster set -f demo.yaml AWSMachineTemplate/demo-md-0.spec.template.spec.instanceType=m5.large
  clusterawsadm cluster set -f demo.yaml 'AWSCluster.spec.additionalTags={team: a}' --dry-run
  clusterawsadm cluster set -f demo.yaml AWSCluster.spec.bastion-`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return env.Usagef("name a field and its value: set -f FILE KIND/NAME.FIELD=VALUE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.addEdit(cmd)
	return cmd
}

func (o *setOptions) run(ctx context.Context, args []string) error {
	e, m, err := o.newEditor(ctx)
	if err != nil {
		return err
	}
	var changes []fieldChange
	for _, arg := range args {
		c, err := e.assignment(arg, m)
		if err != nil {
			return err
		}
		changes = append(changes, c)
	}
	return e.apply(ctx, changes)
}

// assignment reads an argument.
func (e *editor) assignment(arg string, m loaded) (c fieldChange, err error) {
	field, value, sets := strings.Cut(arg, "=")
	if !sets {
		if field, c.remove = strings.CutSuffix(arg, "-"); !c.remove {
			return c, env.Usagef("%s: use KIND/NAME.FIELD=VALUE, or KIND/NAME.FIELD- to remove the field", arg)
		}
	}
	object, path, err := e.target(field, m)
	if err != nil {
		return c, err
	}
	c.object, c.path = object, steps(path)
	x, err := schema.Explain(object.Kind+"."+path, object.APIVersion, false)
	if errors.Is(err, schema.ErrNotFound) {
		return c, &env.UsageError{Err: err}
	}
	if err != nil || c.remove {
		return c, err
	}
	c.value, err = asType(x, value)
	return c, err
}

// target returns the object of a field, and the path in it.
func (e *editor) target(field string, m loaded) (textObject, string, error) {
	kind, path, named := strings.Cut(field, "/")
	if strings.Contains(kind, ".") { // the slash is in the name of an annotation
		named = false
	}
	if named {
		var longest textObject
		for _, o := range e.objects {
			if strings.EqualFold(o.Kind, kind) && strings.HasPrefix(path, o.named+".") && len(o.named) > len(longest.named) {
				longest = o
			}
		}
		if longest.Kind != "" {
			o, err := e.find(longest.Kind+"/"+longest.named, m)
			return o, path[len(longest.named)+1:], err
		}
		name, _, _ := strings.Cut(path, ".")
		_, err := e.find(kind+"/"+name, m)
		return longest, "", err
	}
	kind, path, _ = strings.Cut(field, ".")
	var titles []string
	for _, o := range e.objects {
		if title := o.Kind + "/" + o.named; strings.EqualFold(o.Kind, kind) && !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
	}
	switch {
	case len(titles) > 1:
		return textObject{}, "", env.Usagef("the manifest has several: name one of %s", strings.Join(titles, ", "))
	case path == "":
		return textObject{}, "", env.Usagef("%s: use KIND/NAME.FIELD=VALUE", field)
	case slices.Contains([]string{"spec", "metadata", "status", "data"}, kind):
		return textObject{}, "", env.Usagef("%s: name its object, as in MachineDeployment/demo-md-0.%s", field, field)
	case len(titles) == 0:
		return textObject{}, "", env.Usagef("there is no %s in the files%s", kind, e.instead(kind+"/"))
	}
	o, err := e.find(titles[0], m)
	return o, path, err
}

// asType returns a value as YAML of the type of its field.
func asType(x *schema.Explanation, value string) (string, error) {
	if strings.Contains(value, "${") { // of a template
		return value, nil
	}
	wrong := func() error { return env.Usagef("%s.%s is of the type %s: %q is not", x.Kind, x.Path, x.Type, value) }
	switch {
	case x.Type == "string":
		return quotedText(value), nil
	case x.Type == "integer":
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return "", wrong()
		}
	case x.Type == "boolean":
		if value != "true" && value != "false" {
			return "", wrong()
		}
	case x.Type == "Object", strings.HasPrefix(x.Type, "map["), strings.HasPrefix(x.Type, "[]"):
		open := "{"
		if strings.HasPrefix(x.Type, "[]") {
			open = "["
		}
		if !strings.HasPrefix(strings.TrimSpace(value), open) {
			return "", env.Usagef(
				"%s.%s is of the type %s: write it as YAML on one line, %s",
				x.Kind,
				x.Path,
				x.Type,
				map[string]string{"{": "{key: value}", "[": "[a, b]"}[open],
			)
		}
	}
	return value, nil
}

// quotedText writes a text as YAML: with quotes if it would be something else without them.
func quotedText(value string) string {
	var n yaml.Node
	begins := regex.Of(`^[^\s"'&*!|>%@#,\[\]{}?:\x60-]`)
	special := regex.Of(`[\n\t]|: | #|:$|\s$`)
	plain := begins.MatchString(value) && !special.MatchString(value)
	if err := yaml.Unmarshal([]byte(value), &n); plain && err == nil && len(n.Content) == 1 && n.Content[0].ShortTag() == "!!str" && n.Content[0].Value == value {
		return value
	}
	return fmt.Sprintf("%q", value)
}
