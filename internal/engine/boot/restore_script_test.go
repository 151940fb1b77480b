package boot

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/backup"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/etcd"
	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// etcds are the releases of etcd on this machine: those that "make lab" has built, and the one of the
// distribution.
func etcds(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	built, err := filepath.Glob("../../../.cache/kubernetes/etcd-v*.?")
	require.NoError(t, err)
	for _, p := range built {
		found[filepath.Base(p)], err = filepath.Abs(p)
		require.NoError(t, err)
	}
	if p, err := exec.LookPath("etcd"); err == nil {
		found["distribution"] = p
	}
	if len(found) == 0 {
		t.Skip("etcd is not installed")
	}
	return found
}

// member is a member of an etcd without TLS.
type member struct {
	name, folder, client, peer string
	cmd                        *exec.Cmd
}

func newMember(t *testing.T, name string) *member {
	t.Helper()
	return &member{name: name, folder: filepath.Join(t.TempDir(), "data"), client: unusedPort(t), peer: unusedPort(t)}
}

func unusedPort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close() //nolint:errcheck // it only reserves a port
	return l.Addr().String()
}

// flags are those that kubeadm writes, without TLS.
func (m *member) flags(cluster string) []string {
	return []string{
		"--name=" + m.name, "--data-dir=" + m.folder, "--listen-client-urls=http://" + m.client, "--advertise-client-urls=http://" + m.client,
		"--listen-peer-urls=http://" + m.peer, "--initial-advertise-peer-urls=http://" + m.peer, "--initial-cluster=" + cluster, "--snapshot-count=10000",
	}
}

func (m *member) url() string { return m.name + "=http://" + m.peer }

// start starts etcd, and waits until it is healthy; a learner is not.
func (m *member) start(t *testing.T, program string, learner bool, cluster string, flags ...string) {
	t.Helper()
	m.cmd = exec.CommandContext(t.Context(), program, append(m.flags(cluster), flags...)...)
	require.NoError(t, m.cmd.Start())
	t.Cleanup(m.stop)
	require.Eventually(t, func() bool {
		r, err := http.Get("http://" + m.client + "/version") //nolint:noctx // a test
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		_, err = m.ask("maintenance/status", map[string]any{})
		return err == nil || learner
	}, time.Minute, 50*time.Millisecond)
}

func (m *member) stop() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

// ask makes a call of etcd's API.
func (m *member) ask(path string, in map[string]any) (out map[string]any, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	r, err := http.Post("http://"+m.client+"/v3/"+path, "application/json", bytes.NewReader(body)) //nolint:noctx // a test
	if err != nil {
		return nil, err
	}
	defer r.Body.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", r.Status, data)
	}
	return out, json.Unmarshal(data, &out)
}

// keys returns all keys that this member has, without asking the others.
func (m *member) keys(t *testing.T) (all []string) {
	t.Helper()
	out, err := m.ask("kv/range", map[string]any{"key": "AA==", "range_end": "AA==", "serializable": true, "keys_only": true})
	require.NoError(t, err)
	list, _ := out["kvs"].([]any)
	for _, kv := range list {
		kv, _ := kv.(map[string]any)
		text, _ := kv["key"].(string)
		key, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		all = append(all, string(key))
	}
	return all
}

func (m *member) put(t *testing.T, key string) {
	t.Helper()
	_, err := m.ask("kv/put", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte(key)), "value": "eA=="})
	require.NoError(t, err)
}

// sealed returns a snapshot of an etcd with keys as it is stored for the machine, and its restore.
func sealed(t *testing.T, program string) ([]byte, *Restore) {
	t.Helper()
	old := newMember(t, "old")
	old.start(t, program, false, old.url())
	for i := range 20 {
		old.put(t, fmt.Sprintf("/registry/configmaps/default/%02d", i))
	}
	old.put(t, "/registry/minions/old")
	require.NoError(t, old.cmd.Process.Signal(syscall.SIGTERM)) // etcd writes the keys to its database when it ends
	_ = old.cmd.Wait()
	old.cmd = nil
	f, err := files.NewTemporary()
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // a test
	database, err := os.Open(filepath.Join(old.folder, "member/snap/db"))
	require.NoError(t, err)
	defer database.Close() //nolint:errcheck // it was only read
	_, err = io.Copy(f, database)
	require.NoError(t, err)
	info, err := etcd.Read(f)
	require.NoError(t, err)
	require.Equal(t, 21, info.Keys)
	require.NoError(t, etcd.Prepare(f, info, false))
	sum, err := etcd.SHA256(f)
	require.NoError(t, err)
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	var out bytes.Buffer
	password := rand.Text()
	require.NoError(t, backup.Seal(&out, f, password))
	return out.Bytes(), &Restore{SHA256: sum, Password: password}
}

