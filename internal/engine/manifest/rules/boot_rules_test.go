package rules_test

import (
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bootCase is a change of the quick start that concerns how machines boot.
type bootCase struct {
	name   string
	plane  string   // fields of the configuration of the control plane
	worker string   // fields of the configuration of workers
	edit   []string // other changes
	fails  string   // in the problem; "" for none
	warns  string   // in a warning; "" for none
}

func checkBootCases(t *testing.T, cases []bootCase) {
	t.Helper()
	const plane, worker = "    clusterConfiguration:\n", "      joinConfiguration:\n"
	indented := func(fields, by string) (out string) {
		for line := range strings.Lines(fields) {
			out += by + line
		}
		return out
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			edit := append([]string{plane, indented(tt.plane, "    ") + plane, worker, indented(tt.worker, "      ") + worker}, tt.edit...)
			text := manifests.Read(t, "../../../../configs/quickstart.yaml")
			for i := 0; i < len(edit); i += 2 {
				require.Equal(t, 1, strings.Count(text, edit[i]), edit[i])
				text = strings.Replace(text, edit[i], edit[i+1], 1)
			}
			c, err := manifests.Load(t, text, input.LoadOptions{})
			if tt.fails != "" {
				require.ErrorContains(t, err, tt.fails)
				return
			}
			require.NoError(t, err)
			if tt.warns == "" {
				assert.Empty(t, c.Warnings)
				return
			}
			require.NotEmpty(t, c.Warnings)
			assert.Contains(t, c.Warnings[0].What+" — "+c.Warnings[0].Fix, tt.warns)
		})
	}
}

// workerName is the end of the quick start with the Node name of workers.
const workerName = "          name: '{{ ds.meta_data.local_hostname }}'\n"

func renamed(name string) []string { return []string{workerName, "          name: " + name + "\n"} }

