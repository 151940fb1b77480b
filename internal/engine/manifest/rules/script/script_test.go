package script_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/script"
)

// TestFirstObstacle has scripts, and what is said of the first command after which the machine does not join; "" if it joins.
func TestFirstObstacle(t *testing.T) {
	for text, want := range map[string]string{
		"true":                                    "",
		"exit 0":                                  "exit ends it",
		"a || exit 1":                             "",
		"cd /a && exit 1 || exit 1":               "exit ends it",
		"cd /a || exit 1 && exit 1":               "exit ends it",
		"if a; then exit 0; else exit 1; fi":      "exit ends it",
		"if a; then exit 0; elif b; then c; fi":   "",
		"if true; then exit 0; fi":                "exit ends it",
		"if false; then exit 0; fi":               "",
		"{ a; exit 1; }":                          "exit ends it",
		"(exit 1)":                                "",
		"exit 0 &":                                "",
		"! exit 0":                                "exit ends it",
		"return 1":                                "return ends it where sh is dash",
		"f() { return 1; }; f":                    "",
		"exec > /var/log/a 2>&1":                  "",
		"exec /bin/true":                          "exec replaces its shell",
		"kill -9 $$":                              "kill ends its shell",
		"kill $(pidof a)":                         "",
		"sleep infinity":                          "sleep never ends",
		"sleep 5":                                 "",
		"while :; do a; done":                     "the loop never ends",
		"while :; do a && break; done":            "",
		"until false; do a; done":                 "",
		"set -e\nfalse":                           "set -e ends it when a command fails",
		"set -euo pipefail\nfalse":                "set -e ends it when a command fails",
		"set -o errexit\nfalse":                   "set -e ends it when a command fails",
		"set -e\nset +e\nfalse":                   "",
		"set -e\nfalse || true":                   "",
		"set -e\nfalse && true":                   "",
		"set -e\n! true":                          "",
		"false":                                   "",
		"set -u; echo $NOPE":                      "set -u ends it, because nothing sets NOPE",
		"set -u; echo ${NOPE:-a}":                 "",
		"set -u; A=b; echo $A $HOME $1":           "",
		"set -u; for a in b; do :; done; echo $a": "",
		"set -u; . /etc/os-release; echo $ID":     "",
		"echo $NOPE":                              "",
		"reboot":                                  "reboot stops the machine, and cloud-init does not run it a second time",
		"[ -f /a ] && reboot":                     "",
		"shutdown -h now":                         "shutdown stops the machine, and cloud-init does not run it a second time",
		"shutdown -r +1":                          "",
		"systemctl reboot":                        "systemctl stops the machine, and cloud-init does not run it a second time",
		"init 6":                                  "init stops the machine, and cloud-init does not run it a second time",
		"systemctl mask kubelet":                  "systemctl mask kubelet: without kubelet, there is no node",
		"systemctl stop kubelet":                  "",
		"systemctl stop containerd.service":       "systemctl stop containerd: without containerd, there is no node",
		"systemctl stop containerd\na\nsystemctl start containerd":         "",
		"sudo systemctl disable --now containerd":                          "systemctl disable containerd: without containerd, there is no node",
		"systemctl disable containerd":                                     "",
		"service containerd stop":                                          "service containerd stop: without containerd, there is no node",
		"apt-get remove -y kubelet kubeadm":                                "apt-get removes kubelet: without kubelet, there is no node",
		"apt-get remove -y kubeadm\napt-get install -y kubeadm=1.34.2-1.1": "",
		"rm -f /usr/bin/kubeadm":                                           "rm removes kubeadm: without kubeadm, there is no node",
		"rm -rf /tmp/kubeadm":                                              "",
	} {
		found := script.FirstObstacle(text+"\njoins\nexit 1\n", "joins")
		if want == "" {
			assert.Nil(t, found, text)
			continue
		}
		require.NotNil(t, found, text)
		assert.Equal(t, want, found.What, text)
	}
	second := script.FirstObstacle("a\nb\nexit 1\njoins\n", "joins")
	assert.Equal(t, &script.Obstacle{Line: 3, What: "exit ends it", Ends: true}, second)
	assert.Nil(t, script.FirstObstacle("exit 1\n", "joins"), "the script does not join")
}
