package boot

import (
	_ "embed"
	"strconv"
	"strings"
	"time"
)

// JoinWindow is how long after its first attempt a machine begins further attempts to
// join. A join token has to be valid for at least this time when a machine is launched.
const JoinWindow = 30 * time.Minute

// The script that runs kubeadm join. Ignition writes files before /run exists.
const (
	joinScriptPath         = runDir + "/kubeadm-join.sh"
	ignitionJoinScriptPath = "/etc/kubeadm-join.sh"
)

// joinScript repeats kubeadm join, because kubeadm itself does not repeat all of its
// requests: "failed to get config map: Unauthorized" of an API server that has just
// started ends it. It must not contain jinja expressions.
//
//go:embed kubeadm-join.sh
var joinScript string

// JoinFailed and JoinGaveUp begin the lines that joinScript writes to the console after a
// failed attempt, and after the last one.
const (
	JoinFailed = "kubeadm join: attempt"
	JoinGaveUp = "kubeadm join: gives up"
)

// IsMember is why it gives up after kubeadm has added the machine to etcd.
const IsMember = "this machine is a member of etcd already, and has to be replaced"

// join returns the script that runs kubeadm join with the configuration at path. It
// writes its messages to console, too, unless that is "".
func (in *input) join(path, console string) string {
	reset := []string{"kubeadm", "reset", "--force"}
	if socket := in.spec.JoinConfiguration.NodeRegistration.CRISocket; socket != "" {
		reset = append(reset, "--cri-socket", socket)
	}
	settings := []struct{ name, value string }{
		{"JOIN", "(" + in.command(path) + ")"},
		{"RESET", "(" + shellWords(reset) + ")"},
		{"LIMIT", strconv.Itoa(int(JoinWindow / time.Second))},
		{"CONSOLE", shellQuote(console)},
	}
	out := "#!/bin/bash\n"
	for _, s := range settings {
		out += s.name + "=" + s.value + "\n"
	}
	return out + joinScript
}

// shellWords quotes words for the shell.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellQuote(w)
	}
	return strings.Join(quoted, " ")
}
