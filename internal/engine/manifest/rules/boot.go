package rules

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/configfile"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkBoot checks the settings that cloud-init or Ignition applies before kubeadm starts: files, users and file systems.
func (c *checks) checkBoot(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	for i := range spec.Files {
		c.checkFile(o, fmt.Sprintf("%s.files[%d]", prefix, i), &spec.Files[i])
	}
	for i, u := range spec.Users {
		at := fmt.Sprintf("%s.users[%d]", prefix, i)
		if !regex.Of(`^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,31}\$?$`).MatchString(u.Name) { // useradd(8); Debian permits less
			c.fail(o.Problem(at+".name", fmt.Sprintf("%q is not the name of a user of Linux", u.Name), "use small letters, digits, - and _"))
		}
		for n, key := range u.SSHAuthorizedKeys {
			if !regex.Of(`(^|\s)(ssh-|ecdsa-|sk-)\S+\s+[A-Za-z0-9+/=]+`).MatchString(key) { // sshd(8), AUTHORIZED_KEYS FILE FORMAT
				c.warn(o.Problem(fmt.Sprintf("%s.sshAuthorizedKeys[%d]", at, n), "is not a public key of SSH", `write one as in "ssh-ed25519 AAAA… name"`))
			}
		}
	}
	for i, f := range spec.DiskSetup.Filesystems {
		c.checkFilesystem(o, fmt.Sprintf("%s.diskSetup.filesystems[%d]", prefix, i), f)
	}
}

// checkFile checks a file as cloud-init writes it (cloudinit/config/cc_write_files.py).
func (c *checks) checkFile(o *manifest.Entry, at string, f *bootstrapv1.File) {
	if f.Owner != "" && !regex.Of(`^[^\s:]+(:[^\s:]+)?$`).MatchString(f.Owner) {
		c.fail(o.Problem(at+".owner", fmt.Sprintf("%q is not a user and a group", f.Owner), `write it as in "root:root"`))
	}
	if f.Encoding == "" || f.Content == "" {
		return
	}
	_, err := decodedContent([]byte(f.Content), f.Encoding)
	if _, is := errors.AsType[base64.CorruptInputError](err); is {
		c.fail(o.Problem(at+".content", "is not base64, which encoding says", "encode it, or remove encoding"))
	} else if err != nil {
		c.fail(o.Problem(at+".content", "is not compressed by gzip, which encoding says", "compress it, or change encoding"))
	}
}

// largestFile is more than the user data of a machine can hold.
const largestFile = 16 << 20

// checkFilesystem checks a filesystem as cloud-init makes it, with mkfs (cloudinit/config/cc_disk_setup.py).
func (c *checks) checkFilesystem(o *manifest.Entry, at string, f bootstrapv1.Filesystem) {
	most, known := map[string]int{"ext2": 16, "ext3": 16, "ext4": 16, "xfs": 12, "btrfs": 255, "vfat": 11, "swap": 15}[f.Filesystem]
	switch {
	case !known:
		c.warn(o.Problem(at+".filesystem", fmt.Sprintf("images of Cluster API have no mkfs.%s", f.Filesystem), "use ext4 or xfs"))
	case len(f.Label) > most:
		c.fail(o.Problem(at+".label", fmt.Sprintf("%q has %d characters: %s permits %d", f.Label, len(f.Label), f.Filesystem, most), "shorten it"))
	}
}