// cloud-init renders all texts of a configuration with jinja, and ignores a configuration that is not a template.
func TestTemplatesOfConfigurations(t *testing.T) {
	const ignored = "cloud-init renders the whole configuration with jinja, and would ignore all of it: "
	checkBootCases(t, []bootCase{
		{name: "length in a shell", worker: "preKubeadmCommands: ['X=abc; test ${#X} -gt 2']\n", fails: ignored + "{# begins a comment"},
		{name: "length in a shell of the control plane", plane: "postKubeadmCommands: ['echo ${#X}']\n", fails: ignored + "{# begins a comment"},
		{
			name:   "template of Go in a file",
			worker: "files:\n- path: /opt/t\n  content: |\n    a\n    {{ .Name }}\n",
			fails:  "files[0].content: " + ignored + "{{ .Name }}",
		},
		{name: "boot command", worker: "bootCommands: ['docker inspect -f {{.State}} x']\n", fails: "bootCommands[0]: " + ignored},
		{name: "comment of a user", worker: "users: [{name: a, gecos: '{{ a'}]\n", fails: "users[0].gecos: " + ignored},
		{name: "mount", worker: "mounts: [[a, '/{{']]\n", fails: "mounts[0][1]: " + ignored},
		{
			name:  "argument",
			plane: "",
			edit:  []string{"    initConfiguration:\n", "      apiServer: {extraArgs: [{name: audit-log-path, value: '/{{ }}'}]}\n    initConfiguration:\n"},
			fails: ignored + "jinja expects an expression",
		},
		{name: "statement without an end", worker: "files: [{path: /a, content: '{% if x %}'}]\n", fails: ignored + "{% if %} has no {% endif %}"},
		{
			name:  "unknown filter",
			edit:  renamed("'{{ ds.meta_data.local_hostname | shorten }}'"),
			fails: "nodeRegistration.name: " + ignored + "jinja has no filter shorten",
		},
		{name: "quotes within quotes of YAML", edit: renamed(`"{{ ds.meta_data['local-hostname'] }}"`), fails: ignored},
		{name: "tag over two fields", worker: "files: [{path: /a, content: 'a {#'}, {path: /b, content: '#} b'}]\n", fails: "files[0].content: " + ignored},
		{name: "statement over two fields", worker: "preKubeadmCommands: ['{% if v1.region == \"us-east-1\" %}', a, '{% endif %}']\n"},
		{name: "raw text", worker: "files: [{path: /a, content: '{% raw %}{{ .Name }} ${#X}{% endraw %}'}]\n"},
		{name: "text in base64", worker: "files: [{path: /a, encoding: base64, content: e3sgLk5hbWUgfX0=}]\n"},
		{name: "other variable", edit: renamed("'{{ ds.meta_data.instance_id }}.example.com'")},
		{name: "double quotes", edit: renamed(`'{{ ds.meta_data["local-hostname"] }}'`)},

		{
			name:  "unknown variable in a name",
			edit:  renamed("'{{ ds.meta_data.localhostname }}'"),
			fails: "cloud-init has no variable ds.meta_data.localhostname, and writes CI_MISSING_JINJA_VAR/localhostname, which is no valid value here — did you mean ds.meta_data.local_hostname?",
		},
		{
			name: "unknown variable in a label",
			edit: []string{
				workerName + "          kubeletExtraArgs:\n",
				workerName + "          kubeletExtraArgs:\n          - {name: node-labels, value: 'zone={{ ds.meta_data.placement.zone }}'}\n",
			},
			fails: "has no variable ds.meta_data.placement.zone",
		},
		{name: "unknown variable with a default", edit: renamed("'{{ ds.meta_data.own | default(v1.local_hostname) }}'")},
		{name: "unknown variable in a file", worker: "files: [{path: /a, content: '{{ v1.hostnam }}'}]\n", warns: "cloud-init has no variable v1.hostnam"},
		{
			name:   "attribute of an unknown variable",
			worker: "files: [{path: /a, content: '{{ ds.metadata.mac }}'}]\n",
			fails:  ignored + "ds.metadata is not a variable, in ds.metadata.mac — did you mean ds.meta_data?",
		},
		{name: "subtraction", edit: renamed("'{{ ds.meta_data.local-hostname }}'"), fails: ignored},
		{
			name:   "public name",
			worker: "files: [{path: /a, content: '{{ ds.meta_data.public_hostname }}'}]\n",
			warns:  "only a machine with a public IP address has ds.meta_data.public_hostname",
		},
		{name: "one name for a type", edit: renamed("'{{ ds.meta_data.instance_type }}'"), fails: "all machines would have the Node name"},
		{name: "one name for a region", edit: renamed("'worker-{{ region }}'"), fails: "all machines would have the Node name"},
		{name: "no name of a region only", edit: renamed("'{{ region }}-{{ ds.meta_data.instance_id }}'")},
	})
}

