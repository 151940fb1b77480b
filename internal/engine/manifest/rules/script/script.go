// Package script says why a script of a machine does not reach the command with which the machine joins its cluster.
package script

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Obstacle is a command after which the machine does not join.
type Obstacle struct {
	Line int // of the script, from 1 on
	What string
	Ends bool // the command that joins does not run; otherwise it fails
}

// FirstObstacle returns the first command of a script, before the command named joins, after which the machine does not join: it ends the script,
// never ends, stops the machine, or removes what the machine needs. It returns nil if there is none, or if the script cannot be read. Commands in
// conditions are not judged unless all ways lead to the same end.
func FirstObstacle(text, joins string) *Obstacle {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || !strings.Contains(text, joins) {
		return nil
	}
	sh := &shell{variables: variablesOf(file)}
	for _, s := range file.Stmts {
		if Word(s.Cmd) == joins {
			return nil
		}
		o := &Obstacle{Line: int(s.Pos().Line())}
		if o.What = sh.step(s); o.What != "" {
			o.Ends = true
			return o
		}
		rest, _, _ := strings.Cut(text[min(int(s.End().Offset()), len(text)):], joins)
		if o.What = lost(s, rest); o.What != "" {
			return o
		}
	}
	return nil
}

// outcome says how a command can end. If it can do neither, the script does not go on after it, and why says the reason.
type outcome struct {
	succeeds, fails bool
	why             string
}

func either() outcome { return outcome{succeeds: true, fails: true} }

func never(why string) outcome { return outcome{why: why} }

// over reports whether no command after this one runs.
func (o outcome) over() bool { return !o.succeeds && !o.fails }

// shell is the state of the shell that runs a script.
type shell struct {
	errexit, nounset bool
	variables        map[string]bool // that the script, or cloud-init's environment, sets; nil if that is not known
}

// step returns why no command after a statement runs; "" if some may.
func (sh *shell) step(s *syntax.Stmt) string {
	o := outcomeOf(s)
	_, list := s.Cmd.(*syntax.BinaryCmd)
	switch {
	case o.over():
		return o.why
	case sh.errexit && !o.succeeds && !list && !s.Negated: // "The shell does not exit if the command that fails is part of any command executed in a && or || list" (bash(1), set -e)
		return "set -e ends it when a command fails"
	case sh.nounset && sh.unset(s.Cmd) != "":
		return fmt.Sprintf("set -u ends it, because nothing sets %s", sh.unset(s.Cmd))
	}
	sh.set(s.Cmd)
	return ""
}

// set follows the options that a command sets.
func (sh *shell) set(cmd syntax.Command) {
	if Word(cmd) != "set" {
		return
	}
	args := literals(cmd)
	for i, a := range args {
		on := strings.HasPrefix(a, "-")
		if !on && !strings.HasPrefix(a, "+") {
			continue
		}
		named := ""
		if strings.HasSuffix(a, "o") && i+1 < len(args) {
			named = args[i+1]
		}
		if strings.Contains(a, "e") || named == "errexit" {
			sh.errexit = on
		}
		if strings.Contains(a, "u") || named == "nounset" {
			sh.nounset = on
		}
	}
}

// unset returns the name of a variable that a simple command uses without a default, and that nothing sets; "" if there is none.
func (sh *shell) unset(cmd syntax.Command) (name string) {
	call, is := cmd.(*syntax.CallExpr)
	if !is || sh.variables == nil {
		return ""
	}
	syntax.Walk(call, func(n syntax.Node) bool {
		switch p := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.ParamExp:
			plain := p.Exp == nil && !p.Length && !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil
			if plain && regex.Of(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(p.Param.Value) && !sh.variables[p.Param.Value] && name == "" {
				name = p.Param.Value
			}
		}
		return true
	})
	return name
}