// checkPhases checks the phases and preflight checks that kubeadm skips, its folder with patches, and its bootstrap tokens.
func (c *checks) checkPhases(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, v kubernetesVersion) {
	folders := map[string]bool{}
	for _, config := range []struct {
		path    string
		ignored []string
		phases  []string
		known   []string
		patches bootstrapv1.Patches
	}{
		{
			".initConfiguration", spec.InitConfiguration.NodeRegistration.IgnorePreflightErrors, spec.InitConfiguration.SkipPhases, initPhases(),
			spec.InitConfiguration.Patches,
		},
		{
			".joinConfiguration", spec.JoinConfiguration.NodeRegistration.IgnorePreflightErrors, spec.JoinConfiguration.SkipPhases, joinPhases(),
			spec.JoinConfiguration.Patches,
		},
	} {
		if slices.Contains(config.ignored, "all") && len(config.ignored) > 1 { // ValidateIgnorePreflightErrors
			c.fail(
				o.Problem(prefix+config.path+".nodeRegistration.ignorePreflightErrors", `kubeadm accepts no other checks beside "all"`, `remove "all", or the others`),
			)
		}
		for i, phase := range config.phases {
			if !slices.Contains(config.known, phase) {
				c.fail(
					o.Problem(
						fmt.Sprintf("%s%s.skipPhases[%d]", prefix, config.path, i),
						fmt.Sprintf("kubeadm has no phase %s", phase),
						"use one of: "+strings.Join(config.known, ", "),
					),
				)
			}
		}
		if dir := config.patches.Directory; dir != "" {
			c.checkWritten(o, prefix+config.path+".patches.directory", dir, spec, "kubeadm fails")
			if !folders[dir] {
				c.checkPatches(o, prefix, dir, spec, v)
			}
			folders[dir] = true
		}
	}
	c.checkTokens(o, prefix+".initConfiguration.bootstrapTokens", spec.InitConfiguration.BootstrapTokens)
}

// checkTokens checks bootstrap tokens (ValidateBootstrapTokens in cmd/kubeadm/app/apis/kubeadm/validation).
func (c *checks) checkTokens(o *manifest.Entry, path string, tokens []bootstrapv1.BootstrapToken) {
	group := regex.Of(`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`) // k8s.io/cluster-bootstrap/token/api
	for i, t := range tokens {
		at := fmt.Sprintf("%s[%d]", path, i)
		if t.TTLSeconds != nil && !t.Expires.IsZero() {
			c.fail(o.Problem(at, "kubeadm accepts ttlSeconds or expires, not both", "remove one of them"))
		}
		for n, g := range t.Groups {
			if !group.MatchString(g) {
				c.fail(
					o.Problem(
						fmt.Sprintf("%s.groups[%d]", at, n),
						fmt.Sprintf("%q is not a group of bootstrap tokens", g),
						"write one that begins with system:bootstrappers:, as in system:bootstrappers:kubeadm:default-node-token",
					),
				)
			}
		}
		if len(t.Groups) > 0 && len(t.Usages) > 0 && !slices.Contains(t.Usages, "authentication") {
			c.fail(o.Problem(at+".groups", "only a token for authentication has groups", "remove them, or add the usage authentication"))
		}
		for n, usage := range t.Usages { // ValidateUsages in cmd/kubeadm/app/apis/kubeadm/validation
			if usage != "signing" && usage != "authentication" {
				c.fail(
					o.Problem(
						fmt.Sprintf("%s.usages[%d]", at, n),
						fmt.Sprintf("%q is not a usage of a token", usage),
						"use signing and authentication",
					),
				)
			}
		}
	}
}

// initPhases are the phases of "kubeadm init" (cmd/kubeadm/app/cmd/phases/init).
func initPhases() []string {
	return strings.Fields(`preflight certs certs/all certs/ca certs/apiserver certs/apiserver-kubelet-client certs/front-proxy-ca certs/front-proxy-client
		certs/etcd-ca certs/etcd-server certs/etcd-peer certs/etcd-healthcheck-client certs/apiserver-etcd-client certs/sa
		kubeconfig kubeconfig/all kubeconfig/admin kubeconfig/super-admin kubeconfig/kubelet kubeconfig/controller-manager kubeconfig/scheduler
		etcd etcd/local control-plane control-plane/all control-plane/apiserver control-plane/controller-manager control-plane/scheduler
		kubelet-start wait-control-plane upload-config upload-config/all upload-config/kubeadm upload-config/kubelet upload-certs
		mark-control-plane bootstrap-token kubelet-finalize kubelet-finalize/all kubelet-finalize/experimental-cert-rotation
		kubelet-finalize/enable-client-cert-rotation addon addon/all addon/coredns addon/kube-proxy show-join-command`)
}

