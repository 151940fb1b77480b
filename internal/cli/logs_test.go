package cli

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

// unpacked returns the files of an archive.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, h.Mode)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[h.Name] = string(text)
	}
}

// TestLogs collects the logs of a cluster whose machines have written secrets to their consoles.
func TestLogs(t *testing.T) {
	s := newShell(t)
	s.simulated()
	file, out := s.generated(t), filepath.Join(t.TempDir(), "demo.tar.gz")
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	key := "MIIEowIBAAKCAQEA7c"
	planted := []string{
		"abcdef.0123456789abcdef",
		key,
		"AKIAIOSFODNN7EXAMPLE",
		"wJalrXUtnFEMIK7MDENG",
		"hunter2",
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat("client key ", 9))),
	}
	s.simulatedAccount(t, func(state *awssim.State) {
		r := state.IAM.Roles["control-plane.cluster-api-provider-aws.sigs.k8s.io"]
		r.Attached = append(r.Attached, "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
		for _, i := range state.EC2.Instances {
			i.Boot.Failed = "[ERROR x]: kubeadm join --token " + planted[0] + "\n[   12.3] cloud-init: -----BEGIN RSA PRIVATE KEY-----\n[   12.4] cloud-init: " + key + "\n[   12.5] cloud-init: -----END RSA PRIVATE KEY-----\n" +
				"aws_access_key_id = " + planted[2] + "\naws_secret_access_key = " + planted[3] + "\nusers: [{name: a, user: {token: " + planted[4] + ", client-key-data: " + planted[5] + "}}]\nthe end"
		}
	})
	require.Equal(t, 0, s.run("cluster", "logs", "-f", file, "--to", out), s.err.String())
	assert.Contains(t, s.err.String(), out+" has ")
	assert.Empty(t, s.out.String())
	info, err := os.Stat(out)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())
	files, consoles, logs := unpacked(t, out), 0, map[string]string{}
	for name, text := range files {
		for _, secret := range planted {
			assert.NotContains(t, text, secret, name)
		}
		assert.NotContains(t, text, "BEGIN", name)
		logs[strings.Split(name, "/")[1]] += text
		if strings.Contains(name, "/console/") || strings.Contains(name, "/cloud-init/") {
			consoles++
			assert.Contains(t, text, "[ERROR x]: kubeadm join --token [secret]")
			assert.Contains(t, text, "the end")
		}
	}
	assert.Equal(t, 3, consoles)
	assert.Contains(t, logs["kubelet"], `kubelet[2114]: "Successfully registered node"`)
	assert.Regexp(t, `cloud-init/machine-demo-md-0-0-i-\w+.txt, kubelet/machine-demo-md-0-0-i-\w+.txt: the SSM agent has never reported: `, logs["missing.txt"])
	for line := range strings.Lines(logs["missing.txt"]) {
		assert.Contains(t, s.err.String(), "missing: "+line)
	}
	for name, want := range map[string]string{
		"version.txt": "v", "describe.txt": "API server: ready (v1.34.2)  Nodes: 2 joined", "describe.json": `"name": "demo"`, "plan.json": `"cluster": "demo"`, "kubernetes/pods.txt": "kube-system/",
	} {
		assert.Contains(t, files["demo-logs/"+name], want, name)
	}
	require.Equal(t, env.Wrong, s.run("cluster", "logs", "demo", "--to", out))
	assert.Contains(t, s.err.String(), "exists: name another file with --to FILE")

	s.silenced(t)
	require.Equal(t, 0, s.run("cluster", "logs", "demo", "--to", out+"2"), s.err.String())
	files = unpacked(t, out+"2")
	assert.Contains(t, files["demo-logs/missing.txt"], "pods and events: the API server was not asked, or does not answer\n")
	require.Equal(t, env.Failed, s.run("cluster", "logs", "nope", "--to", out+"3"))
	assert.NoFileExists(t, out+"3")
	require.Equal(t, env.Wrong, s.run("cluster", "logs", "-f", file, "--to", out))
	assert.Contains(t, s.err.String(), "demo.tar.gz exists: name another file with --to FILE\n")
	assert.NotContains(t, s.err.String(), "missing:", "it is said before anything is read")
}

// TestFollow shows the consoles of machines, what is added to them, and new machines; nothing twice, and no secrets.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t)
		s.simulated()
		file := s.generated(t)
		require.Equal(t, 0, s.run("cluster", "logs", "-f", file, "--follow", "--timeout", "12s"), s.err.String())
		assert.Contains(t, s.err.String(), "cluster demo has no machines yet")
		assert.Empty(t, s.out.String())
		require.Equal(t, env.Failed, s.run("cluster", "logs", "demo", "--follow"))
		assert.Contains(t, s.err.String(), "error: there is no cluster demo")
		require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())

		began, ended := time.Now(), make(chan int)
		go func() { ended <- s.run("cluster", "logs", "demo", "--follow", "--timeout", "22s") }()
		time.Sleep(7 * time.Second)
		s.simulatedAccount(t, func(state *awssim.State) {
			for _, i := range state.EC2.Instances {
				i.Boot.Failed = "new \x1b[31mline of kubeadm --token abcdef.0123456789abcdef"
			}
		})
		require.Equal(t, 0, <-ended, s.err.String())
		assert.Equal(t, 22*time.Second, time.Since(began))
		for _, machine := range []string{"demo-control-plane/0", "demo-md-0/0"} {
			assert.Equal(t, 1, strings.Count(s.out.String(), machine+" | [    0.000000] Linux version"), s.out.String())
			assert.Equal(t, 1, strings.Count(s.out.String(), machine+" | cloud-init[1203]: error: new [31mline of kubeadm --token [secret]\n"), s.out.String())
		}

		require.Equal(t, 0, s.run("cluster", "logs", "demo", "demo-md-0/0", "--follow", "--timeout", "2s", "-o", "json"), s.err.String())
		for line := range strings.Lines(s.out.String()) {
			var x struct{ Machine, ID, Text string }
			require.NoError(t, json.Unmarshal([]byte(line), &x))
			assert.Equal(t, "demo-md-0/0", x.Machine)
			assert.True(t, strings.HasPrefix(x.ID, "i-"))
			assert.NotEmpty(t, x.Text)
		}
		assert.Contains(t, s.out.String(), "Linux version")
		require.Equal(t, env.Failed, s.run("cluster", "logs", "demo", "md-9/0", "--follow"))
		assert.Contains(t, s.err.String(), "cluster demo has no machine md-9/0: it has demo-control-plane/0, demo-md-0/0")
		require.Equal(t, env.Wrong, s.run("cluster", "logs", "demo", "--follow", "--to", "x.tar.gz"))
		assert.Contains(t, s.err.String(), "--follow writes no archive")
		require.Equal(t, env.Wrong, s.run("cluster", "logs", "demo", "demo-md-0/0"))
		assert.Contains(t, s.err.String(), "machines are named only with --follow")
	})
}
