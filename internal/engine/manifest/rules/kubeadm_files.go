package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// kubeadmFile says which of kubeadm's files an argument must name, and what fails if it names another of them (getAPIServerCommand and
// getControllerManagerCommand in cmd/kubeadm/app/phases/controlplane/manifests.go, cmd/kubeadm/app/constants of Kubernetes).
type kubeadmFile struct {
	component, argument string
	right               string // names that the argument may have, below the folder of certificates
	otherwise           string
	warns               bool // the cluster comes up with another one
}

func kubeadmFiles() []kubeadmFile {
	const (
		api, controllers = components.APIServer, components.ControllerManager
		etcd             = "the API server does not reach etcd"
		tls              = "no client trusts the API server"
		pods             = "the API server does not accept the tokens of pods"
		proxy            = "API services outside of the API server do not work"
		kubelets         = "kubectl logs and exec do not work"
	)
	return []kubeadmFile{
		{api, "client-ca-file", "ca.crt", "the API server does not accept the certificates of its clients", false},
		{api, "etcd-cafile", "etcd/ca.crt", etcd, false},
		{api, "etcd-certfile", "apiserver-etcd-client.crt", etcd, false},
		{api, "etcd-keyfile", "apiserver-etcd-client.key", etcd, false},
		{api, "tls-cert-file", "apiserver.crt", tls, false},
		{api, "tls-private-key-file", "apiserver.key", tls, false},
		{api, "service-account-key-file", "sa.pub sa.key", pods, false},
		{api, "service-account-signing-key-file", "sa.key", pods, false},
		{api, "kubelet-client-certificate", "apiserver-kubelet-client.crt", kubelets, true},
		{api, "kubelet-client-key", "apiserver-kubelet-client.key", kubelets, true},
		{api, "proxy-client-cert-file", "front-proxy-client.crt", proxy, true},
		{api, "proxy-client-key-file", "front-proxy-client.key", proxy, true},
		{api, "requestheader-client-ca-file", "front-proxy-ca.crt", proxy, true},
		{controllers, "root-ca-file", "ca.crt", "no pod trusts the API server", false},
		{controllers, "cluster-signing-cert-file", "ca.crt", "the API server does not accept the kubelets that join", false},
		{controllers, "cluster-signing-key-file", "ca.key", "the API server does not accept the kubelets that join", false},
		{controllers, "service-account-private-key-file", "sa.key", "the API server does not accept the tokens in Secrets of service accounts", true},
		{controllers, "client-ca-file", "ca.crt", "nobody reads the metrics of the kube-controller-manager", true},
		{controllers, "requestheader-client-ca-file", "front-proxy-ca.crt", "nobody reads the metrics of the kube-controller-manager", true},
	}
}

// filesOfKubeadm lists the files that kubeadm writes to certificatesDir (cmd/kubeadm/app/constants).
func filesOfKubeadm() []string {
	all := []string{"sa.key", "sa.pub"}
	for pair := range strings.FieldsSeq(`ca apiserver apiserver-kubelet-client apiserver-etcd-client front-proxy-ca front-proxy-client etcd/ca etcd/server
		etcd/peer etcd/healthcheck-client`) {
		all = append(all, pair+".crt", pair+".key")
	}
	return all
}

// checkKubeadmFiles refuses arguments that name the wrong one of kubeadm's files. A file that the manifest itself writes is accepted, also in
// certificatesDir.
func (c *checks) checkKubeadmFiles(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	config := &spec.ClusterConfiguration
	folder := boot.CertificatesDir(config)
	for _, x := range []struct {
		component, field string
		args             []bootstrapv1.Arg
		volumes          []bootstrapv1.HostPathMount
	}{
		{components.APIServer, ".apiServer.extraArgs", config.APIServer.ExtraArgs, config.APIServer.ExtraVolumes},
		{components.ControllerManager, ".controllerManager.extraArgs", config.ControllerManager.ExtraArgs, config.ControllerManager.ExtraVolumes},
	} {
		for i, a := range x.args {
			name, is := strings.CutPrefix(path.Clean(manifest.Deref(a.Value)), path.Clean(folder)+"/")
			at := slices.IndexFunc(kubeadmFiles(), func(f kubeadmFile) bool { return f.component == x.component && f.argument == a.Name })
			_, mounted := hostPath(path.Join(folder, name), x.volumes)
			if !is || at < 0 || mounted || strings.HasPrefix(a.Name, "etcd-") && config.Etcd.External.IsDefined() {
				continue
			}
			c.checkKubeadmFile(o, argumentPath(o, prefix+".clusterConfiguration"+x.field, i, a.Name), kubeadmFiles()[at], name, folder, x.args, spec)
		}
	}
}

func (c *checks) checkKubeadmFile(
	o *manifest.Entry, at string, f kubeadmFile, name, folder string, args []bootstrapv1.Arg, spec *bootstrapv1.KubeadmConfigSpec,
) {
	right, file := strings.Fields(f.right), path.Join(folder, name)
	wrong := o.Problem(at, fmt.Sprintf("%s with %s, which is for another purpose", f.otherwise, file), fmt.Sprintf("use %s/%s, or remove it", folder, right[0]))
	switch {
	case slices.Contains(right, name) || isOverwritten(spec, file):
	case !slices.Contains(filesOfKubeadm(), name):
		c.checkWritten(o, at, file, spec, f.component+" does not start")
	case f.component == components.APIServer && strings.HasPrefix(f.argument, "service-account-") && keysAgree(args, folder):
	case f.warns && (path.Ext(name) == path.Ext(right[0])), strings.HasPrefix(f.argument, "cluster-signing-") && c.nodes() <= 1:
		c.warn(wrong)
	default:
		c.failFirst(wrong)
	}
}

// isOverwritten reports whether the manifest itself writes a file, or runs commands that mention it.
func isOverwritten(spec *bootstrapv1.KubeadmConfigSpec, file string) bool {
	mentions := func(command string) bool { return strings.Contains(command, path.Base(file)) }
	return slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return path.Clean(f.Path) == file }) ||
		slices.ContainsFunc(slices.Concat(spec.BootCommands, spec.PreKubeadmCommands), mentions)
}

// keysAgree reports whether the API server verifies tokens with the key that it signs them with. It may have several keys for verification,
// because the argument can be repeated.
func keysAgree(args []bootstrapv1.Arg, folder string) bool {
	stems := func(name, usual string) (all []string) {
		for _, a := range args {
			if a.Name == name {
				file := strings.TrimPrefix(path.Clean(manifest.Deref(a.Value)), path.Clean(folder)+"/")
				all = append(all, strings.TrimSuffix(file, path.Ext(file)))
			}
		}
		if len(all) == 0 {
			return []string{usual}
		}
		return all
	}
	signs, checks := stems("service-account-signing-key-file", "sa"), stems("service-account-key-file", "sa")
	return slices.ContainsFunc(signs, func(stem string) bool { return slices.Contains(checks, stem) })
}
