package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkControlPlaneArguments checks the arguments of the components that kubeadm starts, and the
// feature gates of kubeadm itself, which ends with an error if it does not know one
// (ValidateFeatureGates in cmd/kubeadm/app/apis/kubeadm/validation).
func (c *checks) checkControlPlaneArguments(o *manifest.Entry, path string, config *bootstrapv1.ClusterConfiguration, v kubernetesVersion) {
	c.checkArguments(o, path+".apiServer.extraArgs", components.APIServer, config.APIServer.ExtraArgs, v)
	c.checkArguments(o, path+".controllerManager.extraArgs", components.ControllerManager, config.ControllerManager.ExtraArgs, v)
	c.checkArguments(o, path+".scheduler.extraArgs", components.Scheduler, config.Scheduler.ExtraArgs, v)
	for gate := range config.FeatureGates {
		c.checkHas(o, path+".featureGates."+gate, "kubeadm", "feature gate "+gate, components.Gate(components.Kubeadm, gate), v)
	}
}

// argumentPath is the place of an argument: an item of a list, or in older API versions an entry.
func argumentPath(o *manifest.Entry, path string, i int, name string) string {
	if _, set := o.Lines[path+"."+name]; set {
		return path + "." + name
	}
	return fmt.Sprintf("%s[%d]", path, i)
}

// checkArguments checks the arguments of a component: one that it does not have, or a value that it
// cannot read, stops it (ParseArgs of github.com/spf13/pflag).
func (c *checks) checkArguments(o *manifest.Entry, path, component string, args []bootstrapv1.Arg, v kubernetesVersion) {
	all := map[string]string{}
	for _, a := range args {
		all[a.Name] = ""
		if a.Value != nil {
			all[a.Name] = *a.Value
		}
	}
	for i, a := range args {
		value := ""
		if a.Value != nil {
			value = *a.Value
		}
		if isIgnored(component, a.Name, all, v) {
			continue
		}
		c.checkArgument(o, argumentPath(o, path, i, a.Name), component, a.Name, value, v)
	}
	c.checkTogether(o, path, component, all)
}

// isIgnored reports whether a component reads the value of an argument only if there is another one: what concerns a log of audits if
// there is one (AuditOptions in k8s.io/apiserver/pkg/server/options/audit.go).
func isIgnored(component, name string, all map[string]string, v kubernetesVersion) bool {
	for prefix, needs := range map[string]string{"audit-log-": "audit-log-path", "audit-webhook-": "audit-webhook-config-file"} {
		if _, set := all[needs]; component == components.APIServer && strings.HasPrefix(name, prefix) && !set {
			mark, known := components.Flag(component, name).In(v.minor)
			return known && badValue(mark, all[name]) == ""
		}
	}
	return false
}

func (c *checks) checkArgument(o *manifest.Entry, path, component, name, value string, v kubernetesVersion) {
	if !components.Known(v.minor) && slices.Contains(everyVersion(), name) {
		c.checkValue(o, path, component, name, value, v)
	}
	if !c.checkHas(o, path, component, "argument "+name, components.Flag(component, name), v) {
		return
	}
	mark, _ := components.Flag(component, name).In(v.minor)
	if name == "v" { // a type of its own, in k8s.io/klog
		mark = 'i'
	}
	if what := badValue(mark, value); what != "" {
		c.fail(o.Problem(path, fmt.Sprintf("%q is not %s, which %s expects of %s", value, what, component, name), "change the value"))
		return
	}
	switch name {
	case "feature-gates":
		c.checkGates(o, path, component, value, v)
	case "enable-admission-plugins", "disable-admission-plugins", "admission-control":
		for plugin := range strings.SplitSeq(value, ",") {
			if plugin != "" {
				c.checkHas(o, path, component, "admission plugin "+plugin, components.Admission(plugin), v)
			}
		}
	case "cloud-provider":
		c.checkCloudProvider(o, path, component, value, v)
	case "node-labels":
		c.checkNodeLabels(o, path, value)
	case "register-with-taints":
		c.checkTaintArgument(o, path, value)
	case "container-runtime-endpoint":
		c.checkSocket(o, path, value, v)
	default:
		c.checkValue(o, path, component, name, value, v)
	}
}