// cloud-init writes files before it makes users and mounts filesystems. A file that it cannot write is the last one.
func TestFilesOfConfigurations(t *testing.T) {
	const own = "files: [{path: /opt/a, content: x, owner: 'deploy:deploy'}]\n"
	checkBootCases(t, []bootCase{
		{
			name:   "owner that is made later",
			worker: own + "users: [{name: deploy}]\n",
			fails:  "files[0].owner: cloud-init could not write it, and would write no file after it: the user deploy does not exist yet",
		},
		{name: "owner that a boot command makes", worker: own + "users: [{name: deploy}]\nbootCommands: [useradd deploy]\n"},
		{name: "unknown owner", worker: own, warns: "there is no user deploy, unless the image has it"},
		{name: "unknown group", plane: "files: [{path: /opt/a, content: x, owner: 'root:deploy'}]\n", warns: "there is no group deploy, unless the image has it"},
		{name: "number", worker: "files: [{path: /opt/a, content: x, owner: '1000:1000'}]\n", fails: `it looks for a user with the name "1000", not the number`},
		{
			name:   "owner of images",
			worker: "files: [{path: /opt/a, content: x, owner: 'ubuntu:systemd-journal'}, {path: /opt/b, content: x, owner: root}]\nusers: [{name: ubuntu}]\n",
		},
		{
			name:   "file and folder",
			worker: "files: [{path: /opt/a/b, content: x}, {path: /opt/a, content: x}]\n",
			fails:  "files[1].path: cloud-init could not write both: /opt/a is a file here, and the folder of /opt/a/b",
		},
		{
			name:   "folder of kubeadm",
			worker: "files: [{path: /run/kubeadm, content: x}]\n",
			fails:  "/run/kubeadm is a file here, and the folder of /run/kubeadm/kubeadm.yaml",
		},
		{
			name:  "folder of the system",
			plane: "files: [{path: /etc/, content: x}]\n",
			fails: "files[0].path: cloud-init could not write it, and would write no file after it: /etc is a folder",
		},
		{name: "slash at the end", worker: "files: [{path: /opt/a/, content: x}]\n", warns: "cloud-init writes a file /opt/a, not a folder"},

		{
			name:  "mount over the keys",
			plane: "mounts: [[/dev/xvdb, /etc/kubernetes]]\n",
			fails: "mounts[0][1]: the filesystem would hide /etc/kubernetes/pki/ca.crt, which cloud-init writes before it mounts",
		},
		{name: "mount over the configuration", worker: "mounts: [[tmpfs, /run/kubeadm, tmpfs]]\n", fails: "would hide /run/kubeadm/kubeadm-join-config.yaml"},
		{name: "mount over the system", worker: "mounts: [[/dev/xvdb, /usr]]\n", fails: "would hide the files of the system in /usr"},
		{
			name:   "mount over a file",
			worker: "files: [{path: /data/a, content: x}]\nmounts: [[/dev/xvdb, /data]]\n",
			warns:  "the filesystem that is mounted at /data hides it",
		},
		{name: "mount that is not automatic", worker: "files: [{path: /data/a, content: x}]\nmounts: [[/dev/xvdb, /data, ext4, noauto]]\n"},
		{
			name:  "mount at the folder of etcd",
			plane: etcdDisk("/var/lib/etcd", "ext4"),
			fails: "mounts[0][1]: kubeadm refuses a machine on which the folder for the data of etcd is not empty: mkfs.ext4 makes lost+found in /var/lib/etcd",
		},
		{name: "mount at the folder of etcd, emptied", plane: etcdDisk("/var/lib/etcd", "ext4") + "preKubeadmCommands: [rmdir /var/lib/etcd/lost+found]\n"},
		{name: "mount of XFS at the folder of etcd", plane: etcdDisk("/var/lib/etcd", "xfs")},
		{name: "mount of an unknown filesystem", plane: "mounts: [[/dev/xvdb, /var/lib/etcd]]\n", warns: "/var/lib/etcd may have lost+found"},
		{
			name:  "mount above the folder of etcd",
			plane: etcdDisk("/var/lib/etcddisk", "ext4"),
			edit:  []string{"    initConfiguration:\n", "      etcd: {local: {dataDir: /var/lib/etcddisk/etcd}}\n    initConfiguration:\n"},
		},
		{
			name:  "mount that kubeadm permits",
			plane: etcdDisk("/var/lib/etcd", "ext4"),
			edit: []string{
				"    initConfiguration:\n      nodeRegistration:\n",
				"    initConfiguration:\n      nodeRegistration:\n        ignorePreflightErrors: [DirAvailable--var-lib-etcd]\n",
			},
		},
		{
			name:  "file in the folder of etcd",
			plane: "files: [{path: /var/lib/etcd/a, content: x}]\n",
			fails: "files[0].path: kubeadm refuses a machine on which the folder for the data of etcd is not empty: /var/lib/etcd/a is in it",
		},
		{
			name:  "etcd beside the keys",
			edit:  []string{"    initConfiguration:\n", "      etcd: {local: {dataDir: /etc/kubernetes/pki}}\n    initConfiguration:\n"},
			fails: "etcd.local.dataDir: kubeadm refuses a machine on which the folder for the data of etcd is not empty: /etc/kubernetes/pki has other files",
		},
		{
			name:  "etcd in a folder of the system",
			edit:  []string{"    initConfiguration:\n", "      etcd: {local: {dataDir: /var/lib}}\n    initConfiguration:\n"},
			fails: "/var/lib has other files",
		},
	})
}

