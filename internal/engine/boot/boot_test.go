package boot

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// cases are the documents with golden files.
func cases(t *testing.T) map[string]Machine {
	t.Helper()
	return map[string]Machine{
		"init-1.34.yaml":          machine(t, Init, "v1.34.2", quickStart()),
		"init-1.30.yaml":          machine(t, Init, "v1.30.14", quickStart()),
		"join-1.34.yaml":          machine(t, JoinControlPlane, "v1.34.2", quickStart()),
		"join-1.30.yaml":          machine(t, JoinControlPlane, "v1.30.14", quickStart()),
		"worker-1.34.yaml":        machine(t, JoinWorker, "v1.34.2", quickStart()),
		"worker-everything.yaml":  machine(t, JoinWorker, "v1.34.2", everything()),
		"flatcar-init.json":       machine(t, Init, "v1.34.2", flatcar()),
		"flatcar-join.json":       machine(t, JoinControlPlane, "v1.34.2", flatcar()),
		"init-pool.yaml":          keeping(t, Init, quickStart()),
		"flatcar-join-pool.json":  keeping(t, JoinControlPlane, flatcar()),
		"flatcar-everything.json": machine(t, JoinWorker, "v1.34.2", flatcar()),
	}
}

func TestRenderGolden(t *testing.T) {
	all := cases(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			data := render(t, all[name])
			content := data.Content
			if data.Format == Ignition {
				var out bytes.Buffer
				require.NoError(t, json.Indent(&out, content, "", "  "))
				out.WriteByte('\n')
				content = out.Bytes()
			}
			golden(t, name, content)
		})
	}
}

func TestRenderSameInputSameOutput(t *testing.T) {
	for name, m := range cases(t) {
		first := render(t, m)
		for range 5 {
			assert.Equal(t, first, render(t, m), name)
		}
	}
}

func TestRenderDoesNotChangeTheSpec(t *testing.T) {
	for name, m := range cases(t) {
		before := m.Spec.DeepCopy()
		render(t, m)
		assert.Equal(t, *before, m.Spec, name)
	}
}

// document is a parsed cloud-config.
type document struct {
	WriteFiles []struct {
		Path, Owner, Permissions, Encoding, Content string
		Append                                      bool
	} `yaml:"write_files"`
	Bootcmd, Runcmd []string
	Users           []map[string]any
	Mounts          [][]string
}

func parse(t *testing.T, data Data) document {
	t.Helper()
	require.Equal(t, CloudConfig, data.Format)
	require.True(t, strings.HasPrefix(string(data.Content), "## template: jinja\n#cloud-config\n"))
	var doc document
	require.NoError(t, yaml.Unmarshal(data.Content, &doc))
	return doc
}

func (d document) file(t *testing.T, path string) string {
	t.Helper()
	for _, f := range d.WriteFiles {
		if f.Path == path {
			return f.Content
		}
	}
	require.Fail(t, "no file "+path)
	return ""
}

func TestControlPlanesShareTheKeysAndWorkersHaveNone(t *testing.T) {
	pki := fixedPKI(t)
	for _, role := range []Role{Init, JoinControlPlane} {
		doc := parse(t, render(t, machine(t, role, "v1.34.2", quickStart())))
		assert.Equal(t, string(pki.CA.Key), doc.file(t, "/etc/kubernetes/pki/ca.key"))
		assert.Equal(t, string(pki.Etcd.Cert), doc.file(t, "/etc/kubernetes/pki/etcd/ca.crt"))
		assert.Equal(t, string(pki.FrontProxy.Key), doc.file(t, "/etc/kubernetes/pki/front-proxy-ca.key"))
		assert.Equal(t, string(pki.ServiceAccount.Cert), doc.file(t, "/etc/kubernetes/pki/sa.pub"))
		for _, f := range doc.WriteFiles {
			if strings.HasSuffix(f.Path, ".key") {
				assert.Equal(t, "0600", f.Permissions, f.Path)
			}
		}
	}
	worker := render(t, machine(t, JoinWorker, "v1.34.2", quickStart()))
	assert.NotContains(t, string(worker.Content), "PRIVATE KEY")
	assert.NotContains(t, string(worker.Content), "uninitialized")
}

