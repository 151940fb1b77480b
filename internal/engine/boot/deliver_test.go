package boot

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
)

// noise returns incompressible data, the same in every run.
func noise(size int) []byte {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(out)
	return out
}

func decompress(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	assert.True(t, r.ModTime.IsZero())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	return out
}

func TestChunksRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, 6900, 7000, 30000} {
		data := noise(size)
		secrets, err := Chunks(SecretsManager, data)
		require.NoError(t, err)
		for _, chunk := range secrets {
			assert.LessOrEqual(t, len(chunk), 7000)
		}
		assert.Equal(t, data, decompress(t, bytes.Join(secrets, nil)))

		parameters, err := Chunks(ParameterStore, data)
		require.NoError(t, err)
		var joined []byte
		for _, chunk := range parameters {
			assert.LessOrEqual(t, len(chunk), 4000)
			decoded, err := base64.StdEncoding.DecodeString(string(chunk))
			require.NoError(t, err, "each chunk decodes alone")
			joined = append(joined, decoded...)
		}
		assert.Equal(t, data, decompress(t, joined))
	}
	for _, b := range []Backend{ObjectStore, UserData, "pigeon"} {
		_, err := Chunks(b, nil)
		assert.ErrorContains(t, err, string(b))
	}
}

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		backend            Backend
		wanted, want, name string
	}{
		{SecretsManager, "", "aws.cluster.x-k8s.io/1234", "aws.cluster.x-k8s.io/1234-2"},
		{SecretsManager, "mine", "mine", "mine-2"},
		{ParameterStore, "", "/cluster.x-k8s.io/1234", "/cluster.x-k8s.io/1234/2"},
		{ParameterStore, "/SSM.mine", "/mine", "/mine/2"},
		{ParameterStore, "/mine/aws", "/mine/aws", "/mine/aws/2"},
	} {
		got := Prefix(c.backend, c.wanted, "1234")
		assert.Equal(t, c.want, got)
		assert.Equal(t, c.name, ChunkName(c.backend, got, 2))
	}
}

func TestBoothookIsMIME(t *testing.T) {
	fetch := Fetch{Backend: SecretsManager, Prefix: "aws.cluster.x-k8s.io/1234", Chunks: 3, Region: "us-east-1"}
	content, err := Boothook(fetch)
	require.NoError(t, err)
	again, err := Boothook(fetch)
	require.NoError(t, err)
	assert.Equal(t, content, again)
	golden(t, "boothook.mime", content)
	assert.Less(t, len(content), MaxUserData)

	message, err := mail.ReadMessage(bytes.NewReader(content))
	require.NoError(t, err)
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	require.NoError(t, err)
	assert.Equal(t, "multipart/mixed", kind)
	parts := multipart.NewReader(message.Body, params["boundary"])

	hook, err := parts.NextPart()
	require.NoError(t, err)
	assert.Equal(t, "text/cloud-boothook", hook.Header.Get("Content-Type"))
	script, err := io.ReadAll(hook)
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(script, []byte("#cloud-boothook\n#!/bin/bash\n")))

	include, err := parts.NextPart()
	require.NoError(t, err)
	assert.Equal(t, "text/x-include-url", include.Header.Get("Content-Type"))
	url, err := io.ReadAll(include)
	require.NoError(t, err)
	assert.Equal(t, "file:///etc/secret-userdata.txt\n", string(url))
	_, err = parts.NextPart()
	require.ErrorIs(t, err, io.EOF)
}

// TestRestartCanBeCommentedOut does what images for Cluster API do to the script: they
// insert a # before the first occurrence of this text.
func TestRestartCanBeCommentedOut(t *testing.T) {
	const restart = "systemctl restart cloud-init"
	assert.Equal(t, 1, strings.Count(fetchScript, restart))
	assert.Contains(t, fetchScript, "\n"+restart)
	assert.Contains(t, fetchScript, WaitsForNetwork)
	assert.Contains(t, fetchScript, BootsAgain)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	cmd := exec.CommandContext(t.Context(), bash, "-n")
	cmd.Stdin = strings.NewReader(strings.Replace(fetchScript, restart, "#"+restart, 1))
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, string(out))
}

