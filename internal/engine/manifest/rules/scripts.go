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
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// joins stands for the command with which a machine joins, between the commands of a manifest.
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

// checkScript checks the commands of one script: cloud-init writes all commands to one file for sh (shellify in cloudinit/util.py), so that a quote
// that is not closed, or a word such as "fi" that is missing, hides the commands after it. A statement may have several commands. Where sh is
// dash or bash is not known, so only what neither can read is refused.
func (c *checks) checkScript(o *manifest.Entry, lines []scriptLine) {
	script := ""
	for _, line := range lines {
		if strings.Contains(line.text, "{%") {
			return // a statement of jinja changes it
		}
		script += withoutExpressions(line.text) + "\n"
	}
	wrong := unreadable(script)
	if wrong == nil {
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
	at := wrong.line
	for _, line := range lines {
		if at -= 1 + strings.Count(line.text, "\n"); at <= 0 && line.text != joins {
			c.failScript(o, line.field, wrong)
			return
		}
	}
	c.failScript(o, lines[0].field, wrong)
}

func (c *checks) failScript(o *manifest.Entry, field string, err *scriptError) {
	c.failFirst(o.Problem(field, "the shell cannot read the command, and would run neither it nor the commands after it: "+err.what, "correct the command"))
}

// withoutExpressions replaces the expressions of jinja in a command by a word.
func withoutExpressions(command string) string {
	return regex.Of(`(?s)\{\{.*?\}\}`).ReplaceAllString(regex.Of(`(?s)\{#.*?#\}`).ReplaceAllString(command, ""), "x")
}

// scriptError is why a shell cannot read a script.
type scriptError struct {
	line int
	what string
}

// unreadable returns why neither sh nor bash can read a script, or why they would not run the command that joins: it is within a text.
func unreadable(script string) (first *scriptError) {
	for _, variant := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(script), "")
		e := &scriptError{line: 1, what: "the command with which the machine joins would be a part of a text"}
		wrong, is := errors.AsType[syntax.ParseError](err)
		switch {
		case err == nil && (!strings.Contains(script, joins) || runs(file)):
			return nil
		case err != nil && (!is || isDoubtful(wrong.Text, script)):
			return nil
		case is:
			e.line, e.what = int(wrong.Pos.Line()), wrong.Text
		}
		first = e
	}
	return first
}

// isDoubtful reports whether an error of the parser may be none of a shell: shells read expansions, arithmetic and what is between backquotes only
// when they evaluate it, "function" is a word of bash only, and the end of a script ends a here-document.
func isDoubtful(what, script string) bool {
	return regex.Of(`parameter|expr|must follow|followed by a word|\[|!|\(\(|array|index|operator`).MatchString(what) ||
		regex.Of("`|\\(\\(|\\[\\[|\\$\\{\\W|\\bfunction\\b|(?s)<<.*\\$\\(").MatchString(script) ||
		strings.Contains(what, "here-document") && !strings.Contains(script[max(0, strings.LastIndex(script, "<<")):], joins)
}

// runs reports whether a script runs the command that joins.
func runs(file *syntax.File) (found bool) {
	syntax.Walk(file, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		found = found || is && len(call.Args) == 1 && call.Args[0].Lit() == joins
		return !found
	})
	return found
}

// checkKubeadmScripts checks the commands of machines that kubeadm starts.
func (c *checks) checkKubeadmScripts(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	lines := append(scriptLines(prefix+".preKubeadmCommands", spec.PreKubeadmCommands), scriptLine{text: joins})
	c.checkScript(o, append(lines, scriptLines(prefix+".postKubeadmCommands", spec.PostKubeadmCommands)...))
	c.checkScript(o, scriptLines(prefix+".bootCommands", spec.BootCommands))
}

// checkEKSScripts checks the commands of nodes of EKS whose image has a boot script.
func (c *checks) checkEKSScripts(o *manifest.Entry, prefix string, spec *eksbootstrapv1.EKSConfigSpec) {
	lines := append(scriptLines(prefix+".preBootstrapCommands", spec.PreBootstrapCommands), scriptLine{text: joins})
	c.checkScript(o, append(lines, scriptLines(prefix+".postBootstrapCommands", spec.PostBootstrapCommands)...))
}