// joinPhases are the phases of "kubeadm join" (cmd/kubeadm/app/cmd/phases/join).
func joinPhases() []string {
	return strings.Fields(`preflight control-plane-prepare control-plane-prepare/all control-plane-prepare/download-certs control-plane-prepare/certs
		control-plane-prepare/kubeconfig control-plane-prepare/control-plane kubelet-start etcd-join kubelet-wait-bootstrap check-etcd
		control-plane-join control-plane-join/all control-plane-join/etcd control-plane-join/update-status control-plane-join/mark-control-plane
		wait-control-plane`)
}

// checkKubeletFiles warns of files that a kubelet reads when it starts and that nothing creates. kubeadm creates those in /etc/kubernetes
// and /var/lib/kubelet.
func (c *checks) checkKubeletFiles(
	o *manifest.Entry, prefix, of string, args []bootstrapv1.Arg, spec *bootstrapv1.KubeadmConfigSpec, v kubernetesVersion,
) {
	at := prefix + of
	for i, a := range args {
		reads := slices.Contains(strings.Fields("config tls-cert-file tls-private-key-file client-ca-file image-credential-provider-config"), a.Name)
		value := manifest.Deref(a.Value)
		if a.Name == "resolv-conf" && path.IsAbs(value) && !slices.Contains(resolverFiles(), path.Clean(value)) {
			c.checkWritten(o, argumentPath(o, at, i, a.Name), value, spec, "no pod of the machine starts")
		}
		if a.Name == "client-ca-file" && path.IsAbs(value) && !isFilledIn(value) {
			c.checkClientCA(o, argumentPath(o, at, i, a.Name), value, spec)
		} else if reads && path.IsAbs(value) && !strings.HasPrefix(value, "/etc/kubernetes/") && !strings.HasPrefix(value, "/var/lib/kubelet/") {
			c.checkWritten(o, argumentPath(o, at, i, a.Name), value, spec, "the kubelet does not start")
		}
		if reads {
			c.checkConfigFile(
				o,
				prefix,
				spec,
				configfile.File{Component: components.Kubelet, Argument: a.Name, Minor: v.minor},
				value,
				func(file string) string { return file },
			)
		}
	}
}

// resolverFiles are the files with DNS servers that images of Linux have: that of the C library, and those that systemd-resolved(8) and
// NetworkManager(8) write.
func resolverFiles() []string {
	return []string{
		"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", "/run/NetworkManager/resolv.conf",
		"/run/NetworkManager/no-stub-resolv.conf",
	}
}

// checkWritten warns of a file or folder that nothing in a manifest writes: then only the image can have it.
func (c *checks) checkWritten(o *manifest.Entry, at, name string, spec *bootstrapv1.KubeadmConfigSpec, otherwise string) {
	name = path.Clean(name)
	written := slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool {
		return path.Clean(f.Path) == name || strings.HasPrefix(path.Clean(f.Path), name+"/")
	})
	if !written && len(spec.PreKubeadmCommands) == 0 && len(spec.BootCommands) == 0 && len(spec.Mounts) == 0 {
		c.warn(o.Problem(at, fmt.Sprintf("%s: nothing in the manifest writes it", name), otherwise+" unless the image has it: add it to files"))
	}
}