// etcdDisk mounts a new filesystem at a folder, as in the documentation of Cluster API Provider AWS.
func etcdDisk(folder, kind string) string {
	return "diskSetup: {filesystems: [{device: /dev/nvme1n1, filesystem: " + kind + ", label: etcd_disk, overwrite: false}]}\nmounts: [[LABEL=etcd_disk, " + folder + "]]\n"
}

// The commands of a configuration are one script, which a shell can read.
func TestCommandsOfConfigurations(t *testing.T) {
	const stops = "the shell cannot read the command, and would run neither it nor the commands after it: "
	checkBootCases(t, []bootCase{
		{name: "open quote", worker: "preKubeadmCommands: ['true', 'echo \"a']\n", fails: "preKubeadmCommands[1]: " + stops + "reached EOF without closing quote"},
		{name: "open quote that another one closes", worker: "preKubeadmCommands: ['echo \"a']\npostKubeadmCommands: ['b\"']\n", fails: stops},
		{name: "no fi", plane: "postKubeadmCommands: ['if true; then echo a']\n", fails: "postKubeadmCommands[0]: " + stops},
		{name: "open bracket in a boot command", worker: "bootCommands: ['(echo a']\n", fails: "bootCommands[0]: " + stops},
		{name: "here-document without an end", worker: "preKubeadmCommands: [\"cat > /a <<EOF\\nb\"]\n", fails: stops},
		{name: "here-document at the end", worker: "postKubeadmCommands: [\"cat > /a <<EOF\\nb\"]\n"},
		{name: "statement over several commands", worker: "preKubeadmCommands: ['if true; then', echo a, fi]\n"},
		{name: "bash", worker: "preKubeadmCommands: ['[[ -f /a ]] && a=(1 2) && diff <(b) <(c)']\n"},
		{name: "expressions of jinja", worker: "preKubeadmCommands: ['hostnamectl set-hostname \"{{ ds.meta_data[\"local-hostname\"] }}\"']\n"},
		{name: "exit in a subshell", worker: "preKubeadmCommands: ['(exit 1) || true']\n"},
		{name: "exit on a condition", worker: "preKubeadmCommands: ['test -f /etc/hosts || exit 1', 'if false; then exit 1; fi']\n"},
		{name: "exec for redirections", worker: "preKubeadmCommands: ['exec > /var/log/setup.log 2>&1']\n"},
		{name: "in the background", worker: "preKubeadmCommands: ['sleep infinity &', 'tail -f /var/log/a > /dev/ttyS0 &']\n"},
		{name: "loop that ends", worker: "preKubeadmCommands: ['while true; do test -f /etc/hosts && break; sleep 1; done']\n"},
		{name: "exit after the join", worker: "postKubeadmCommands: ['exit 0']\n"},
		{
			name:   "exit",
			worker: "preKubeadmCommands: ['true', 'exit 0']\n",
			fails:  "preKubeadmCommands[1]: the machine would not join: all commands are one script, and exit ends it",
		},
		{name: "exec", worker: "preKubeadmCommands: ['exec /bin/true']\n", fails: "exec replaces its shell"},
		{name: "sleep", worker: "preKubeadmCommands: ['sleep infinity']\n", fails: "sleep never ends"},
		{name: "comment", worker: "preKubeadmCommands: ['true # don''t']\n"},
	})
}
