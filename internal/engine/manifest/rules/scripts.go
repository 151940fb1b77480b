package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"mvdan.cc/sh/v3/syntax"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/script"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// joins is a placeholder for the command with which a machine joins the cluster, between the commands of the manifest.
const joins = "clusterawsadm_joins_here"

// scriptLine is a command of a manifest, or joins.
type scriptLine struct{ field, text string }

// scriptLines returns the commands in a field.
func scriptLines(field string, commands []string) (all []scriptLine) {
	for i, command := range commands {
		all = append(all, scriptLine{fmt.Sprintf("%s[%d]", field, i), command})
	}
	return all
}

// checkScript checks the shell syntax of commands that run as one script. cloud-init writes all commands to one file and runs it with sh (shellify
// in cloudinit/util.py), so an unclosed quote or a missing "fi" also affects the commands after it. One statement may span several commands. sh
// is dash or bash, depending on the image; a script is refused only if neither can parse it.
func (c *checks) checkScript(o *manifest.Entry, lines []scriptLine) {
	text := ""
	for _, line := range lines {
		if strings.Contains(line.text, "{%") {
			return // a statement of jinja changes it
		}
		text += withoutExpressions(line.text) + "\n"
	}
	wrong := unreadable(text)
	if wrong == nil {
		c.checkEnds(o, lines, text)
		return
	}
	before := slices.ContainsFunc(lines, func(line scriptLine) bool { return line.text == joins }) // the command that joins comes later
	for _, line := range lines {
		if line.text == joins {
			before = false
			continue
		}
		alone := withoutExpressions(line.text) + "\n"
		if before {
			alone += joins + "\n"
		}
		if err := unreadable(alone); err != nil {
			c.failScript(o, line.field, err)
			return
		}
	}
	c.failScript(o, fieldAt(lines, wrong.line), wrong)
}

// fieldAt returns the field of the command that contains the given line of the script. If no command contains it, fieldAt returns the field of the
// first command.
func fieldAt(lines []scriptLine, at int) string {
	for _, line := range lines {
		if at -= 1 + strings.Count(line.text, "\n"); at <= 0 && line.text != joins {
			return line.field
		}
	}
	return lines[0].field
}

// checkEnds refuses a command after which the machine does not join.
func (c *checks) checkEnds(o *manifest.Entry, lines []scriptLine, text string) {
	switch x := script.FirstObstacle(text, joins); {
	case x == nil:
	case x.Ends:
		c.failFirst(o.Problem(fieldAt(lines, x.Line), "the machine would not join: all commands are one script, and "+x.What,
			"remove it, or run it in the background or as a service of systemd"))
	default:
		c.failFirst(o.Problem(fieldAt(lines, x.Line), "the machine would not join: "+x.What, "remove it"))
	}
}

func (c *checks) failScript(o *manifest.Entry, field string, err *scriptError) {
	c.failFirst(o.Problem(field, "the shell cannot read the command, and would run neither it nor the commands after it: "+err.what, "correct the command"))
}

// withoutExpressions replaces each jinja expression in a command by the word x, and removes jinja comments.
func withoutExpressions(command string) string {
	return regex.Of(`(?s)\{\{.*?\}\}`).ReplaceAllString(regex.Of(`(?s)\{#.*?#\}`).ReplaceAllString(command, ""), "x")
}

// scriptError says why a shell cannot parse a script.
type scriptError struct {
	line int
	what string
}

// unreadable returns why neither sh nor bash can parse a text, or that they would parse it without running the command that joins, because that
// command ends up inside a quoted text. It returns nil for a script without such an error.
func unreadable(text string) (first *scriptError) {
	for _, variant := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
		e := &scriptError{line: 1, what: "the command with which the machine joins would be a part of a text"}
		wrong, is := errors.AsType[syntax.ParseError](err)
		switch {
		case err == nil && (!strings.Contains(text, joins) || runs(file)):
			return nil
		case err != nil && (!is || isDoubtful(wrong.Text, text)):
			return nil
		case is:
			e.line, e.what = int(wrong.Pos.Line()), wrong.Text
		}
		first = e
	}
	return first
}

// isDoubtful reports whether a shell may accept a script although the parser does not. A shell parses expansions, arithmetic and backquotes only
// when it evaluates them, only bash knows the keyword "function", and a here-document may end at the end of the text.
func isDoubtful(what, text string) bool {
	return regex.Of(`parameter|expr|must follow|followed by a word|\[|!|\(\(|array|index|operator`).MatchString(what) ||
		regex.Of("`|\\(\\(|\\[\\[|\\$\\{\\W|\\bfunction\\b|(?s)<<.*\\$\\(").MatchString(text) ||
		strings.Contains(what, "here-document") && !strings.Contains(text[max(0, strings.LastIndex(text, "<<")):], joins)
}

// runs reports whether a script runs the command that joins.
func runs(file *syntax.File) (found bool) {
	syntax.Walk(file, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		found = found || is && script.Word(call) == joins
		return !found
	})
	return found
}

// checkKubeadmScripts checks the shell syntax of the commands in a KubeadmConfig.
func (c *checks) checkKubeadmScripts(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	lines := append(scriptLines(prefix+".preKubeadmCommands", spec.PreKubeadmCommands), scriptLine{text: joins})
	c.checkScript(o, append(lines, scriptLines(prefix+".postKubeadmCommands", spec.PostKubeadmCommands)...))
	c.checkScript(o, scriptLines(prefix+".bootCommands", spec.BootCommands))
}

// checkEKSScripts checks the shell syntax of the commands in an EKSConfig.
func (c *checks) checkEKSScripts(o *manifest.Entry, prefix string, spec *eksbootstrapv1.EKSConfigSpec) {
	lines := append(scriptLines(prefix+".preBootstrapCommands", spec.PreBootstrapCommands), scriptLine{text: joins})
	c.checkScript(o, append(lines, scriptLines(prefix+".postBootstrapCommands", spec.PostBootstrapCommands)...))
}