// checkMountedFiles checks the files that arguments of the control plane name, and what is in them. A component runs in a container, which has
// only the folders that kubeadm mounts (cmd/kubeadm/app/phases/controlplane/volumes.go) and extraVolumes.
func (c *checks) checkMountedFiles(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, v kubernetesVersion) {
	config := &spec.ClusterConfiguration
	keys := boot.CertificatesDir(config)
	common := []string{
		"/etc/ssl/certs",
		"/etc/pki/ca-trust",
		"/etc/pki/tls/certs",
		"/etc/ca-certificates",
		"/usr/share/ca-certificates",
		"/usr/local/share/ca-certificates",
	}
	for _, x := range []struct {
		component, field string
		args             []bootstrapv1.Arg
		volumes          []bootstrapv1.HostPathMount
		mounts           []string
	}{
		{components.APIServer, ".apiServer", config.APIServer.ExtraArgs, config.APIServer.ExtraVolumes, append([]string{keys}, common...)},
		{
			components.ControllerManager, ".controllerManager", config.ControllerManager.ExtraArgs, config.ControllerManager.ExtraVolumes,
			append([]string{keys, "/etc/kubernetes/controller-manager.conf", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec"}, common...),
		},
		{components.Scheduler, ".scheduler", config.Scheduler.ExtraArgs, config.Scheduler.ExtraVolumes, []string{"/etc/kubernetes/scheduler.conf"}},
	} {
		for i, a := range x.args {
			unknown := components.Flag(x.component, a.Name) == "" // reported as such
			if a.Value == nil || unknown || !path.IsAbs(*a.Value) || !readsFile(a.Name) || strings.ContainsAny(*a.Value, "${}") {
				continue
			}
			file, at := path.Clean(*a.Value), argumentPath(o, prefix+".clusterConfiguration"+x.field+".extraArgs", i, a.Name)
			onHost, mounted := hostPath(file, x.volumes)
			switch {
			case mounted:
				c.checkWritten(o, at, onHost, spec, x.component+" does not start")
			case slices.ContainsFunc(x.mounts, func(m string) bool { return isInside(file, m) }):
			default:
				c.fail(
					o.Problem(
						at,
						fmt.Sprintf("%s does not start: its container does not have the file %s", x.component, file),
						fmt.Sprintf("mount it with clusterConfiguration%s.extraVolumes, and add it to files", x.field),
					),
				)
				continue
			}
			if a.Name == "audit-webhook-config-file" && boot.Argument(x.args, "audit-policy-file") == "" {
				continue // without a policy, there is no audit
			}
			read := configfile.File{
				Component: x.component, Argument: a.Name, Minor: v.minor,
				Gates: boot.Argument(x.args, "feature-gates"), OtherImage: hasOtherImage(spec, x.component),
			}
			c.checkConfigFile(o, prefix, spec, read, file, func(file string) string {
				onHost, _ := hostPath(file, x.volumes)
				return onHost
			})
		}
	}
}

// hasOtherImage reports whether a component may run from another image than the one that Kubernetes publishes: the manifest names another image
// repository, or may patch the component's pod.
func hasOtherImage(spec *bootstrapv1.KubeadmConfigSpec, component string) bool {
	folders := []string{path.Clean(spec.InitConfiguration.Patches.Directory), path.Clean(spec.JoinConfiguration.Patches.Directory)}
	return spec.ClusterConfiguration.ImageRepository != "" || slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool {
		name := path.Clean(f.Path)
		return strings.HasPrefix(path.Base(name), component) && slices.Contains(folders, path.Dir(name))
	})
}

// hostPath returns the path on the machine of a file in a container, and whether one of the volumes contains the file. A file that no volume
// contains has the same path on the machine.
func hostPath(file string, volumes []bootstrapv1.HostPathMount) (onHost string, mounted bool) {
	for _, v := range volumes {
		if isInside(file, v.MountPath) {
			return path.Join(v.HostPath, strings.TrimPrefix(file, path.Clean(v.MountPath))), true
		}
	}
	return file, false
}

// readsFile reports whether a component reads the file that an argument names.
func readsFile(argument string) bool {
	others := strings.Fields("config etcd-cafile etcd-certfile etcd-keyfile kubelet-certificate-authority kubelet-client-certificate kubelet-client-key")
	return slices.Contains(others, argument) || strings.HasSuffix(argument, "-file") || strings.HasSuffix(argument, "-config") ||
		strings.HasSuffix(argument, "kubeconfig")
}

// isInside reports whether a file is a mounted one, or in a mounted folder.
func isInside(file, mount string) bool {
	mount = path.Clean(mount)
	return file == mount || strings.HasPrefix(file, strings.TrimSuffix(mount, "/")+"/")
}