// TestFetchScriptRuns runs the script with a fake AWS CLI.
func TestFetchScriptRuns(t *testing.T) {
	for _, tool := range []string{"bash", "gzip", "base64", "date"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	data := noise(20000)
	for _, c := range []struct {
		backend Backend
		keep    bool
		broken  string // a chunk that cannot be fetched
		want    string // expected in the output
	}{
		{SecretsManager, false, "", "cloud-init was started"},
		{SecretsManager, true, "", "cloud-init was started"},
		{ParameterStore, false, "", "cloud-init was started"},
		{ParameterStore, true, "", "cloud-init was started"},
		{SecretsManager, false, "1", "chunk 1 of " + Prefix(SecretsManager, "", "1234") + " cannot be fetched"},
	} {
		dir := t.TempDir()
		f := Fetch{Backend: c.backend, Prefix: Prefix(c.backend, "", "1234"), Region: "us-east-1", Keep: c.keep}
		store := fakeAWS(t, dir, &f, data)
		if c.broken != "" {
			require.NoError(t, os.Remove(filepath.Join(store, strings.ReplaceAll(ChunkName(c.backend, f.Prefix, 1), "/", "_"))))
		}
		first := run(t, dir, f)
		assert.Contains(t, first, c.want)
		left, err := os.ReadDir(store)
		require.NoError(t, err)
		userData := filepath.Join(dir, "secret-userdata.txt")
		if c.broken != "" {
			assert.NoFileExists(t, userData)
			assert.Len(t, left, f.Chunks-1, "chunks that could not be used are not deleted")
			continue
		}
		got, err := os.ReadFile(userData)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		if c.keep {
			assert.Len(t, left, f.Chunks)
		} else {
			assert.Empty(t, left)
		}
		rest, err := filepath.Glob(userData + ".*")
		require.NoError(t, err)
		assert.Empty(t, rest)
		assert.Contains(t, run(t, dir, f), "already there")
	}
}

// fakeAWS writes the chunks to files, and commands that read and delete them to dir/bin.
// It sets f.Chunks.
func fakeAWS(t *testing.T, dir string, f *Fetch, data []byte) (store string) {
	t.Helper()
	store = filepath.Join(dir, "store")
	require.NoError(t, os.Mkdir(store, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	chunks, err := Chunks(f.Backend, data)
	require.NoError(t, err)
	f.Chunks = len(chunks)
	for i, chunk := range chunks {
		if f.Backend == SecretsManager {
			chunk = []byte(base64.StdEncoding.EncodeToString(chunk))
		}
		name := strings.ReplaceAll(ChunkName(f.Backend, f.Prefix, i), "/", "_")
		require.NoError(t, os.WriteFile(filepath.Join(store, name), chunk, 0o600))
	}
	for name, script := range map[string]string{
		"aws": `[[ "$2 $3 $4 $5" == "--cli-connect-timeout 10 --region us-east-1" ]] || exit 2
name=${!#}
file="` + store + `/${name//\//_}"
case $6 in get-*) cat "$file" ;; delete-*) rm "$file" ;; *) exit 2 ;; esac`,
		"sleep":     "exit 0",
		"systemctl": `[[ "$*" == "restart cloud-init" ]] && echo cloud-init was started`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/bash\n"+script+"\n"), 0o700))
	}
	return store
}

// run runs the script with its file in dir, after replacing pairs of texts in it, and
// returns its output.
func run(t *testing.T, dir string, f Fetch, edits ...string) string {
	t.Helper()
	script, err := f.script()
	require.NoError(t, err)
	script = strings.NewReplacer(edits...).Replace(script)
	script = strings.Replace(script, "FILE=/etc/", "FILE="+dir+"/", 1)
	console := filepath.Join(dir, "console")
	require.NoError(t, os.WriteFile(console, nil, 0o600))
	script = strings.Replace(script, "CONSOLE=/dev/console", "CONSOLE="+console, 1)
	cmd := exec.CommandContext(t.Context(), "bash")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")}
	out, _ := cmd.CombinedOutput() // a failure shows in the output
	told, err := os.ReadFile(console)
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "] user data: ") {
			require.Contains(t, string(told), line, "the console has it, too")
		}
	}
	return string(out)
}

// TestFetchScriptWatches runs the script where starting cloud-init again does nothing, as with
// cloud-init 24.2 and images that do not take care of it: the console says so.
func TestFetchScriptWatches(t *testing.T) {
	for name, c := range map[string]struct {
		data    string
		applied bool
		says    bool
	}{
		"not applied":    {"write_files: [{path: /run/cluster-api/placeholder}]", false, true},
		"applied":        {"write_files: [{path: /run/cluster-api/placeholder}]", true, false},
		"no such file":   {"runcmd: [/etc/eks/bootstrap.sh demo]", false, false},
		"no systemd-run": {"write_files: [{path: /run/cluster-api/placeholder}]", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := Fetch{Backend: SecretsManager, Prefix: Prefix(SecretsManager, "", "1234"), Region: "us-east-1"}
			fakeAWS(t, dir, &f, []byte(c.data))
			if name != "no systemd-run" {
				script := "#!/bin/bash\n[[ \"$1 $2 $3\" == \"--unit clusterawsadm-applied bash\" ]] && exec \"${@:3}\"\n"
				require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "systemd-run"), []byte(script), 0o700))
			}
			marker := filepath.Join(dir, "run")
			if c.applied {
				require.NoError(t, os.WriteFile(marker, nil, 0o600))
			}
			out := run(t, dir, f, "test -e ${APPLIED}", "test -e "+marker)
			console, err := os.ReadFile(filepath.Join(dir, "console"))
			require.NoError(t, err)
			assert.Contains(t, out, "cloud-init was started")
			assert.Equal(t, c.says, strings.Contains(string(console), NotApplied), "%s", console)
		})
	}
}

