package etcd

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// machine runs the script in place of a machine: with folders and a network of its own, the real
// kubeadm and etcd, and a ctr that has the program of one image.
const machine = `set -e
ip link set lo up
ip address add 10.0.0.5/32 dev lo
mkdir -p etc data work bin /etc/kubernetes /var/lib/etcd /var/lib/clusterawsadm-restore
mount --bind etc /etc/kubernetes
mount --bind data /var/lib/etcd
mkdir -p /etc/kubernetes/manifests
cat > bin/ctr <<'END'
#!/bin/sh
[ "$1 $2 $3" = "--namespace k8s.io images" ] || exit 9
case "$4 $5" in
"list -q") echo "registry.k8s.io/etcd:3.6.5-0"; seq -f "registry.k8s.io/other:%g" 100000 ;; # who reads it has to read all of it
"mount registry.k8s.io/etcd:3.6.5-0") mkdir -p "$6/usr/local/bin"; cp "$ETCD" "$6/usr/local/bin/etcd" ;;
*) exit 9 ;;
esac
END
chmod +x bin/ctr
ln -sf "$KUBEADM" bin/kubeadm
export PATH=$PWD/bin:$PATH
bash script config.yaml
etcd=$ETCD
"$etcd" --name=node --data-dir=/var/lib/etcd --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 --listen-peer-urls=http://127.0.0.1:2380 >log 2>&1 &
for try in $(seq 1 100); do curl -sf http://127.0.0.1:2379/health | grep -q '"true"' && break; sleep 0.2; done
curl -sf http://127.0.0.1:2379/v3/kv/put -d '{"key":"YWZ0ZXI=","value":"MQ=="}'
curl -sf http://127.0.0.1:2379/v3/cluster/member/list -d '{}'
curl -sf http://127.0.0.1:2379/v3/kv/range -d '{"key":"L3JlZ2lzdHJ5L2E="}'
kill %1
`

const kubeadmConfig = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.34.2
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.0.5}
nodeRegistration: {name: node, criSocket: "unix:///run/containerd/containerd.sock"}
`

// TestScript restores a snapshot with the script of package boot, the real kubeadm and the real
// etcd.
func TestScript(t *testing.T) {
	program, err := filepath.Abs("../../../.cache/kubernetes/etcd-v3.6.5")
	require.NoError(t, err)
	kubeadm, err := filepath.Abs("../../../.cache/kubernetes/kubeadm-v1.34.2")
	require.NoError(t, err)
	for _, file := range []string{program, kubeadm} {
		if _, err := os.Stat(file); err != nil || os.Geteuid() != 0 {
			t.Skip("this test needs root, and what 'make lab' builds")
		}
	}
	s := newServer(t)
	c := s.start(t, program)
	put(t, c, "/registry/a", "kept")
	f, err := files.NewTemporary()
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // a test
	require.NoError(t, c.Snapshot(t.Context(), f))
	s.stop()
	info, err := Check(f)
	require.NoError(t, err)
	require.NoError(t, Prepare(f, info, false))
	sum, err := SHA256(f)
	require.NoError(t, err)

	folder := t.TempDir()
	database, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	require.NoError(t, err)
	script, err := os.ReadFile("../boot/restore-etcd.sh")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"db": string(database), "password": "0123\n", "config.yaml": kubeadmConfig,
		"script": fmt.Sprintf("#!/bin/bash\nURL='file://%s/sealed'\nSHA256='%s'\nPASSWORD='%s/password'\n%s", folder, sum, folder, script),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "ETCD="+program, "KUBEADM="+kubeadm)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run("bash", "-c", "gzip -c db | openssl enc -aes-256-cbc -md sha256 -salt -pass file:password -out sealed 2>/dev/null")
	out := run("unshare", "--mount", "--net", "bash", "-c", machine)
	assert.Contains(t, out, "restore of etcd: done")
	assert.Contains(t, out, base64Of("kept"))
	assert.Contains(t, out, "https://10.0.0.5:2380")
	assert.Equal(t, 1, strings.Count(out, "peerURLs"))
	assert.NoFileExists(t, filepath.Join(folder, "password"))
	assert.NoFileExists(t, filepath.Join(folder, "etc/manifests/etcd.yaml"))
}