func TestCertificatesDir(t *testing.T) {
	spec := quickStart()
	spec.ClusterConfiguration.CertificatesDir = "/srv/pki"
	doc := parse(t, render(t, machine(t, JoinControlPlane, "v1.34.2", spec)))
	assert.Contains(t, doc.file(t, "/srv/pki/etcd/ca.key"), "PRIVATE KEY")
}

func TestExternalEtcd(t *testing.T) {
	spec := quickStart()
	spec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{
		Endpoints: []string{"https://etcd:2379"}, CAFile: "/e/ca.crt", CertFile: "/e/client.crt", KeyFile: "/e/client.key",
	}
	m := machine(t, Init, "v1.34.2", spec)
	_, err := Render(m)
	require.ErrorContains(t, err, "prod-apiserver-etcd-client")

	m.PKI.EtcdClient, m.PKI.Etcd.Key = m.PKI.FrontProxy, nil
	doc := parse(t, render(t, m))
	assert.Equal(t, string(m.PKI.Etcd.Cert), doc.file(t, "/e/ca.crt"))
	assert.Equal(t, string(m.PKI.EtcdClient.Key), doc.file(t, "/e/client.key"))
	for _, f := range doc.WriteFiles {
		assert.NotContains(t, f.Path, "etcd/ca.key")
	}
}

func TestJinjaSurvives(t *testing.T) {
	content := string(render(t, machine(t, JoinWorker, "v1.34.2", everything())).Content)
	// Once in the name of the Node, once in a command, and once with quotes that must not
	// be escaped.
	assert.Equal(t, 2, strings.Count(content, hostname))
	assert.Contains(t, content, `name={{ ds.meta_data["local_hostname"] }}`)
	for _, line := range strings.Split(content, "\n") {
		if strings.Contains(line, "{{") {
			assert.NotContains(t, line, `\"`)
		}
	}
}

func TestContentsSurvive(t *testing.T) {
	for name, content := range map[string]string{
		"leading space":      "  indented first\nsecond\n",
		"leading newline":    "\nsecond\n",
		"trailing blanks":    "a  \n\tb \t\n",
		"crlf":               "a\r\nb\r\n",
		"looks like yaml":    "- a: b # c\n",
		"document marker":    "---\na: b\n...\n",
		"control characters": "bell \a and escape \x1b\n",
		"umlauts and emoji":  "äöü 🚀\n",
		"long lines":         strings.Repeat("word ", 200) + "\n",
		"not utf-8":          "\xff\xfe\n",
	} {
		t.Run(name, func(t *testing.T) {
			spec := quickStart()
			spec.Files = []bootstrapv1.File{{Path: "/f", Content: content}}
			spec.PreKubeadmCommands = []string{strings.TrimRight(content, "\n")}
			doc := parse(t, render(t, machine(t, JoinWorker, "v1.34.2", spec)))
			assert.Equal(t, content, doc.file(t, "/f"))
			assert.Equal(t, strings.TrimRight(content, "\n"), doc.Runcmd[0])
		})
	}
}

func TestStringsStayStringsInYAML11(t *testing.T) {
	spec := quickStart()
	spec.Users = []bootstrapv1.User{{Name: "on", Shell: "0777", Groups: "1:30", Gecos: "~", Passwd: "1e3"}}
	content := string(render(t, machine(t, JoinWorker, "v1.34.2", spec)).Content)
	for _, want := range []string{`"on"`, `"0777"`, `"1:30"`, `"~"`, `"1e3"`} {
		assert.Contains(t, content, want)
	}
}

