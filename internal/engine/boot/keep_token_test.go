package boot

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// keeping is a control-plane machine that keeps the token valid.
func keeping(t *testing.T, role Role, spec bootstrapv1.KubeadmConfigSpec) Machine {
	t.Helper()
	m := machine(t, role, "v1.34.2", spec)
	m.Spec = KeepToken(spec, m.TokenTTL)
	return m
}

// keepFile returns a file that KeepToken adds.
func keepFile(t *testing.T, path string) string {
	t.Helper()
	for _, f := range KeepToken(quickStart(), 2*time.Hour).Files {
		if f.Path == path {
			return f.Content
		}
	}
	require.Fail(t, "no file "+path)
	return ""
}

// KeepToken does not change its argument.
func TestKeepTokenAdds(t *testing.T) {
	spec := quickStart()
	spec.Files = make([]bootstrapv1.File, 1, 8)
	spec.PostKubeadmCommands = []string{"echo theirs"}
	kept := KeepToken(spec, time.Hour)
	assert.Len(t, spec.Files, 1)
	assert.Len(t, KeepToken(spec, time.Minute).Files, 4)
	assert.Contains(t, kept.Files[1].Content, "+3600 seconds")
	assert.Equal(t, []string{"systemctl enable --now clusterawsadm-join-token.timer", "echo theirs"}, kept.PostKubeadmCommands)
	assert.Equal(t, []string{"echo theirs"}, spec.PostKubeadmCommands)
}

// The script reaches the machine unchanged: it contains no jinja expressions.
func TestKeepTokenReachesTheMachineUnchanged(t *testing.T) {
	m := keeping(t, JoinControlPlane, quickStart())
	data := render(t, m)
	path := filepath.Join(t.TempDir(), "user-data")
	if cloudInit, err := exec.LookPath("cloud-init"); err == nil {
		instance := path + ".json"
		require.NoError(t, os.WriteFile(instance, []byte(`{"ds": {"meta_data": {"local_hostname": "ip-10-0-0-1.ec2.internal"}}}`), 0o600))
		require.NoError(t, os.WriteFile(path, data.Content, 0o600))
		out, err := exec.CommandContext(t.Context(), cloudInit, "devel", "render", "--instance-data", instance, path).Output()
		require.NoError(t, err)
		data.Content = append([]byte("## template: jinja\n"), out...)
	}
	doc := parse(t, data)
	assert.Equal(t, keepFile(t, keepTokenScript), doc.file(t, keepTokenScript))
	assert.Equal(t, "systemctl enable --now clusterawsadm-join-token.timer", doc.Runcmd[len(doc.Runcmd)-1])
}

// systemd accepts the units.
func TestKeepTokenUnits(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not installed")
	}
	dir := t.TempDir()
	var units []string
	for _, kind := range []string{".service", ".timer"} {
		unit := filepath.Join(dir, keepTokenName+kind)
		content := strings.Replace(keepFile(t, "/etc/systemd/system/"+keepTokenName+kind), keepTokenScript, "/dev/null", 1)
		require.NoError(t, os.WriteFile(unit, []byte(content), 0o600))
		units = append(units, unit)
	}
	out, err := exec.CommandContext(t.Context(), tool, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.NotContains(t, string(out), keepTokenName, string(out))
}

// The script extends the validity of all tokens with TokenDescription. e2e/kubernetes
// tests it with a real kubectl and API server.
func TestKeepTokenScript(t *testing.T) {
	script := keepFile(t, keepTokenScript)
	shellcheck(t, script)
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	stub := `#!/bin/bash
printf '%s\n' "$*" >>` + said + `
[[ $* == *" get secrets "* ]] || exit 0
[[ -z ${BROKEN:-} ]] || exit 1
echo -n "${TOKENS}"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(stub), 0o700))
	runs := func(env ...string) ([]string, error) {
		_ = os.Remove(said) // may not exist yet
		cmd := exec.CommandContext(t.Context(), "bash")
		cmd.Stdin = strings.NewReader(script)
		cmd.Env = append(env, "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		lines, _ := os.ReadFile(said)
		return strings.Split(strings.TrimSpace(string(lines)), "\n"), joinErr(err, out)
	}
	calls, err := runs("TOKENS=bootstrap-token-aaaaaa bootstrap-token-bbbbbb")
	require.NoError(t, err)
	require.Len(t, calls, 3)
	assert.Contains(t, calls[0], "--kubeconfig /etc/kubernetes/admin.conf")
	assert.Contains(t, calls[0], `"`+base64.StdEncoding.EncodeToString([]byte(TokenDescription))+`"`)
	for i, name := range []string{"aaaaaa", "bbbbbb"} {
		before, patch, _ := strings.Cut(calls[i+1], " --patch ")
		assert.Contains(t, before, "patch secret bootstrap-token-"+name+" --type merge")
		at, ok := strings.CutPrefix(patch, `{"stringData": {"expiration": "`)
		require.True(t, ok, patch)
		expires, err := time.Parse(time.RFC3339, strings.TrimSuffix(at, `"} }`))
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(2*time.Hour), expires, time.Minute)
	}
	calls, err = runs("TOKENS=")
	require.NoError(t, err)
	assert.Len(t, calls, 1, "it creates none")
	_, err = runs("BROKEN=yes")
	assert.Error(t, err)
}

func joinErr(err error, out []byte) error {
	if err == nil {
		return nil
	}
	return &exec.Error{Name: string(out), Err: err}
}