// machine is a folder with the programs that the script uses on a machine: kubeadm, which writes the
// manifest of etcd, and ctr, whose image has the real etcd.
func (m *member) machine(t *testing.T, program, url string, r *Restore) (script string, env []string) {
	t.Helper()
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, name) }
	for _, folder := range []string{"bin", "manifests"} {
		require.NoError(t, os.MkdirAll(in(folder), 0o700))
	}
	manifest := "    image: etcd:test\n"
	for _, f := range m.flags(m.url()) {
		manifest += "    - " + f + "\n"
	}
	for name, text := range map[string]string{
		"bin/kubeadm":     "#!/bin/bash\ncp " + in("etcd.yaml") + " " + in("manifests/etcd.yaml") + "\n",
		"bin/ctr":         "#!/bin/bash\ncase \"$4\" in\nlist) echo etcd:test ;;\nmount) mkdir -p \"$6/usr/local/bin\" && ln -s " + program + " \"$6/usr/local/bin/etcd\" ;;\nesac\n",
		"bin/mountpoint":  "#!/bin/bash\nfalse\n",
		"etcd.yaml":       manifest,
		"password":        r.Password + "\n",
		"restore-etcd.sh": "",
	} {
		require.NoError(t, os.WriteFile(in(name), []byte(text), 0o700))
	}
	r.URL = url
	text := strings.NewReplacer(
		"/etc/kubernetes/manifests", in("manifests"), "/var/lib/clusterawsadm-restore", in("work"), "'"+restorePasswordPath+"'", in("password"),
		"http://127.0.0.1:2379", "http://"+unusedPort(t), "http://127.0.0.1:2380", "http://"+unusedPort(t),
	).Replace(r.files()[0].Content)
	require.NoError(t, os.WriteFile(in("restore-etcd.sh"), []byte(text), 0o700))
	return in("restore-etcd.sh"), append(os.Environ(), "PATH="+in("bin")+":"+os.Getenv("PATH"))
}

// TestRestoreScriptRuns runs the script on a machine with the real etcd. The etcd that starts there has
// the keys of the snapshot, and so has each member that joins it.
func TestRestoreScriptRuns(t *testing.T) {
	for name, program := range etcds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, restore := sealed(t, program)
			bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
			defer bucket.Close()
			first := newMember(t, "first")
			script, env := first.machine(t, program, bucket.URL, restore)
			cmd := exec.CommandContext(t.Context(), "bash", script, "kubeadm.yaml")
			cmd.Env = env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			first.start(t, program, false, first.url())
			keys := first.keys(t)
			assert.Len(t, keys, 20, "those of the snapshot, without the Node of its member")
			first.put(t, "/registry/after")

			second := newMember(t, "second")
			added, err := first.ask("cluster/member/add", map[string]any{"peerURLs": []string{"http://" + second.peer}, "isLearner": true})
			require.NoError(t, err)
			second.start(t, program, true, first.url()+","+second.url(), "--initial-cluster-state=existing")
			id := added["member"].(map[string]any)["ID"]
			require.Eventually(t, func() bool {
				_, err := first.ask("cluster/member/promote", map[string]any{"ID": id})
				return err == nil
			}, time.Minute, 100*time.Millisecond)
			first.put(t, "/registry/later") // with two members, it is written when both have it
			want := append(keys, "/registry/after", "/registry/later")
			assert.ElementsMatch(t, want, first.keys(t))
			assert.Eventually(t, func() bool { return len(second.keys(t)) == len(want) }, time.Minute, 50*time.Millisecond)
			assert.ElementsMatch(t, want, second.keys(t), "a member that joins has the keys of the snapshot")
		})
	}
}