// variablesOf returns the variables that a script may set, and those that the shell or cloud-init's service has always; nil if a command may set
// others.
func variablesOf(file *syntax.File) map[string]bool {
	set, known := map[string]bool{}, true
	for _, name := range strings.Fields(`PATH HOME PWD OLDPWD IFS PPID OPTIND OPTARG SHELL USER LOGNAME LANG TERM SHLVL PS4 HOSTNAME HOSTTYPE MACHTYPE OSTYPE UID EUID RANDOM
		SECONDS LINENO BASH BASH_VERSION BASHPID BASH_SOURCE FUNCNAME REPLY INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID INSTANCE_ID LC_ALL LC_CTYPE TZ EDITOR`) {
		set[name] = true
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Assign:
			if x.Name != nil {
				set[x.Name.Value] = true
			}
		case *syntax.WordIter:
			set[x.Name.Value] = true
		case *syntax.CallExpr:
			known = known && !slices.Contains([]string{".", "source", "eval", "read", "mapfile", "readarray", "getopts", "printf"}, Word(x))
		}
		return true
	})
	if !known {
		return nil
	}
	return set
}

// outcomeOf returns how a statement can end.
func outcomeOf(s *syntax.Stmt) outcome {
	if s.Background {
		return outcome{succeeds: true}
	}
	o := outcomeOfCommand(s.Cmd)
	if s.Negated {
		o.succeeds, o.fails = o.fails, o.succeeds
	}
	return o
}

// outcomeOfAll returns how several statements in a row can end.
func outcomeOfAll(all []*syntax.Stmt) outcome {
	o := outcome{succeeds: true}
	for _, s := range all {
		if o = outcomeOf(s); o.over() {
			return o
		}
	}
	return o
}

func outcomeOfCommand(cmd syntax.Command) outcome {
	switch x := cmd.(type) {
	case *syntax.CallExpr:
		return outcomeOfCall(x)
	case *syntax.Block:
		return outcomeOfAll(x.Stmts)
	case *syntax.BinaryCmd:
		return outcomeOfList(x)
	case *syntax.IfClause:
		return outcomeOfIf(x)
	case *syntax.WhileClause:
		return outcomeOfLoop(x)
	}
	return either()
}

// outcomeOfList returns how "a && b" or "a || b" can end. The commands of a pipeline run in shells of their own.
func outcomeOfList(x *syntax.BinaryCmd) outcome {
	a, b := outcomeOf(x.X), outcomeOf(x.Y)
	why := a.why
	if why == "" {
		why = b.why
	}
	switch x.Op {
	case syntax.AndStmt:
		return outcome{a.succeeds && b.succeeds, a.fails || a.succeeds && b.fails, why}
	case syntax.OrStmt:
		return outcome{a.succeeds || a.fails && b.succeeds, a.fails && b.fails, why}
	case syntax.Pipe, syntax.PipeAll:
	}
	return either()
}

// outcomeOfIf returns how a condition can end: "if", each "elif" and "else" are clauses of the same type.
func outcomeOfIf(x *syntax.IfClause) outcome {
	condition, then, other := outcomeOfAll(x.Cond), outcomeOfAll(x.Then), outcome{succeeds: true}
	switch {
	case x.Else != nil && len(x.Else.Cond) > 0:
		other = outcomeOfIf(x.Else)
	case x.Else != nil:
		other = outcomeOfAll(x.Else.Then)
	}
	o := outcome{
		succeeds: condition.succeeds && then.succeeds || condition.fails && other.succeeds,
		fails:    condition.succeeds && then.fails || condition.fails && other.fails,
	}
	for _, part := range []outcome{condition, then, other} {
		if o.why == "" {
			o.why = part.why
		}
	}
	return o
}

func outcomeOfLoop(x *syntax.WhileClause) outcome {
	if len(x.Cond) != 1 || !slices.Contains([]string{"true", ":"}, Word(x.Cond[0].Cmd)) || x.Until {
		return either()
	}
	leaves := false
	syntax.Walk(x, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		leaves = leaves || is && slices.Contains([]string{"break", "return", "exit", "exec", "kill"}, Word(call))
		return true
	})
	if leaves {
		return either()
	}
	return never("the loop never ends")
}

