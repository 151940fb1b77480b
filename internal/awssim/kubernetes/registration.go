package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// nodeRegistration has the fields of kubeadm's NodeRegistrationOptions that are simulated.
type nodeRegistration struct {
	Name, CRISocket  string
	KubeletExtraArgs any    // a map in v1beta3, a list of names and values in v1beta4; after unquote, as the kubelet receives them
	Taints           *[]any // nil: those of kubeadm

	IgnorePreflightErrors []string
}

// argument returns an argument of the kubelet; "" for none.
func (r nodeRegistration) argument(name string) string { return argument(r.KubeletExtraArgs, name) }

// unquote removes quotes from the arguments of the kubelet. kubeadm writes them into /var/lib/kubelet/kubeadm-flags.env
// (cmd/kubeadm/app/phases/kubelet/flags.go), and the kubelet gets $KUBELET_KUBEADM_ARGS in ExecStart: "quotes are respected when splitting into
// words, and afterwards removed" (systemd.service(5)).
func (r *nodeRegistration) unquote() {
	quotes := strings.NewReplacer(`"`, "", `'`, "")
	switch args := r.KubeletExtraArgs.(type) {
	case map[string]any:
		for name, v := range args {
			args[name] = quotes.Replace(fmt.Sprint(v))
		}
	case []any:
		for _, x := range args {
			if arg, is := x.(map[string]any); is {
				arg["value"] = quotes.Replace(fmt.Sprint(arg["value"]))
			}
		}
	}
}

// nameRefused returns kubeadm's error for the name of a Node (ValidateNodeRegistrationOptions in cmd/kubeadm/app/apis/kubeadm/validation), or "".
// A command that edits kubeadm's configuration may have written another name.
func (r nodeRegistration) nameRefused(files map[string]string) string {
	if r.Name == "" || regex.Of(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString(strings.ToLower(r.Name)) {
		return ""
	}
	if editsConfig(files) {
		return ""
	}
	return fmt.Sprintf(
		"kubeadm: nodeRegistration.name: Invalid value: %q: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters",
		r.Name,
	)
}

// editsConfig reports whether a command may edit the configuration of kubeadm before kubeadm reads it.
func editsConfig(files map[string]string) bool {
	for name, text := range files {
		if name == bootText {
			text = commandsIn(files)
		}
		if regex.Of(`(sed|envsubst|awk|perl|python|yq|tee|cp)\b.*kubeadm`).MatchString(text) {
			return true
		}
	}
	return false
}

// substitute replaces the variables of Flatcar's metadata agent in the arguments of the kubelet, if a command edits the configuration, as
// envsubst does (https://coreos.github.io/afterburn/usage/attributes). An argument with other variables is left out: it has a value that is not known.
func (r *nodeRegistration) substitute(files map[string]string, i *ec2.Instance, address string) {
	args, is := r.KubeletExtraArgs.([]any)
	if !is || !editsConfig(files) {
		return
	}
	variables := strings.NewReplacer(
		"${COREOS_EC2_IPV4_LOCAL}", address, "${COREOS_EC2_INSTANCE_ID}", i.ID, "${COREOS_EC2_AVAILABILITY_ZONE}", i.Zone, "${COREOS_EC2_INSTANCE_TYPE}", i.Type,
	)
	r.KubeletExtraArgs = slices.DeleteFunc(args, func(x any) bool {
		arg, is := x.(map[string]any)
		if !is {
			return false
		}
		value := variables.Replace(fmt.Sprint(arg["value"]))
		arg["value"] = value
		return strings.Contains(value, "${")
	})
}

// argument returns an extra argument of a component; "" for none.
func argument(of any, name string) string {
	switch args := of.(type) {
	case map[string]any:
		if v, ok := args[name]; ok {
			return fmt.Sprint(v)
		}
	case []any:
		for _, x := range slices.Backward(args) { // the last one counts
			if arg, _ := x.(map[string]any); arg["name"] == name {
				return fmt.Sprint(arg["value"])
			}
		}
	}
	return ""
}

// apply sets how the machine registers as a Node. A kubelet with labels that it may not set does
// not start.
func (r nodeRegistration) apply(b *ec2.Boot) error {
	b.External, b.NodeIP = r.argument("cloud-provider") == "external", r.argument("node-ip")
	if names := r.argument("allowed-unsafe-sysctls"); names != "" {
		b.Sysctls = strings.Split(names, ",")
	}
	for pair := range strings.SplitSeq(r.argument("node-labels"), ",") {
		key, label, _ := strings.Cut(pair, "=")
		switch {
		case key == "":
			continue
		case !kubeletMaySet(key):
			return fmt.Errorf(
				"kubelet: --node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set: %s",
				key,
			)
		case !strings.ContainsAny(label, "{$") && !regex.Of(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`).MatchString(label):
			return fmt.Errorf("kubelet: Node is invalid: metadata.labels: Invalid value: %q", label)
		case b.Labels == nil:
			b.Labels = map[string]string{}
		}
		b.Labels[key] = label
	}
	argued, err := taintsOf(r.argument("register-with-taints"))
	switch {
	case err != nil:
		return err
	case len(argued) > 0 && !b.ControlPlane: // kubeadm sets the same argument, and that of the user counts
		b.Taints = argued
	case r.Taints != nil: // of the control plane, kubeadm sets the taints of the Node itself
		b.Taints = append(append([]any{}, *r.Taints...), argued...)
	case len(argued) > 0:
		b.Taints = append([]any{map[string]any{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}}, argued...)
	}
	return nil
}

// taintsOf reads taints in the form of the kubelet's argument: "gpu=yes:NoSchedule,own:NoExecute"
// (ParseTaints in k8s.io/kubernetes/pkg/util/taints). If the user sets this argument for a worker, kubeadm does not
// set it (cmd/kubeadm/app/phases/kubelet/flags.go).
func taintsOf(argument string) (taints []any, err error) {
	for text := range strings.SplitSeq(argument, ",") {
		if text == "" {
			continue
		}
		pair, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(pair, "=")
		if key == "" || !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
			return nil, fmt.Errorf("kubelet: invalid taint spec: %s", text)
		}
		taint := map[string]any{"key": key, "effect": effect}
		for _, other := range taints { // validateNodeTaints in pkg/apis/core/validation of Kubernetes
			if o, _ := other.(map[string]any); o["key"] == key && o["effect"] == effect {
				return nil, fmt.Errorf("kubelet: the API server refuses the Node: spec.taints: Duplicate value: %s: taints must be unique by key and effect pair", text)
			}
		}
		if value != "" {
			taint["value"] = value
		}
		taints = append(taints, taint)
	}
	return taints, nil
}

// kubeletMaySet reports whether a kubelet accepts a label in its argument node-labels
// (k8s.io/kubelet/pkg/apis/well_known_labels.go).
func kubeletMaySet(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	within := func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }
	switch {
	case !qualified || !within("kubernetes.io") && !within("k8s.io"):
		return true
	case within("kubelet.kubernetes.io") || within("node.kubernetes.io"):
		return true
	}
	return slices.Contains([]string{
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type",
		"failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
	}, key)
}