// TestFetchScriptWaits runs the script on a machine that has no connection at first.
func TestFetchScriptWaits(t *testing.T) {
	const probe = "secretsmanager.us-east-1.amazonaws.com:443"
	for name, c := range map[string]struct {
		failures       int    // number of failed attempts to connect
		wait           string // replaces the time limit
		proxy          bool
		unreachable    bool // the service cannot be reached either
		want, unwanted []string
	}{
		"connected": {0, "900", false, false, []string{"cloud-init was started"}, []string{"waiting", "going on"}},
		"later":     {3, "900", false, false, []string{"user data: waiting for a connection to " + probe + ", for up to 900 seconds", "cloud-init was started"}, []string{"going on"}},
		"proxy":     {3, "900", true, false, []string{"cloud-init was started"}, []string{"waiting"}},
		"too late":  {9, "0", false, false, []string{"no connection to " + probe + " after 0 seconds: going on without", "cloud-init was started"}, []string{"boots again"}},
		"never": {
			999, "0", false, true,
			[]string{"this machine boots again when it has a connection to " + probe, "started --unit clusterawsadm-boot-again bash -c until timeout 5 bash -c ': <>/dev/tcp/secretsmanager.us-east-1.amazonaws.com/443' 2>/dev/null; do sleep 15; done; cloud-init clean --reboot", "cannot be fetched"},
			[]string{"cloud-init was started"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := Fetch{Backend: SecretsManager, Prefix: Prefix(SecretsManager, "", "1234"), Region: "us-east-1", Probe: probe}
			store := fakeAWS(t, dir, &f, noise(100))
			if c.unreachable {
				require.NoError(t, os.RemoveAll(store))
			}
			for name, script := range map[string]string{
				"timeout":     fmt.Sprintf(`echo >>%[1]s/tries; (($(wc -l <%[1]s/tries) > %[2]d))`, dir, c.failures),
				"systemd-run": `echo "started $*"`,
			} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/bash\n"+script+"\n"), 0o700))
			}
			edits := []string{"\nWAIT='900'\n", "\nWAIT='" + c.wait + "'\n"}
			if c.proxy {
				edits = append(edits, "#!/bin/bash\n", "#!/bin/bash\nHTTPS_PROXY=http://proxy:3128\n")
			}
			out := run(t, dir, f, edits...)
			for _, want := range c.want {
				assert.Contains(t, out, want)
			}
			for _, unwanted := range c.unwanted {
				assert.NotContains(t, out, unwanted)
			}
		})
	}
}

func TestBoothookErrors(t *testing.T) {
	_, err := Boothook(Fetch{Backend: ObjectStore, Chunks: 1})
	require.ErrorContains(t, err, "s3")
	_, err = Boothook(Fetch{Backend: SecretsManager})
	require.ErrorContains(t, err, "0 chunks")
}

func TestShellQuote(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+shellQuote(`it's $HOME "and" \more`)).Output()
	if err != nil {
		t.Skip("bash is not installed")
	}
	assert.Equal(t, `it's $HOME "and" \more`, string(out))
}

func TestFit(t *testing.T) {
	yes, no := true, false
	fitting, repetitive, large := noise(MaxUserData), bytes.Repeat([]byte("kubeadm "), 4000), noise(MaxUserData+1)
	for name, c := range map[string]struct {
		format       string
		data         []byte
		uncompressed *bool
		compressed   bool
		err          string
	}{
		"fits":                       {CloudConfig, fitting, nil, false, ""},
		"fits, plain wanted":         {CloudConfig, fitting, &yes, false, ""},
		"fits, compression wanted":   {CloudConfig, repetitive[:100], &no, true, ""},
		"too large, compressed":      {CloudConfig, repetitive, nil, true, ""},
		"too large, plain wanted":    {CloudConfig, repetitive, &yes, false, "15616 bytes larger than the 16384 that EC2 allows: remove uncompressedUserData"},
		"too large in any form":      {CloudConfig, large, nil, false, "even when compressed"},
		"ignition fits":              {Ignition, fitting, nil, false, ""},
		"ignition too large":         {Ignition, large, nil, false, "1 bytes larger than the 16384 that EC2 allows: use ignition.storageType"},
		"ignition is not compressed": {Ignition, fitting, &no, false, "Ignition cannot read compressed"},
	} {
		got, err := Fit(c.format, c.data, c.uncompressed)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		assert.LessOrEqual(t, len(got), MaxUserData, name)
		if c.compressed {
			got = decompress(t, got)
		}
		assert.Equal(t, c.data, got, name)
	}
}