func TestRenderErrors(t *testing.T) {
	with := func(change func(*Machine)) Machine {
		m := machine(t, JoinWorker, "v1.34.2", quickStart())
		change(&m)
		return m
	}
	for want, m := range map[string]Machine{
		"contentFormat: Template":                 with(func(m *Machine) { m.Spec.Files = []bootstrapv1.File{{Path: "/f", ContentFormat: "Template"}} }),
		"joinConfiguration.controlPlane":          with(func(m *Machine) { m.Spec.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{} }),
		"unknown role":                            with(func(m *Machine) { m.Role = 0 }),
		"no endpoint":                             with(func(m *Machine) { m.Endpoint = "" }),
		"no certificates":                         with(func(m *Machine) { m.PKI = nil }),
		"no cluster":                              with(func(m *Machine) { m.Cluster = nil }),
		`version "latest"`:                        with(func(m *Machine) { m.Version = "latest" }),
		"lower than v1.22":                        with(func(m *Machine) { m.Version = "v1.21.0" }),
		"token is not of the form":                with(func(m *Machine) { m.Token = "" }),
		"files[0].contentFrom":                    with(func(m *Machine) { m.Spec.Files = fileFrom("gone") }),
		`secret "extra" is not in`:                with(func(m *Machine) { m.Spec.Files = fileFrom("extra"); m.Secret = nil }),
		"bootCommands: not supported by Ignition": with(func(m *Machine) { m.Spec.Format = "ignition"; m.Spec.BootCommands = []string{"true"} }),
		"tableType: Ignition writes gpt only":     with(func(m *Machine) { m.Spec = flatcar(); m.Spec.DiskSetup.Partitions[0].TableType = "mbr" }),
		"diskLayout: Ignition": with(func(m *Machine) {
			m.Spec = everything()
			m.Spec.Format = "ignition"
			m.Spec.BootCommands = nil
			m.Spec.DiskSetup.Partitions[1].TableType = ""
		}),
		"replaceFS: not supported by Ignition": with(func(m *Machine) { m.Spec = flatcar(); m.Spec.DiskSetup.Filesystems[0].ReplaceFS = "ntfs" }),
		"partition: not supported by Ignition": with(func(m *Machine) { m.Spec = flatcar(); m.Spec.DiskSetup.Filesystems[0].Partition = "2" }),
		`has the label "nowhere"`:              with(func(m *Machine) { m.Spec = flatcar(); m.Spec.Mounts[0][0] = "nowhere" }),
		"mounts[0]: needs":                     with(func(m *Machine) { m.Spec = flatcar(); m.Spec.Mounts[0] = m.Spec.Mounts[0][:1] }),
		`permissions "rw" are not octal`:       with(func(m *Machine) { m.Spec = flatcar(); m.Spec.Files[0].Permissions = "rw" }),
		"the content is not base64":            with(func(m *Machine) { m.Spec = flatcar(); m.Spec.Files[1].Content = "!" }),
		"additionalConfig: line 1: field etcd is not supported": with(func(m *Machine) {
			m.Spec = flatcar()
			m.Spec.Ignition.ContainerLinuxConfig.AdditionalConfig = "etcd: {version: 3.5.0}\n"
		}),
	} {
		_, err := Render(m)
		assert.ErrorContains(t, err, want)
	}
}

// Fields that do not exist are ignored, unless the configuration is strict.
func TestCheckContainerLinuxConfig(t *testing.T) {
	const text = "storage:\n  filesystems:\n  - name: data\n    mount: {device: /dev/xvdc, format: xfs, wipeFilesystem: true}\nfoo: bar\n"
	ignored, err := CheckContainerLinuxConfig(bootstrapv1.ContainerLinuxConfig{AdditionalConfig: text})
	require.NoError(t, err)
	assert.Equal(t, []string{"line 4: field wipeFilesystem", "line 5: field foo"}, ignored)
	m := machine(t, Init, "v1.34.2", flatcar())
	m.Spec.Ignition.ContainerLinuxConfig.AdditionalConfig = text
	data, err := Render(m)
	require.NoError(t, err)
	assert.Contains(t, string(data.Content), "/dev/xvdc")
	for text, want := range map[string]string{
		text:                                 "line 4: field wipeFilesystem is not supported; line 5: field foo is not supported",
		"systemd: [\nunits:\n":               "not a Container Linux Config: yaml: ",
		"storage: {files: [{path: 3":         "not a Container Linux Config: yaml: ",
		"flannel: {version: 1}\n":            "line 1: field flannel is not supported",
		"variant: flatcar\nversion: 1.0.0\n": "this is a Butane configuration",
		"storage: {disks: [{device: /dev/sdb, partitions: [{size: much}]}]}\n": "storage.disks[0]: ",
	} {
		strict := true
		_, err := CheckContainerLinuxConfig(bootstrapv1.ContainerLinuxConfig{AdditionalConfig: text, Strict: &strict})
		require.ErrorContains(t, err, want, text)
	}
}

