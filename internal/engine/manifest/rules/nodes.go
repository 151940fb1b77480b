package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/pelletier/go-toml/v2"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// kubernetesVersion is the version of the components of a machine.
type kubernetesVersion struct {
	text  string // "v1.34.2"
	minor uint64 // 0 if it is not known
}

// versionOf returns the version of a machine, which is that of the cluster if it has none.
func (c *checks) versionOf(given string) kubernetesVersion {
	if given == "" {
		given = c.cluster.Version
	}
	v, err := semver.ParseTolerant(given)
	if err != nil || v.Major != 1 {
		return kubernetesVersion{text: given}
	}
	return kubernetesVersion{given, v.Minor}
}

// checkNodes checks the bootstrap configurations of all machines.
func (c *checks) checkNodes() {
	if plane := c.cluster.ControlPlane; plane != nil {
		o, spec := c.lookup(manifest.KindControlPlane, plane.Object.Name), &plane.Object.Spec.KubeadmConfigSpec
		c.checkConfig(o, "spec.kubeadmConfigSpec", spec, c.versionOf(plane.Object.Spec.Version), true)
		c.checkNodeNames(o, "spec.kubeadmConfigSpec", spec, "every machine of a control plane is replaced by one that runs beside it")
	}
	for _, m := range c.cluster.Machines {
		v := c.versionOf(m.Object.Spec.Version)
		if m.Bootstrap != nil {
			c.checkConfig(c.lookup(manifest.KindConfig, m.Bootstrap.Name), "spec", &m.Bootstrap.Spec, v, m.ControlPlane)
		}
		c.checkEKSConfig(manifest.Bootstrap{EKS: m.EKSBootstrap, Nodeadm: m.NodeadmBootstrap}, v)
	}
	for _, d := range c.cluster.Deployments {
		c.checkDeploymentNodes(d)
	}
	for _, p := range c.cluster.Pools {
		v := c.versionOf(p.Object.Spec.Template.Spec.Version)
		if config := p.Bootstrap.Kubeadm; config != nil {
			o := c.lookup(manifest.KindConfig, config.Name)
			c.checkConfig(o, "spec", &config.Spec, v, false)
			c.checkNodeNames(o, "spec", &config.Spec, "a pool has several machines")
		}
		c.checkEKSConfig(p.Bootstrap, v)
	}
}