// everyVersion are arguments of which all versions of Kubernetes take the same values, also those that are not in the table of components.
func everyVersion() []string {
	return []string{"anonymous-auth", "secure-port", "tls-cipher-suites", "tls-min-version"}
}

// badValue says what a value is not; "" if a flag of the form can be set to it.
func badValue(form byte, value string) string {
	switch form {
	case 'b':
		if _, err := strconv.ParseBool(value); err != nil {
			return "true or false"
		}
	case 'i':
		if _, err := strconv.ParseInt(value, 0, 64); err != nil {
			return "a whole number"
		}
	case 'f':
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return "a number"
		}
	case 'd':
		if _, err := time.ParseDuration(value); err != nil {
			return "a duration such as 1m30s"
		}
	}
	return ""
}

// checkHas reports a thing that a component of a version does not have, and whether it has it, as far
// as is known.
func (c *checks) checkHas(o *manifest.Entry, path, component, what string, row components.Row, v kubernetesVersion) bool {
	if !components.Known(v.minor) {
		return false
	}
	if _, has := row.In(v.minor); has {
		return true
	}
	text, fix := fmt.Sprintf("%s of %s has no %s", component, v.text, what), "remove it"
	if at, removed := row.Removed(v.minor); removed {
		text += fmt.Sprintf(": Kubernetes 1.%d removed it", at)
	} else if at, added := row.Added(v.minor); added {
		text += fmt.Sprintf(": Kubernetes 1.%d added it", at)
		fix = "remove it, or use a newer version of Kubernetes"
	}
	c.fail(o.Problem(path, text, fix))
	return false
}

// checkGates checks the feature gates of a component, which does not start with one that it does not
// know, or that is locked (Set in k8s.io/component-base/featuregate).
func (c *checks) checkGates(o *manifest.Entry, path, component, value string, v kubernetesVersion) {
	for pair := range strings.SplitSeq(value, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, set, _ := strings.Cut(pair, "=")
		name = name[strings.LastIndex(name, ":")+1:] // a gate may have the prefix of its component
		on, err := strconv.ParseBool(strings.TrimSpace(set))
		if err != nil {
			c.fail(o.Problem(path, fmt.Sprintf("%q is not a feature gate with true or false", pair), "write NAME=true, with commas between gates"))
			continue
		}
		row := components.Gate(component, name)
		if !c.checkHas(o, path, component, "feature gate "+name, row, v) {
			continue
		}
		if mark, _ := row.In(v.minor); mark == 't' && !on || mark == 'f' && on {
			c.fail(o.Problem(path, fmt.Sprintf("the feature gate %s is locked to %t in Kubernetes 1.%d", name, !on, v.minor), "remove it"))
		}
	}
}

// checkCloudProvider checks the cloud provider of a component: AWS's was removed in Kubernetes 1.27, and
// the last ones in 1.31.
func (c *checks) checkCloudProvider(o *manifest.Entry, path, component, name string, v kubernetesVersion) {
	if name == "" || name == "external" {
		return
	}
	if _, has := components.CloudProvider(name).In(v.minor); !has {
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("%s of %s does not contain the cloud provider %s", component, v.text, name),
				"set it to external, and install the AWS cloud controller manager",
			),
		)
	}
}

// checkNodeLabels checks the labels that a kubelet sets on its own Node. It does not start with others
// (cmd/kubelet/app/options, ValidateKubeletFlags).
func (c *checks) checkNodeLabels(o *manifest.Entry, path, value string) {
	for pair := range strings.SplitSeq(value, ",") {
		key, label, _ := strings.Cut(pair, "=")
		if key != "" && !strings.ContainsAny(pair, "${}") {
			c.checkNodeLabel(o, path, key, label)
		}
	}
}