func fileFrom(secret string) []bootstrapv1.File {
	return []bootstrapv1.File{{Path: "/f", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: secret, Key: "motd"}}}}
}

func TestErrorsDoNotContainTheToken(t *testing.T) {
	m := machine(t, JoinWorker, "v1.34.2", quickStart())
	m.Token = "ABCDEF.secretsecretsecr"
	_, err := Render(m)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "secretsecret")
}

// TestCloudInitSchema validates the documents with the real cloud-init.
func TestCloudInitSchema(t *testing.T) {
	cloudInit, err := exec.LookPath("cloud-init")
	if err != nil {
		t.Skip("cloud-init is not installed")
	}
	for name, m := range cases(t) {
		data := render(t, m)
		if data.Format != CloudConfig {
			continue
		}
		// Its schema check requires #cloud-config as the first line.
		_, config, _ := strings.Cut(string(data.Content), "\n")
		// By type and description in the schema of 22.4.2, fs_setup[].partition may be a
		// number, but its oneOf lacks numbers.
		config = strings.Replace(config, "partition: 1\n", "partition: auto\n", 1)
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
		out, err := exec.CommandContext(t.Context(), cloudInit, "schema", "--config-file", path).CombinedOutput()
		assert.NoError(t, err, "%s: %s", name, out)
	}
}

// TestCloudInitRendersJinja renders the document with the real cloud-init, as on a
// machine.
func TestCloudInitRendersJinja(t *testing.T) {
	cloudInit, err := exec.LookPath("cloud-init")
	if err != nil {
		t.Skip("cloud-init is not installed")
	}
	dir := t.TempDir()
	instance := filepath.Join(dir, "instance-data.json")
	require.NoError(t, os.WriteFile(instance, []byte(`{"ds": {"meta_data": {"local_hostname": "ip-10-0-0-1.ec2.internal"}}}`), 0o600))
	path := filepath.Join(dir, "user-data")
	require.NoError(t, os.WriteFile(path, render(t, machine(t, JoinWorker, "v1.34.2", everything())).Content, 0o600))
	out, err := exec.CommandContext(t.Context(), cloudInit, "devel", "render", "--instance-data", instance, path).Output()
	require.NoError(t, err)
	var doc document
	require.NoError(t, yaml.Unmarshal(out, &doc))
	assert.Contains(t, doc.file(t, joinConfigPath), "name: 'ip-10-0-0-1.ec2.internal'")
	assert.Equal(t, "name=ip-10-0-0-1.ec2.internal  \n\tindented 'quoted' \"twice\"\n", doc.file(t, "/etc/node"))
	assert.Equal(t, "hostnamectl set-hostname ip-10-0-0-1.ec2.internal", doc.Runcmd[0])
}

// TestScriptsParse checks the syntax of scripts with bash.
func TestScriptsParse(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	fetch, err := Fetch{Backend: SecretsManager, Prefix: "it's", Chunks: 2, Region: "us-east-1", Keep: true}.script()
	require.NoError(t, err)
	in := &input{spec: &bootstrapv1.KubeadmConfigSpec{PreKubeadmCommands: []string{"true"}}, role: Init}
	for name, script := range map[string]string{"fetch": fetch, "kubeadm": kubeadmScript(in), "join": in.join("/x", "")} {
		cmd := exec.CommandContext(t.Context(), bash, "-n")
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		if shellcheck, err := exec.LookPath("shellcheck"); err == nil {
			cmd := exec.CommandContext(t.Context(), shellcheck, "-")
			cmd.Stdin = strings.NewReader(script)
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s: %s", name, out)
		}
	}
}
