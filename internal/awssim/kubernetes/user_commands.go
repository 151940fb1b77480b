package kubernetes

import (
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// userScript returns the words of the command that "cluster exec" has put into a script. The first line is the command, each
// word in single quotes. The other lines pass its exit code on, but replace 194, with which the agent would restart the machine.
func userScript(script string) (words []string, ok bool) {
	line, rest, found := strings.Cut(script, "\ncode=$?\n[ $code -ne 194 ] || {")
	if !found || !strings.HasSuffix(rest, ">&2; code=193; }\nexit $code") {
		return nil, false
	}
	for line != "" {
		word, after, ok := quotedWord(line)
		if !ok {
			return nil, false
		}
		words, line = append(words, word), strings.TrimPrefix(after, " ")
	}
	return words, len(words) > 0
}

// quotedWord reads a word in single quotes. A single quote in the word is written as a quote, a backslash and two quotes (POSIX
// shell, "Quoting").
func quotedWord(line string) (word, rest string, ok bool) {
	for {
		inner, open := strings.CutPrefix(line, "'")
		text, after, closed := strings.Cut(inner, "'")
		if !open || !closed {
			return "", "", false
		}
		word += text
		if after, more := strings.CutPrefix(after, `\'`); more {
			word, line = word+"'", after
			continue
		}
		return word, after, true
	}
}

// runWords runs a command. If the machine does not have it, the exit code is 127, as in a shell.
func (svc *Service) runWords(i *ec2.Instance, words []string) (r ssm.Result) {
	switch args := words[1:]; words[0] {
	case "true":
	case "false":
		r.Code = 1
	case "hostname":
		r.Out = svc.nodeName(i) + "\n"
	case "echo":
		r.Out = strings.Join(args, " ") + "\n"
	case "cat":
		files, _ := svc.filesOf(i) // a machine with other boot data has none
		for _, name := range args {
			text, there := files[name]
			if r.Out += text; !there {
				r.Err, r.Code = r.Err+"cat: "+name+": No such file or directory\n", 1
			}
		}
	case "sh":
		m := regex.Of(`^(?:echo (\S+) >&2; )?exit (\d+)$`).FindStringSubmatch(strings.TrimPrefix(strings.Join(args, " "), "-c "))
		if m == nil {
			return ssm.Result{Code: 2, Err: "sh: this command is not simulated\n"}
		}
		code, _ := strconv.ParseInt(m[2], 10, 32)
		if r.Code = int32(code); m[1] != "" {
			r.Err = m[1] + "\n"
		}
	default:
		return ssm.Result{Code: 127, Err: "sh: 1: " + words[0] + ": not found\n"}
	}
	if r.Code == 194 {
		return ssm.Result{Code: 193, Err: r.Err + "exit status 194 would restart the machine: it is 193 here\n"}
	}
	return r
}
