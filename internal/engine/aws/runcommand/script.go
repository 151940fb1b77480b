package runcommand

import (
	"fmt"
	"strings"
	"time"
)

// Command is a shell command whose standard output is read. It only reads, it is one line, and
// its output has to be the same when it is repeated. Programs beside those of sealed.go are
// those that every Linux has.
type Command string

// mostLog is how many bytes of a log are read: the last ones.
const mostLog = 60000

// KubeletLog prints the journal of the kubelet until a time.
func KubeletLog(until time.Time) Command {
	return Command(
		fmt.Sprintf("journalctl --unit kubelet --no-pager --output short-iso --lines 1000 --until '%s UTC' | tail -c %d", until.UTC().Format(time.DateTime), mostLog),
	)
}

// CloudInitLog prints what commands of cloud-init have written.
func CloudInitLog() Command {
	return Command(fmt.Sprintf("tail -c %d /var/log/cloud-init-output.log", mostLog))
}

// UserData prints what a machine has booted with, as cloud-init has stored it. cloud-init has
// replaced what the user data includes by its content.
func UserData() Command { return "cat /var/lib/cloud/instance/user-data.txt.i" }

// Files prints a tar archive of those of the files that exist in a folder. Without any, it
// fails.
func Files(folder string, names ...string) Command {
	return Command(fmt.Sprintf("cd %s && find %s -maxdepth 0 -print0 2>/dev/null | xargs -0 tar -cf -", folder, strings.Join(names, " ")))
}

// part is how many bytes of the compressed output one script prints. Encrypted, and twice in
// base64, they are within the 24,000 characters that AWS keeps ("GetCommandInvocation").
const part = 16000

// mark is the last line of a complete output.
const mark = "end of output"

// script returns the script that prints a part of the output of a command, compressed and
// encrypted: a random password for the public key, then the data for that password. Before the
// data are the size and the hash of all parts. It writes no file. sh may be dash, and openssl may
// be 1.0.2.
func (c Command) script(public string, from int) string {
	return fmt.Sprintf(`set -eu
from=%d
public='%s'
content() { %s; }
packed() { content | gzip -n; }
content >/dev/null
password=$(openssl rand -hex 32)
export password
printf '%%s' "$password" | openssl pkeyutl -encrypt -pubin -inkey /dev/fd/3 -pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 3<<END | openssl base64 -A
$public
END
echo
{
  printf '%%s %%s\n' "$(packed | wc -c)" "$(packed | sha256sum | cut -c 1-64)"
  packed | tail -c "+$((from + 1))" | head -c %d
} | openssl enc -aes-256-cbc -md sha256 -salt -pass env:password 2>/dev/null | openssl base64 -A
echo
echo '%s'
`, from, public, c, part, mark)
}
