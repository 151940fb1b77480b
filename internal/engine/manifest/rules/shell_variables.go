package rules

import (
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkShellVariables checks variables such as ${COREOS_EC2_HOSTNAME} in kubeadm's configuration. No shell reads that file: a command before
// kubeadm must replace them, for example with envsubst. kubeadm refuses a Node name with a $ (ValidateNodeRegistrationOptions in
// cmd/kubeadm/app/apis/kubeadm/validation of Kubernetes), and passes on other values as they are.
func (c *checks) checkShellVariables(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec, fields map[string]any, plane bool) {
	commands := slices.Concat(spec.BootCommands, spec.PreKubeadmCommands)
	replaced := slices.ContainsFunc(commands, namesConfig) || namesConfig(spec.Ignition.ContainerLinuxConfig.AdditionalConfig) ||
		slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return namesConfig(f.Content) || f.ContentFrom.IsDefined() })
	if replaced {
		return
	}
	sections := []string{"joinConfiguration"}
	if plane {
		sections = append(sections, "initConfiguration", "clusterConfiguration")
	}
	for _, section := range sections {
		eachText(o, prefix+"."+section, fields[section], func(p templatePart) {
			variable := regex.Of(`\$\{\w+\}|\$\(\w+\)`).FindString(p.text)
			if variable == "" || strings.HasPrefix(variable, "$(") && section == "clusterConfiguration" { // the kubelet replaces $(NAME) in static pods
				return
			}
			problem := o.Problem(
				p.path,
				"nothing replaces "+variable+": no shell reads the configuration of kubeadm",
				"replace it in preKubeadmCommands, for example with envsubst, or write a value",
			)
			// "cluster import" writes neither commands nor a Container Linux Config if it does not know them.
			known := len(commands) == 0 && (spec.Format != bootstrapv1.Ignition || spec.Ignition.ContainerLinuxConfig.AdditionalConfig != "")
			if known && strings.HasSuffix(p.path, ".nodeRegistration.name") {
				problem.What += ", and kubeadm refuses it as the name of a Node"
				c.failFirst(problem)
				return
			}
			c.failFirstWarning(problem)
		})
	}
}

// namesConfig reports whether a command or a script mentions a configuration file of kubeadm, or a folder or pattern that contains one.
func namesConfig(text string) bool {
	return regex.Of(`/etc/kubeadm[./]|/run/kubeadm|/run/cluster-api|kubeadm(-join-config)?\.ya?ml`).MatchString(text)
}
