package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// neededPhase returns what a cluster does not have if kubeadm skips a phase; "" if it can do without. Files and commands of the manifest
// may do the same, so it is only asked of machines that have none.
func (c *checks) neededPhase(phase, command string, config *bootstrapv1.ClusterConfiguration, plane bool) string {
	of, _, _ := strings.Cut(phase, "/")
	given := []string{"certs/ca", "certs/etcd-ca", "certs/front-proxy-ca", "certs/sa", "kubeconfig/super-admin"} // the run brings these keys
	switch {
	case slices.Contains(given, phase):
	case command == "init" && of == "certs":
		return "the control plane has no certificates"
	case command == "init" && of == "kubeconfig":
		return "the components of the control plane have no kubeconfig"
	case command == "init" && of == "control-plane":
		return "the control plane is not started"
	case command == "init" && of == "etcd" && !config.Etcd.External.IsDefined():
		return "there is no etcd"
	case command == "init" && of == "upload-config" && c.nodes() > 1:
		return "machines that join do not find the configuration of the cluster"
	case command == "init" && of == "bootstrap-token" && c.nodes() > 1:
		return "machines that join have no rights"
	case of == "kubelet-start":
		return "the kubelet is not started"
	case command == "join" && plane && of == "control-plane-prepare" && phase != "control-plane-prepare/download-certs":
		return "the machine does not become a part of the control plane"
	}
	return ""
}

// checkNeededPhases refuses to skip phases of kubeadm without which there is no cluster.
func (c *checks) checkNeededPhases(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, plane bool) {
	if len(spec.PreKubeadmCommands)+len(spec.BootCommands)+len(spec.PostKubeadmCommands) > 0 ||
		slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return strings.HasPrefix(f.Path, "/etc/kubernetes/") }) {
		return
	}
	skipped := map[string][]string{"join": spec.JoinConfiguration.SkipPhases}
	if plane {
		skipped["init"] = spec.InitConfiguration.SkipPhases
	}
	for command, phases := range skipped {
		for i, phase := range phases {
			if without := c.neededPhase(phase, command, &spec.ClusterConfiguration, plane); without != "" {
				c.fail(
					o.Problem(fmt.Sprintf("%s.%sConfiguration.skipPhases[%d]", prefix, command, i), fmt.Sprintf("without the phase %s, %s", phase, without), "remove it"),
				)
			}
		}
	}
}

// checkTakenFiles refuses files where kubeadm, or the run, writes its own: InitNodeChecks and JoinNodeChecks in
// cmd/kubeadm/app/preflight/checks.go of Kubernetes. The keys of the cluster are stored, and would not be those of its machines.
func (c *checks) checkTakenFiles(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, plane bool) {
	const folder = "/etc/kubernetes/"
	join := spec.JoinConfiguration.NodeRegistration.IgnorePreflightErrors
	ignored := map[string][]string{folder + "kubelet.conf": join, folder + "bootstrap-kubelet.conf": join}
	keys := map[string]bool{}
	if plane {
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
			ignored[folder+"manifests/"+component+".yaml"] = spec.InitConfiguration.NodeRegistration.IgnorePreflightErrors
		}
		for _, name := range strings.Fields("ca.crt ca.key etcd/ca.crt etcd/ca.key front-proxy-ca.crt front-proxy-ca.key sa.pub sa.key") {
			keys[path.Join(boot.CertificatesDir(&spec.ClusterConfiguration), name)] = true
		}
	} else {
		ca := spec.JoinConfiguration.CACertPath
		if ca == "" {
			ca = folder + "pki/ca.crt"
		}
		ignored[ca] = join
	}
	for i, f := range spec.Files {
		file := path.Clean(f.Path)
		check := "FileAvailable-" + strings.ReplaceAll(file, "/", "-")
		skips, taken := ignored[file]
		switch at := fmt.Sprintf("%s.files[%d].path", prefix, i); {
		case keys[file]:
			c.fail(
				o.Problem(at, fmt.Sprintf("%s is a key of the cluster, which the run writes", file), fmt.Sprintf("remove it, or bring a Secret %s-ca", c.cluster.Name)),
			)
		case taken && !slices.Contains(skips, check) && !slices.Contains(skips, "all"):
			c.fail(o.Problem(at, fmt.Sprintf("kubeadm writes %s, and refuses a machine that has it", file), "remove it"))
		}
	}
}
