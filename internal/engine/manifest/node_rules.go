package manifest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
)

// kubernetesVersion is the version of the components of a machine.
type kubernetesVersion struct {
	text  string // "v1.34.2"
	minor uint64 // 0 if it is not known
}

// versionOf returns the version of a machine, which is that of the cluster if it has none.
func (l *loader) versionOf(given string) kubernetesVersion {
	if given == "" {
		given = l.cluster.Version
	}
	v, err := semver.ParseTolerant(given)
	if err != nil || v.Major != 1 {
		return kubernetesVersion{text: given}
	}
	return kubernetesVersion{given, v.Minor}
}

// checkNodes checks the bootstrap configurations of all machines.
func (l *loader) checkNodes() {
	if plane := l.cluster.ControlPlane; plane != nil {
		o, spec := l.lookup(kindControlPlane, plane.Object.Name), &plane.Object.Spec.KubeadmConfigSpec
		l.checkConfig(o, "spec.kubeadmConfigSpec", spec, l.versionOf(plane.Object.Spec.Version), true)
		l.checkNodeNames(o, "spec.kubeadmConfigSpec", spec, "every machine of a control plane is replaced by one that runs beside it")
	}
	for _, m := range l.cluster.Machines {
		v := l.versionOf(m.Object.Spec.Version)
		if m.Bootstrap != nil {
			l.checkConfig(l.lookup(kindConfig, m.Bootstrap.Name), "spec", &m.Bootstrap.Spec, v, m.ControlPlane)
		}
		l.checkEKSConfig(Bootstrap{EKS: m.EKSBootstrap, Nodeadm: m.NodeadmBootstrap}, v)
	}
	for _, d := range l.cluster.Deployments {
		l.checkDeploymentNodes(d)
	}
	for _, p := range l.cluster.Pools {
		v := l.versionOf(p.Object.Spec.Template.Spec.Version)
		if c := p.Bootstrap.Kubeadm; c != nil {
			o := l.lookup(kindConfig, c.Name)
			l.checkConfig(o, "spec", &c.Spec, v, false)
			l.checkNodeNames(o, "spec", &c.Spec, "a pool has several machines")
		}
		l.checkEKSConfig(p.Bootstrap, v)
	}
}

func (l *loader) checkDeploymentNodes(d Deployment) {
	v := l.versionOf(d.Object.Spec.Template.Spec.Version)
	if c := d.Bootstrap; c != nil {
		o := l.lookup(kindConfigTemplate, c.Name)
		l.checkConfig(o, "spec.template.spec", &c.Spec.Template.Spec, v, false)
		if d.Replicas() > 1 || surges(d.Object) {
			l.checkNodeNames(o, "spec.template.spec", &c.Spec.Template.Spec, "the MachineDeployment has several machines, or one that is replaced by another beside it")
		}
	}
	if c := d.EKSBootstrap; c != nil {
		l.checkKubeletMap(l.lookup(kindEKSConfigTemplate, c.Name), "spec.template.spec", c.Spec.Template.Spec.KubeletExtraArgs, v)
		l.checkModes(l.lookup(kindEKSConfigTemplate, c.Name), "spec.template.spec", c.Spec.Template.Spec.Files)
	}
	if c := d.NodeadmBootstrap; c != nil {
		o := l.lookup(kindNodeadmTemplate, c.Name)
		l.checkNodeadm(o, "spec.template.spec", &c.Spec.Template.Spec, v)
	}
}

// surges reports whether a MachineDeployment may have one machine more than its replicas.
func surges(d *clusterv1.MachineDeployment) bool {
	s := d.Spec.Rollout.Strategy
	if s.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		return false
	}
	return s.RollingUpdate.MaxSurge == nil || *s.RollingUpdate.MaxSurge != intstr.FromInt32(0)
}

// checkConfig checks the configuration of machines that kubeadm starts.
func (l *loader) checkConfig(o *object, prefix string, spec *bootstrapv1.KubeadmConfigSpec, v kubernetesVersion, plane bool) {
	if o == nil {
		return
	}
	l.checkKubeadm(o, prefix, spec, v, plane)
	l.checkBoot(o, prefix, spec)
	l.checkPhases(o, prefix, spec)
	if plane {
		l.checkMountedFiles(o, prefix, spec)
	}
	for i, f := range spec.Files {
		l.checkMode(o, fmt.Sprintf("%s.files[%d].permissions", prefix, i), f.Permissions)
	}
}

