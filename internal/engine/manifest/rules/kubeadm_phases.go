package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// needed is a phase of a kubeadm command that must not be skipped. without says what a machine or the cluster lacks if it is.
type needed struct{ command, phase, without string }

// neededPhases returns the phases without which a machine does not become a part of the cluster.
func (c *checks) neededPhases(config *bootstrapv1.ClusterConfiguration, plane bool, v kubernetesVersion) []needed {
	all := []needed{{"join", "kubelet-start", "the kubelet is not started"}}
	if !plane {
		return all
	}
	all = append(all,
		needed{"init", "kubelet-start", "the kubelet is not started"},
		needed{"init", "certs", "the control plane has no certificates"},
		needed{"init", "kubeconfig", "the components of the control plane have no kubeconfig"},
		needed{"init", "control-plane", "the control plane is not started"},
		needed{"join", "control-plane-prepare", "the machine does not become a part of the control plane"},
	)
	if !config.Etcd.External.IsDefined() {
		all = append(all, needed{"init", "etcd", "there is no etcd"})
		const localModeSince = 31 // etcd joins after the kubelet has started, in a phase of its own, where ControlPlaneKubeletLocalMode is on
		if v.minor >= localModeSince {
			all = append(all, needed{"join", "etcd-join", "there is no etcd on the machine"})
		} else if v.minor > 0 {
			all = append(all, needed{"join", "control-plane-join", "there is no etcd on the machine"})
		}
	}
	if c.nodes() > 1 {
		all = append(all,
			needed{"init", "upload-config", "machines that join do not find the configuration of the cluster"},
			needed{"init", "bootstrap-token", "machines that join have no rights"},
		)
	}
	return all
}

// dispensable returns parts of needed phases that a cluster can do without: the run brings the keys of authorities, and nobody downloads
// certificates.
func dispensable() []string {
	return strings.Fields(
		"certs/ca certs/etcd-ca certs/front-proxy-ca certs/sa kubeconfig/super-admin control-plane-prepare/download-certs control-plane-join/update-status control-plane-join/mark-control-plane",
	)
}

// checkNeededPhases refuses to skip phases of kubeadm without which there is no cluster. Files and commands of the manifest may do the same
// as a phase, so machines that have some are not checked.
func (c *checks) checkNeededPhases(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, plane bool, v kubernetesVersion) {
	if len(spec.PreKubeadmCommands)+len(spec.BootCommands)+len(spec.PostKubeadmCommands) > 0 ||
		slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return strings.HasPrefix(f.Path, "/etc/kubernetes/") }) {
		return
	}
	skipped := map[string][]string{"init": spec.InitConfiguration.SkipPhases, "join": spec.JoinConfiguration.SkipPhases}
	for _, n := range c.neededPhases(&spec.ClusterConfiguration, plane, v) {
		for i, phase := range skipped[n.command] {
			if of, _, _ := strings.Cut(phase, "/"); of == n.phase && !slices.Contains(dispensable(), phase) {
				at := fmt.Sprintf("%s.%sConfiguration.skipPhases[%d]", prefix, n.command, i)
				c.fail(o.Problem(at, fmt.Sprintf("without the phase %s, %s", phase, n.without), "remove it"))
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
	keys := map[string]string{} // the suffix of the name of the Secret that brings a key
	if plane {
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
			ignored[folder+"manifests/"+component+".yaml"] = spec.InitConfiguration.NodeRegistration.IgnorePreflightErrors
		}
		for pair, secret := range map[string]string{
			"ca.crt ca.key": "ca", "etcd/ca.crt etcd/ca.key": "etcd", "front-proxy-ca.crt front-proxy-ca.key": "proxy", "sa.pub sa.key": "sa",
		} {
			for _, name := range strings.Fields(pair) {
				keys[path.Join(boot.CertificatesDir(&spec.ClusterConfiguration), name)] = secret
			}
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
		case keys[file] != "":
			c.fail(o.Problem(at, fmt.Sprintf("%s is a key of the cluster, which the run writes", file),
				fmt.Sprintf("remove it, or bring a Secret %s-%s", c.cluster.Name, keys[file])))
		case taken && !slices.Contains(skips, check) && !slices.Contains(skips, "all"):
			c.fail(o.Problem(at, fmt.Sprintf("kubeadm writes %s, and refuses a machine that has it", file), "remove it"))
		}
	}
}

// checkMadeFiles refuses certificates and kubeconfigs in the place of those that kubeadm makes and that it cannot use: it does not replace a file
// that is there (writeCertificateFilesIfNotExist in cmd/kubeadm/app/phases/certs/certs.go, validateKubeConfig in
// cmd/kubeadm/app/phases/kubeconfig/kubeconfig.go of Kubernetes v1.34.2). Machines whose phases are skipped are not checked.
func (c *checks) checkMadeFiles(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	if len(spec.InitConfiguration.SkipPhases)+len(spec.JoinConfiguration.SkipPhases) > 0 {
		return
	}
	commands := fmt.Sprint(spec.PreKubeadmCommands, spec.BootCommands)
	for i, f := range spec.Files {
		if file, at := path.Clean(f.Path), fmt.Sprintf("%s.files[%d].path", prefix, i); slices.Contains(madeKubeconfigs(), file) {
			if f.Content != "" && f.Encoding == "" && !strings.Contains(f.Content, "{{") && !strings.Contains(commands, path.Base(file)) {
				c.checkMadeKubeconfig(o, at, file, f.Content)
			}
		} else {
			c.checkMadeCertificate(o, at, file, spec, commands)
		}
	}
}

// checkMadeCertificate refuses a certificate of kubeadm, or its key, without the other one, or if the run makes the CA that has to have signed it.
func (c *checks) checkMadeCertificate(o *manifest.Entry, at, file string, spec *bootstrapv1.KubeadmConfigSpec, commands string) {
	folder := boot.CertificatesDir(&spec.ClusterConfiguration)
	kind := path.Ext(file)
	name, beside := strings.TrimSuffix(file, kind), map[string]string{".crt": ".key", ".key": ".crt"}[kind]
	if rest, inside := strings.CutPrefix(name, folder+"/"); !inside || beside == "" || !slices.Contains(madeCertificates(&spec.ClusterConfiguration), rest) {
		return
	}
	has := slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return path.Clean(f.Path) == name+beside })
	switch other := path.Base(name) + beside; {
	case !has && !strings.Contains(commands, other):
		c.fail(o.Problem(
			at, fmt.Sprintf("kubeadm makes %s and %s, and neither if one of them is there", file, other), "remove it, or add the other one",
		))
	case has && kind == ".crt" && c.ownsKeys(file, spec):
		c.fail(o.Problem(
			at, fmt.Sprintf("kubeadm refuses %s: the CA that the run makes has not signed it", file), "remove it, and the key: kubeadm makes them",
		))
	}
}

