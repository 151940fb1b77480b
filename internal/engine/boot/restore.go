package boot

import (
	_ "embed"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// Restore is a snapshot of etcd with which the first machine of a control plane begins.
type Restore struct {
	URL      string // of the database, compressed and encrypted; a secret
	SHA256   string // of the database, in hexadecimal
	Password string // that the database is encrypted with
}

// String hides the secrets.
func (r Restore) String() string { return "snapshot " + r.SHA256 }

// The script that puts the snapshot where etcd looks for its data, and the password of the
// snapshot. /run does not exist yet when Ignition writes files, and /usr is read-only on Flatcar.
const (
	restoreScriptPath   = "/etc/kubernetes/clusterawsadm-restore-etcd.sh"
	restorePasswordPath = "/etc/kubernetes/clusterawsadm-restore-etcd.password" //nolint:gosec // a path
)

// restoreScript must not contain jinja expressions.
//
//go:embed restore-etcd.sh
var restoreScript string

// files returns the files for the restore.
func (r *Restore) files() []bootstrapv1.File {
	script := "#!/bin/bash\n"
	for _, s := range []struct{ name, value string }{{"URL", r.URL}, {"SHA256", r.SHA256}, {"PASSWORD", restorePasswordPath}} {
		script += s.name + "=" + shellQuote(s.value) + "\n"
	}
	return []bootstrapv1.File{
		{Path: restoreScriptPath, Owner: "root:root", Permissions: "0700", Content: script + restoreScript},
		{Path: restorePasswordPath, Owner: "root:root", Permissions: "0600", Content: r.Password + "\n"},
	}
}

// permit makes kubeadm init accept that etcd has data.
func (r *Restore) permit(spec *bootstrapv1.KubeadmConfigSpec) {
	check := "DirAvailable-" + strings.ReplaceAll(EtcdDataDir(&spec.ClusterConfiguration), "/", "-") // kubeadm, preflight/checks.go
	node := &spec.InitConfiguration.NodeRegistration
	if !slices.Contains(node.IgnorePreflightErrors, "all") {
		node.IgnorePreflightErrors = append(slices.Clone(node.IgnorePreflightErrors), check)
	}
}