// checkMode checks the permissions of a file: cloud-init ignores those that are not an octal number
// (decode_perms in cloudinit/config/cc_write_files.py), so a secret may become readable for all.
func (l *loader) checkMode(o *object, path, mode string) {
	if mode != "" && !regexp.MustCompile(`^(0o?)?[0-7]{3,4}$`).MatchString(mode) {
		l.fail(o.problem(path, fmt.Sprintf("%q is not an octal number", mode), `write it as in "0600"`))
	}
}

func (l *loader) checkModes(o *object, prefix string, files []eksbootstrapv1.File) {
	for i, f := range files {
		l.checkMode(o, fmt.Sprintf("%s.files[%d].permissions", prefix, i), f.Permissions)
	}
}

// checkNodeNames refuses a fixed Node name for more than one machine: kubeadm join fails if a Node of
// that name exists (checkNodeExists… in cmd/kubeadm/app/cmd/phases/join/kubelet.go).
func (l *loader) checkNodeNames(o *object, prefix string, spec *bootstrapv1.KubeadmConfigSpec, why string) {
	for at, name := range map[string]string{
		"initConfiguration": spec.InitConfiguration.NodeRegistration.Name, "joinConfiguration": spec.JoinConfiguration.NodeRegistration.Name,
	} {
		if name != "" && !strings.ContainsAny(name, "{$") && len(validation.IsDNS1123Subdomain(name)) == 0 { // otherwise reported already
			l.fail(
				o.problem(
					prefix+"."+at+".nodeRegistration.name",
					fmt.Sprintf("all machines would have the Node name %q: %s, and kubeadm refuses a name that exists", name, why),
					"write '{{ ds.meta_data.local_hostname }}', or remove it",
				),
			)
		}
	}
}

// checkKubeletArguments checks the arguments of a kubelet.
func (l *loader) checkKubeletArguments(o *object, path string, args []bootstrapv1.Arg, v kubernetesVersion) {
	l.checkArguments(o, path, components.Kubelet, args, v)
}

// checkEKSConfig checks the configuration of nodes of EKS.
func (l *loader) checkEKSConfig(b Bootstrap, v kubernetesVersion) {
	if c := b.EKS; c != nil {
		o := l.lookup(kindEKSConfig, c.Name)
		l.checkKubeletMap(o, "spec", c.Spec.KubeletExtraArgs, v)
		l.checkModes(o, "spec", c.Spec.Files)
	}
	if c := b.Nodeadm; c != nil {
		l.checkNodeadm(l.lookup(kindNodeadm, c.Name), "spec", &c.Spec, v)
	}
}

func (l *loader) checkKubeletMap(o *object, prefix string, args map[string]string, v kubernetesVersion) {
	for name, value := range args {
		l.checkArgument(o, prefix+".kubeletExtraArgs."+name, components.Kubelet, name, value, v)
	}
	l.checkTogether(o, prefix+".kubeletExtraArgs", components.Kubelet, args)
}

// checkNodeadm checks a NodeadmConfig.
func (l *loader) checkNodeadm(o *object, prefix string, spec *eksbootstrapv1.NodeadmConfigSpec, v kubernetesVersion) {
	l.checkModes(o, prefix, spec.Files)
	if spec.Kubelet == nil {
		return
	}
	all := map[string]string{}
	defer func() { l.checkTogether(o, prefix+".kubelet.flags", components.Kubelet, all) }()
	for i, flag := range spec.Kubelet.Flags {
		path := prefix + ".kubelet.flags[" + strconv.Itoa(i) + "]"
		name, ok := strings.CutPrefix(flag, "--")
		if !ok {
			l.fail(o.problem(path, fmt.Sprintf("%q is not a flag of the kubelet", flag), "write --NAME=VALUE"))
			continue
		}
		name, value, valued := strings.Cut(name, "=")
		if mark, _ := components.Flag(components.Kubelet, name).In(v.minor); !valued && mark == 'b' {
			value = "true"
		}
		all[name] = value
		l.checkArgument(o, path, components.Kubelet, name, value, v)
	}
}