// ownsKeys reports whether the run makes the CA that signs a certificate of kubeadm.
func (c *checks) ownsKeys(file string, spec *bootstrapv1.KubeadmConfigSpec) bool {
	suffix := "ca"
	switch rest := strings.TrimPrefix(file, boot.CertificatesDir(&spec.ClusterConfiguration)+"/"); {
	case strings.HasPrefix(rest, "etcd/"), strings.Contains(rest, "etcd-client"):
		suffix = "etcd"
	case strings.HasPrefix(rest, "front-proxy"):
		suffix = "proxy"
	}
	_, own := c.keysIn(suffix)
	return own == nil
}

// madeCertificates are the certificates that kubeadm makes with the CAs, by their path below the folder of certificates.
func madeCertificates(config *bootstrapv1.ClusterConfiguration) []string {
	all := []string{"apiserver", "apiserver-kubelet-client", "front-proxy-client"}
	if !config.Etcd.External.IsDefined() {
		all = append(all, "apiserver-etcd-client", "etcd/server", "etcd/peer", "etcd/healthcheck-client")
	}
	return all
}

// madeKubeconfigs are the kubeconfigs that kubeadm makes on a machine of the control plane.
func madeKubeconfigs() []string {
	const folder = "/etc/kubernetes/"
	return []string{folder + "admin.conf", folder + "super-admin.conf", folder + "controller-manager.conf", folder + "scheduler.conf"}
}

// checkMadeKubeconfig checks a kubeconfig in the place of one of kubeadm: kubeadm compares its CA with that of the cluster.
func (c *checks) checkMadeKubeconfig(o *manifest.Entry, at, file, content string) {
	_, ca := c.keysIn("ca")
	given, err := clientcmd.Load([]byte(content))
	fix := "remove it: kubeadm makes it"
	if err != nil {
		c.fail(o.Problem(at, fmt.Sprintf("kubeadm refuses %s: it is no kubeconfig: %v", file, err), fix))
		return
	}
	used := given.Contexts[given.CurrentContext]
	if used == nil || given.Clusters[used.Cluster] == nil {
		c.fail(o.Problem(at, fmt.Sprintf("kubeadm refuses %s: it is no kubeconfig with a current context and its cluster", file), fix))
		return
	}
	if of := given.Clusters[used.Cluster]; ca == nil && of.CertificateAuthority == "" {
		c.fail(o.Problem(at, fmt.Sprintf("kubeadm refuses %s: it has not the CA of the cluster, which the run makes", file), fix))
	}
}