func outcomeOfCall(x *syntax.CallExpr) outcome {
	args := literals(x)
	has := func(flags ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(flags, a) })
	}
	switch name := Word(x); name {
	case "true", ":":
		return outcome{succeeds: true}
	case "false":
		return outcome{fails: true}
	case "exit":
		return never("exit ends it")
	case "return": // outside of a function, as functions are not followed; in bash, it is an error
		return never("return ends it where sh is dash")
	case "exec":
		if len(args) > 0 {
			return never("exec replaces its shell")
		}
	case "kill":
		if slices.ContainsFunc(x.Args, isOwnProcess) {
			return never("kill ends its shell")
		}
	case "sleep", "tail", "journalctl":
		if has(endless()[name]...) {
			return never(name + " never ends")
		}
	case "reboot", "poweroff", "halt", "shutdown", "systemctl", "init", "telinit":
		if stopsMachine(name, args) {
			return never(name + " stops the machine, and cloud-init does not run it a second time")
		}
	}
	return either()
}

// endless returns the arguments with which commands never end.
func endless() map[string][]string {
	return map[string][]string{"sleep": {"infinity", "inf"}, "tail": {"-f", "-F", "--follow"}, "journalctl": {"-f", "--follow"}}
}

// isOwnProcess reports whether a word is $$.
func isOwnProcess(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	p, is := w.Parts[0].(*syntax.ParamExp)
	return is && p.Param.Value == "$"
}

// stopsMachine reports whether a command stops the machine at once. A shutdown at a later time may come after the machine has joined.
func stopsMachine(name string, args []string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(words, a) })
	}
	switch name {
	case "systemctl":
		return len(args) > 0 && slices.Contains([]string{"reboot", "poweroff", "halt", "kexec", "soft-reboot"}, args[0])
	case "init", "telinit":
		return has("0", "6")
	case "shutdown":
		return has("now", "+0") && !has("-c")
	}
	return !has("--help", "-w", "--wtmp-only")
}

// literals returns the words after the name of a simple command; "" for one that is no plain text.
func literals(cmd syntax.Command) (args []string) {
	call, is := cmd.(*syntax.CallExpr)
	if !is || len(call.Args) == 0 {
		return nil
	}
	for _, a := range call.Args[1:] {
		args = append(args, a.Lit())
	}
	return args
}

// lost returns what the machine lacks after a command, if nothing until the machine joins mentions it again; "" for nothing. kubeadm starts the
// kubelet, but not what has no unit (TryStartKubelet in cmd/kubeadm/app/phases/kubelet), and asks containerd for its version first.
func lost(s *syntax.Stmt, rest string) string {
	args := literals(s.Cmd)
	name := Word(s.Cmd)
	if name == "sudo" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if s.Background || s.Negated || len(args) == 0 {
		return ""
	}
	for _, program := range []string{"kubelet", "containerd", "kubeadm"} {
		if strings.Contains(rest, program) {
			continue
		}
		if how := loses(program, path.Base(name), args); how != "" {
			return fmt.Sprintf("%s: without %s, there is no node", how, program)
		}
	}
	return ""
}

// loses says how a command takes a program from the machine; "" if it does not.
func loses(program, name string, args []string) string {
	of := func(names ...string) bool {
		return slices.ContainsFunc(args[1:], func(a string) bool { return slices.Contains(names, a) })
	}
	switch name {
	case "systemctl":
		if of(program, program+".service") && systemdLoses(program, args[0], of("--now")) {
			return "systemctl " + args[0] + " " + program
		}
	case "service":
		if program == "containerd" && args[0] == program && of("stop") {
			return "service containerd stop"
		}
	case "apt-get", "apt", "yum", "dnf", "microdnf", "zypper":
		removes := slices.ContainsFunc(args, func(a string) bool { return slices.Contains([]string{"remove", "purge", "erase", "rm"}, a) })
		if removes && of(program, program+".io") {
			return name + " removes " + program
		}
	case "rm":
		if slices.ContainsFunc(args, func(a string) bool { return a == "/usr/bin/"+program || a == "/usr/local/bin/"+program }) {
			return "rm removes " + program
		}
	}
	return ""
}

// systemdLoses reports whether a command of systemctl takes a program away. kubeadm starts a kubelet that was only stopped.
func systemdLoses(program, verb string, now bool) bool {
	if program == "kubelet" {
		return verb == "mask"
	}
	return program == "containerd" && (verb == "stop" || now && (verb == "disable" || verb == "mask"))
}

// Word returns the name of a command; "" if it is not a simple one.
func Word(cmd syntax.Command) string {
	call, is := cmd.(*syntax.CallExpr)
	if !is || len(call.Args) == 0 {
		return ""
	}
	return call.Args[0].Lit()
}
