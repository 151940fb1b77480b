package boot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// joining runs the join script of a machine in a folder that replaces the root folder,
// with programs that only record how they were called. kubeadm is the body of kubeadm.
type joining struct {
	root, script string
}

func newJoining(t *testing.T, spec bootstrapv1.KubeadmConfigSpec, kubeadm string) joining {
	t.Helper()
	j := joining{root: t.TempDir()}
	doc := parse(t, render(t, machine(t, JoinControlPlane, "v1.34.2", spec)))
	j.script = doc.file(t, joinScriptPath)
	for _, folder := range []string{"/etc/kubernetes", "/var/lib/kubelet", "/run/cluster-api"} {
		j.script = strings.ReplaceAll(j.script, folder, j.root+folder)
	}
	for name, body := range map[string]string{"kubeadm": kubeadm, "sleep": "", "timeout": "shift; \"$@\""} {
		j.write(t, "/bin/"+name, "#!/bin/bash\nROOT="+j.root+"\necho \""+name+" $*\" >>\"${ROOT}/calls\"\n"+body+"\n")
		require.NoError(t, os.Chmod(j.root+"/bin/"+name, 0o700))
	}
	j.write(t, "/etc/kubernetes/pki/ca.key", "the key")
	j.write(t, "/var/lib/kubelet/config.d/own.conf", "own")
	return j
}

func (j joining) write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(j.root+path), 0o755))
	require.NoError(t, os.WriteFile(j.root+path, []byte(text), 0o600))
}

// run returns the output of the script and the calls of programs. If over is set, the time for
// attempts is over.
func (j joining) run(t *testing.T, over bool) (out, calls string, err error) {
	t.Helper()
	script := j.script
	if over {
		script = strings.Replace(script, "LIMIT=1800", "LIMIT=0", 1)
		require.NotEqual(t, j.script, script)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = []string{"PATH=" + j.root + "/bin:" + os.Getenv("PATH")}
	said, err := cmd.CombinedOutput()
	called, readErr := os.ReadFile(j.root + "/calls")
	require.NoError(t, readErr)
	return string(said), strings.ReplaceAll(string(called), j.root, ""), err
}

// failTwice is a kubeadm whose reset deletes what the real one deletes, and whose join
// fails twice, after it has written files.
const failTwice = `
if [[ $1 == reset ]]; then
  rm -rf "${ROOT}"/etc/kubernetes/{pki,manifests,kubelet.conf} "${ROOT}"/var/lib/kubelet/*
  exit 0
fi
cat "${ROOT}/etc/kubernetes/pki/ca.key" "${ROOT}/var/lib/kubelet/config.d/own.conf" >>"${ROOT}/seen" || exit 9
echo >>"${ROOT}/seen"
mkdir -p "${ROOT}/etc/kubernetes/manifests"
touch "${ROOT}/etc/kubernetes/kubelet.conf" "${ROOT}/etc/kubernetes/manifests/kube-apiserver.yaml"
(($(wc -l <"${ROOT}/seen") > 2)) || exit 1
`

func TestJoinIsRepeatedAfterAReset(t *testing.T) {
	spec := everything()
	spec.JoinConfiguration.NodeRegistration.CRISocket = "unix:///run/containerd/containerd.sock"
	j := newJoining(t, spec, failTwice)
	out, calls, err := j.run(t, false)
	require.NoError(t, err, out)
	const join, reset = "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml --v 5\n", "kubeadm reset --force --cri-socket unix:///run/containerd/containerd.sock\n"
	assert.Regexp(t, "^"+strings.Repeat(join+"timeout 5m "+reset+reset+"sleep \\d+\n", 2)+join+"$", calls)
	seen, err := os.ReadFile(j.root + "/seen")
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("the keyown\n", 3), string(seen), "each attempt finds what was there before the first")
	for _, line := range []string{JoinFailed + " 1\n", JoinFailed + " 1 failed with exit code 1\n", JoinFailed + " 3\n"} {
		assert.Contains(t, out, line)
	}
	assert.NotContains(t, out, JoinGaveUp)
	assert.NoDirExists(t, j.root+"/run/cluster-api/before-kubeadm", "copies of keys")
}

func TestJoinGivesUpWithTheExitCodeOfKubeadm(t *testing.T) {
	j := newJoining(t, quickStart(), "exit 3")
	out, calls, err := j.run(t, true)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.ExitCode())
	assert.Contains(t, out, JoinGaveUp+" after ")
	assert.Equal(t, "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml\n", calls)
	assert.NoDirExists(t, j.root+"/run/cluster-api/before-kubeadm")
}

// kubeadm reset deletes the data of etcd also when it cannot remove the member.
func TestMemberOfEtcdIsNotReset(t *testing.T) {
	j := newJoining(t, quickStart(), `mkdir -p "${ROOT}/etc/kubernetes/manifests"; touch "${ROOT}/etc/kubernetes/manifests/etcd.yaml"; exit 1`)
	out, calls, err := j.run(t, false)
	require.Error(t, err)
	assert.Contains(t, out, JoinGaveUp+": this machine is a member of etcd already")
	assert.NotContains(t, calls, "reset")
}

func TestFirstMachineInitializesOnce(t *testing.T) {
	for name, spec := range map[string]bootstrapv1.KubeadmConfigSpec{"cloud-config": quickStart(), "Ignition": flatcar()} {
		assert.NotContains(t, string(render(t, machine(t, Init, "v1.34.2", spec)).Content), "kubeadm-join.sh", name)
	}
}