// kubeletLabels are labels of kubernetes.io that a kubelet may set (k8s.io/kubelet/pkg/apis).
func kubeletLabels() []string {
	return []string{
		"kubernetes.io/hostname",
		"kubernetes.io/os",
		"kubernetes.io/arch",
		"topology.kubernetes.io/zone",
		"topology.kubernetes.io/region",
		"node.kubernetes.io/instance-type",
		"beta.kubernetes.io/os",
		"beta.kubernetes.io/arch",
		"beta.kubernetes.io/instance-type",
		"failure-domain.beta.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region",
	}
}

func (c *checks) checkNodeLabel(o *manifest.Entry, path, key, value string) {
	domain, _, prefixed := strings.Cut(key, "/")
	if prefixed && domain != "eks.amazonaws.com" && isReserved(domain) && !slices.Contains(kubeletLabels(), key) {
		c.fail(
			o.Problem(
				path,
				fmt.Sprintf("the kubelet does not start: nodes may not set their own labels with the prefix %s (%s)", domain, key),
				"choose another prefix, or set the label in the metadata of the Machine",
			),
		)
		return
	}
	if bad := badLabel(key, value); bad != "" {
		c.fail(o.Problem(path, bad, "change the label"))
	}
}

// checkTaintArgument checks taints as a kubelet reads them: KEY=VALUE:EFFECT, or KEY:EFFECT.
// The API server accepts a Node whose taints differ in key or effect only (validateNodeTaints in pkg/apis/core/validation).
func (c *checks) checkTaintArgument(o *manifest.Entry, path, value string) {
	seen := map[string]bool{}
	for text := range strings.SplitSeq(value, ",") {
		if text == "" || strings.ContainsAny(text, "${}") {
			continue
		}
		at := strings.LastIndex(text, ":")
		if at < 0 {
			c.fail(o.Problem(path, fmt.Sprintf("%q is not a taint", text), "write KEY=VALUE:NoSchedule"))
			continue
		}
		key, taint, _ := strings.Cut(text[:at], "=")
		c.checkTaint(o, path, key, taint, text[at+1:])
		if seen[key+text[at:]] {
			c.fail(o.Problem(path, fmt.Sprintf("two taints have the key %s and the effect %s", key, text[at+1:]), "remove one of them"))
		}
		seen[key+text[at:]] = true
	}
}

// checkSocket checks the socket of a container runtime. kubeadm permits only local ones, and Kubernetes
// 1.24 removed dockershim (ValidateSocketPath in cmd/kubeadm/app/apis/kubeadm/validation).
func (c *checks) checkSocket(o *manifest.Entry, path, socket string, v kubernetesVersion) {
	const containerd = "unix:///run/containerd/containerd.sock"
	switch {
	case socket == "":
	case strings.HasPrefix(socket, "npipe:"):
		c.fail(o.Problem(path, socket+" is a socket of Windows: "+withoutWindows, "use Linux, and remove it"))
	case strings.Contains(socket, "dockershim") && v.minor >= dockershimEnds:
		c.fail(
			o.Problem(path, fmt.Sprintf("%s: Kubernetes 1.%d removed dockershim, and %s has none", socket, dockershimEnds, v.text), "remove it, or set "+containerd),
		)
	case strings.HasSuffix(socket, "/docker.sock") && v.minor >= dockershimEnds:
		c.fail(o.Problem(path, socket+" is the socket of Docker itself, and the kubelet needs one of a container runtime (CRI)", "remove it, or set "+containerd))
	case !strings.HasPrefix(socket, "/") && !regex.Of(`^unix:///.`).MatchString(socket):
		c.fail(o.Problem(path, fmt.Sprintf("%q is not a socket of a container runtime on this machine", socket), "remove it, or set "+containerd))
	}
}

// dockershimEnds is the first minor version of Kubernetes without dockershim.
const dockershimEnds = 24