func (c *checks) checkDeploymentNodes(d manifest.Deployment) {
	v := c.versionOf(d.Object.Spec.Template.Spec.Version)
	if config := d.Bootstrap; config != nil {
		o := c.lookup(manifest.KindConfigTemplate, config.Name)
		c.checkConfig(o, "spec.template.spec", &config.Spec.Template.Spec, v, false)
		if d.Replicas() > 1 || surges(d.Object) {
			c.checkNodeNames(
				o,
				"spec.template.spec",
				&config.Spec.Template.Spec,
				"the MachineDeployment has several machines, or one that is replaced by another beside it",
			)
		}
	}
	if config := d.EKSBootstrap; config != nil {
		c.checkKubeletMap(c.lookup(manifest.KindEKSConfigTemplate, config.Name), "spec.template.spec", config.Spec.Template.Spec.KubeletExtraArgs, v)
		c.checkModes(c.lookup(manifest.KindEKSConfigTemplate, config.Name), "spec.template.spec", config.Spec.Template.Spec.Files)
		c.checkEKSWrites(
			c.lookup(manifest.KindEKSConfigTemplate, config.Name), "spec.template.spec", config.Spec.Template.Spec.Files, config.Spec.Template.Spec.Users,
		)
		c.checkEKSScripts(c.lookup(manifest.KindEKSConfigTemplate, config.Name), "spec.template.spec", &config.Spec.Template.Spec)
	}
	if config := d.NodeadmBootstrap; config != nil {
		o := c.lookup(manifest.KindNodeadmTemplate, config.Name)
		c.checkNodeadm(o, "spec.template.spec", &config.Spec.Template.Spec, v)
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
func (c *checks) checkConfig(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, v kubernetesVersion, plane bool) {
	if o == nil {
		return
	}
	c.checkWindowsConfig(o, prefix, spec)
	c.checkKubeadm(o, prefix, spec, v, plane)
	c.warnOlderKubeadm(o, prefix, spec, v)
	c.checkBoot(o, prefix, spec)
	fields := c.templateFields(spec)
	c.checkTemplates(o, prefix, spec, fields, plane)
	c.checkKubeadmWrites(o, prefix, spec)
	c.checkIgnitionConfig(o, prefix, spec)
	c.checkShellVariables(o, prefix, spec, fields, plane)
	c.checkKubeadmScripts(o, prefix, spec)
	c.checkMounts(o, prefix, spec, plane)
	c.checkPhases(o, prefix, spec, v)
	c.checkNeededPhases(o, prefix, spec, plane, v)
	c.checkTakenFiles(o, prefix, spec, plane)
	if plane {
		c.checkMadeFiles(o, prefix, spec)
		c.checkImageTags(o, prefix, spec)
	}
	if plane {
		c.checkMountedFiles(o, prefix, spec, v)
		c.checkKubeadmFiles(o, prefix, spec)
		c.checkStaticPods(o, prefix, spec)
	}
	for i, f := range spec.Files {
		c.checkMode(o, fmt.Sprintf("%s.files[%d].permissions", prefix, i), f.Permissions)
	}
}

// checkMode checks the permissions of a file: cloud-init ignores those that are not an octal number
// (decode_perms in cloudinit/config/cc_write_files.py), so a secret may become readable for all.
func (c *checks) checkMode(o *manifest.Entry, path, mode string) {
	if mode != "" && !regex.Of(`^(0o?)?[0-7]{3,4}$`).MatchString(mode) {
		c.fail(o.Problem(path, fmt.Sprintf("%q is not an octal number", mode), `write it as in "0600"`))
	}
}

func (c *checks) checkModes(o *manifest.Entry, prefix string, files []eksbootstrapv1.File) {
	for i, f := range files {
		c.checkMode(o, fmt.Sprintf("%s.files[%d].permissions", prefix, i), f.Permissions)
	}
}

// checkNodeNames refuses a fixed Node name for more than one machine: kubeadm join fails if a Node of
// that name exists (checkNodeExists… in cmd/kubeadm/app/cmd/phases/join/kubelet.go).
func (c *checks) checkNodeNames(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, why string) {
	for at, name := range map[string]string{
		"initConfiguration": spec.InitConfiguration.NodeRegistration.Name, "joinConfiguration": spec.JoinConfiguration.NodeRegistration.Name,
	} {
		plain := !strings.ContainsAny(name, "{$")
		if name != "" && sameForAll(name) && (!plain || len(validation.IsDNS1123Subdomain(name)) == 0) { // otherwise reported already
			c.fail(
				o.Problem(
					prefix+"."+at+".nodeRegistration.name",
					fmt.Sprintf("all machines would have the Node name %q: %s, and kubeadm refuses a name that exists", name, why),
					"write '{{ ds.meta_data.local_hostname }}', or remove it",
				),
			)
		}
	}
}

// checkKubeletArguments checks the arguments of a kubelet.
func (c *checks) checkKubeletArguments(o *manifest.Entry, path string, args []bootstrapv1.Arg, v kubernetesVersion) {
	c.checkArguments(o, path, components.Kubelet, args, v)
}

// checkEKSConfig checks the configuration of nodes of EKS.
func (c *checks) checkEKSConfig(b manifest.Bootstrap, v kubernetesVersion) {
	if config := b.EKS; config != nil {
		o := c.lookup(manifest.KindEKSConfig, config.Name)
		c.checkKubeletMap(o, "spec", config.Spec.KubeletExtraArgs, v)
		c.checkModes(o, "spec", config.Spec.Files)
		c.checkEKSWrites(o, "spec", config.Spec.Files, config.Spec.Users)
		c.checkEKSScripts(o, "spec", &config.Spec)
	}
	if config := b.Nodeadm; config != nil {
		c.checkNodeadm(c.lookup(manifest.KindNodeadm, config.Name), "spec", &config.Spec, v)
	}
}

func (c *checks) checkKubeletMap(o *manifest.Entry, prefix string, args map[string]string, v kubernetesVersion) {
	for name, value := range args {
		c.checkArgument(o, prefix+".kubeletExtraArgs."+name, components.Kubelet, name, value, v)
	}
	c.checkTogether(o, prefix+".kubeletExtraArgs", components.Kubelet, args)
	fixed := maps.Clone(args)
	maps.DeleteFunc(fixed, func(_, value string) bool { return isFilledIn(value) })
	c.failAll(o, prefix+".kubeletExtraArgs", c.uselessKubelet(fixed))
}

// checkNodeadm checks a NodeadmConfig.
func (c *checks) checkNodeadm(o *manifest.Entry, prefix string, spec *eksbootstrapv1.NodeadmConfigSpec, v kubernetesVersion) {
	c.checkModes(o, prefix, spec.Files)
	c.checkEKSWrites(o, prefix, spec.Files, spec.Users)
	c.checkScript(o, scriptLines(prefix+".preNodeadmCommands", spec.PreNodeadmCommands)) // one script of bash, as in CAPA
	if d := spec.Containerd; d != nil {
		if err := toml.Unmarshal([]byte(d.Config), &map[string]any{}); err != nil { // internal/containerd in nodeadm of awslabs/amazon-eks-ami
			c.fail(o.Problem(prefix+".containerd.config", fmt.Sprintf("nodeadm fails: the configuration of containerd is not TOML: %v", err), "correct the text"))
		}
	}
	for _, gate := range slices.Sorted(maps.Keys(spec.FeatureGates)) {
		if gate != eksbootstrapv1.FeatureInstanceIDNodeName && gate != eksbootstrapv1.FeatureFastImagePull {
			c.warn(
				o.Problem(
					prefix+".featureGates."+string(gate),
					"nodeadm has no feature of this name that Cluster API Provider AWS knows",
					"use InstanceIdNodeName or FastImagePull, or remove it",
				),
			)
		}
	}
	if spec.Kubelet == nil {
		return
	}
	if raw := spec.Kubelet.Config; raw != nil {
		var settings map[string]any
		if err := json.Unmarshal(raw.Raw, &settings); err == nil {
			c.checkOwnedByNodeadm(o, prefix+".kubelet.config", c.checkKubeletSettings(o, prefix+".kubelet.config", settings, v), spec)
		}
	}
	all := map[string]string{}
	defer func() {
		c.checkTogether(o, prefix+".kubelet.flags", components.Kubelet, all)
		c.failAll(o, prefix+".kubelet.flags", c.uselessKubelet(all))
		c.checkOwnedByNodeadm(o, prefix+".kubelet.flags", all, spec)
	}()
	for i, flag := range spec.Kubelet.Flags {
		path := prefix + ".kubelet.flags[" + strconv.Itoa(i) + "]"
		name, ok := strings.CutPrefix(flag, "--")
		if !ok {
			c.fail(o.Problem(path, fmt.Sprintf("%q is not a flag of the kubelet", flag), "write --NAME=VALUE"))
			continue
		}
		name, value, valued := strings.Cut(name, "=")
		if mark, _ := components.Flag(components.Kubelet, name).In(v.minor); !valued && mark == 'b' {
			value = "true"
		}
		all[name] = value
		c.checkArgument(o, path, components.Kubelet, name, value, v)
	}
}