// TestQuickStartFits checks that a default control plane fits into uncompressed user
// data.
func TestQuickStartFits(t *testing.T) {
	m := machine(t, Init, "v1.34.2", quickStart())
	var err error
	m.PKI, err = NewPKI("", 0, testNow())
	require.NoError(t, err)
	data := render(t, m)
	_, err = Fit(data.Format, data.Content, nil)
	assert.NoError(t, err)
}

func TestIgnitionPointer(t *testing.T) {
	proxy, source := "http://proxy:3128", "s3://bucket/control-plane/prod-0"
	for name, c := range map[string]struct {
		spec *infrav1.Ignition
		want string
	}{
		"default": {nil, `{"ignition":{"version":"2.3.0","config":{"append":[{"source":"` + source + `"}]}}}`},
		"three":   {&infrav1.Ignition{Version: "3.4"}, `{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"` + source + `"}]}}}`},
		"proxy": {
			&infrav1.Ignition{
				Version: "3.1",
				Proxy:   &infrav1.IgnitionProxy{HTTPProxy: &proxy, NoProxy: []infrav1.IgnitionNoProxy{"169.254.169.254"}},
				TLS:     &infrav1.IgnitionTLS{CASources: []infrav1.IgnitionCASource{"https://ca"}},
			},
			`{"ignition":{"version":"3.1.0","config":{"merge":[{"source":"` + source + `"}]},
			"security":{"tls":{"certificateAuthorities":[{"source":"https://ca"}]}},
			"proxy":{"httpProxy":"http://proxy:3128","noProxy":["169.254.169.254"]}}}`,
		},
	} {
		got, err := IgnitionPointer(c.spec, source)
		require.NoError(t, err, name)
		assert.JSONEq(t, c.want, string(got), name)
	}
	for _, spec := range []*infrav1.Ignition{{Version: "4.0"}, {Version: "new"}, {Version: "2.3", Proxy: &infrav1.IgnitionProxy{}}} {
		_, err := IgnitionPointer(spec, source)
		assert.ErrorContains(t, err, "ignition.")
	}
}

func TestFingerprint(t *testing.T) {
	a, b := Data{Content: []byte("a")}.Fingerprint(), Data{Content: []byte("b")}.Fingerprint()
	assert.NotEqual(t, a, b)
	assert.Len(t, a, 20)
}

func TestEscapePath(t *testing.T) {
	for path, want := range map[string]string{
		"/": "-", "/var/lib/etcd": "var-lib-etcd", "//var//lib/": "var-lib", "/my-data": `my\x2ddata`, "/.hidden/a.b_c:d": `\x2ehidden-a.b_c:d`,
	} {
		assert.Equal(t, want, escapePath(path))
	}
}

func TestIgnitionFilesDecode(t *testing.T) {
	data := render(t, machine(t, JoinWorker, "v1.34.2", flatcar()))
	require.Equal(t, Ignition, data.Format)
	var config ignConfig
	require.NoError(t, json.Unmarshal(data.Content, &config))
	files := map[string]string{}
	for _, f := range config.Storage.Files {
		encoded, ok := strings.CutPrefix(f.Contents.Source, "data:;base64,")
		require.True(t, ok)
		content, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		files[f.Path] = string(content)
	}
	assert.Equal(t, "hello", files["/etc/blob"])
	assert.Equal(t, "from a secret\n", files["/etc/motd"])
	assert.Equal(t, "ada ALL=(ALL) NOPASSWD:ALL\n", files["/etc/sudoers.d/ada"])
	assert.Equal(t, "#!/bin/bash\necho hello\n", files["/opt/hello.sh"])
	assert.Equal(t, `REBOOT_STRATEGY="off"`, files["/etc/coreos/update.conf"])
	assert.Contains(t, files["/etc/kubeadm.yml"], "name: ${COREOS_EC2_HOSTNAME}")
	assert.Equal(t, `#!/bin/bash
set -e

envsubst < /etc/kubeadm.yml > /etc/kubeadm.yml.tmp
mv /etc/kubeadm.yml.tmp /etc/kubeadm.yml

/bin/bash /etc/kubeadm-join.sh
mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete
mv /etc/kubeadm.yml /tmp/

echo done
`, files["/etc/kubeadm.sh"])
	assert.Contains(t, files["/etc/kubeadm-join.sh"], "\nJOIN=(kubeadm join --config /etc/kubeadm.yml --v 5)\n")
	assert.Contains(t, files["/etc/kubeadm-join.sh"], "\nCONSOLE='/dev/console'\n")
}
