package kubernetes

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// accepted is what the components of one version of Kubernetes accept, as the programs say.
//
//go:embed components.txt
var accepted string

// acceptedMinor is the minor version of accepted.
const acceptedMinor = 34

// words returns the words of a line of accepted.
func words(prefix string) []string {
	for line := range strings.SplitSeq(accepted, "\n") {
		if rest, ok := strings.CutPrefix(line, prefix+" "); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

// change is what another minor version than acceptedMinor accepts, or does not.
type change struct {
	component, name string
	first, last     int // the minor versions that accept it
}

// changes are differences between versions, from the notes of the releases
// (https://github.com/kubernetes/kubernetes/tree/master/CHANGELOG).
func changes() []change {
	const from = 22
	return []change{
		{"kubelet", "container-runtime", from, 26},
		{"kubelet", "network-plugin", from, 23}, // 1.24, with dockershim
		{"kubelet", "keep-terminated-pod-volumes", from, 30},
		{"kubelet", "pod-infra-container-image", from, 34},
		{"kubelet", "cloud-config", from, 33},
		{"kube-apiserver", "cloud-provider", from, 32},
		{"kube-apiserver", "cloud-config", from, 32},
		{"kube-scheduler", "port", from, 30},          // without effect since 1.23
		{"kube-controller-manager", "port", from, 30}, // without effect since 1.24
		{"kube-controller-manager", "pod-eviction-timeout", from, 26},
	}
}

// kubeadmGates are the feature gates of kubeadm and the versions that have them: "kubeadm init" in the
// documentation of each version.
func kubeadmGates() []change {
	const from, newest = 22, 99
	return []change{
		{"kubeadm", "PublicKeysECDSA", from, 36},
		{"kubeadm", "RootlessControlPlane", from, newest},
		{"kubeadm", "EtcdLearnerMode", 27, 32},
		{"kubeadm", "UpgradeAddonsBeforeControlPlane", 28, 30},
		{"kubeadm", "WaitForAllControlPlaneComponents", 30, 35},
		{"kubeadm", "ControlPlaneKubeletLocalMode", 31, 35},
		{"kubeadm", "NodeLocalCRISocket", 32, 36},
	}
}

// minorOf returns the minor version of "v1.34.2"; 0 if it is not one.
func minorOf(version string) int {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 || parts[0] != "1" {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return n
}

// knownFlag reports whether a component of a version has a flag.
func knownFlag(component, name string, minor int) bool {
	for _, c := range changes() {
		if c.component == component && c.name == name {
			return minor >= c.first && minor <= c.last
		}
	}
	return slices.Contains(words("flags "+component), name)
}

// pairs returns the arguments of a component, of v1beta3 or v1beta4, in their order.
func pairs(of any) (all [][2]string) {
	switch args := of.(type) {
	case map[string]any:
		for name, value := range args {
			all = append(all, [2]string{name, fmt.Sprint(value)})
		}
	case []any:
		for _, x := range args {
			if arg, ok := x.(map[string]any); ok {
				all = append(all, [2]string{fmt.Sprint(arg["name"]), fmt.Sprint(arg["value"])})
			}
		}
	}
	return all
}

// componentRefuses returns why a component of a version does not start with extra arguments; "" if it
// does.
func componentRefuses(component, version string, args any) string {
	minor := minorOf(version)
	if minor == 0 {
		return ""
	}
	for _, arg := range pairs(args) {
		name, value := strings.ReplaceAll(arg[0], "_", "-"), arg[1]
		if !knownFlag(component, name, minor) {
			return fmt.Sprintf("%s: Error: unknown flag: --%s", component, name)
		}
		if why := cmp.Or(
			valueRefused(name, value, minor),
			choiceRefused(component, name, value),
			limitRefused(component, name, value),
			syntaxRefused(component, name, value),
		); why != "" {
			return component + ": " + why
		}
	}
	if why := togetherRefused(component, args); why != "" {
		return component + ": " + why
	}
	return ""
}

// valueRefused returns why a component does not start with the value of a flag.
func valueRefused(name, value string, minor int) string {
	switch name {
	case "cloud-provider": // the last ones of k8s.io/legacy-cloud-providers were removed in 1.31
		if legacy := []string{
			"azure",
			"gce",
			"openstack",
			"vsphere",
		}; value != "" && value != "external" && (minor > 30 || !slices.Contains(legacy, value)) &&
			(value != "aws" || minor > 26) {
			return fmt.Sprintf("unknown cloud provider %q", value)
		}
	case "cidr-allocator-type": // Validate in cmd/kube-controller-manager/app/options, since the cloud providers were removed in 1.31
		if minor > 30 && value != "RangeAllocator" {
			return "built-in cloud providers are disabled. The ipam " + value + " is not available"
		}
	case "show-hidden-metrics-for-version": // k8s.io/component-base/metrics/options.go
		if value != "" && value != fmt.Sprintf("1.%d", minor-1) {
			return fmt.Sprintf("--show-hidden-metrics-for-version must be omitted or have the value '1.%d'", minor-1)
		}
	case "emulated-version", "min-compatibility-version": // Validate in k8s.io/component-base/compatibility/version.go
		for of := range strings.SplitSeq(strings.ReplaceAll(value, "kube=", ""), ",") {
			n := minorOf(of + ".0")
			if value != "" && !strings.Contains(of, "=") && (n > minor || n < 31 || n < minor-3) {
				return fmt.Sprintf("emulation version %s is not between the versions that it can be", of)
			}
		}
	case "concurrent-cron-job-syncs", "concurrent-job-syncs": // the same place, since 1.28
		if n, err := strconv.Atoi(value); minor > 27 && err == nil && n < 1 {
			return name + " must be greater than 0"
		}
	case "feature-gates":
		return gatesRefused(value, minor)
	case "enable-admission-plugins", "disable-admission-plugins":
		for plugin := range strings.SplitSeq(value, ",") {
			if minor == acceptedMinor && plugin != "" && !slices.Contains(words("plugins"), plugin) {
				return fmt.Sprintf("[%s plugin %q is unknown]", name, plugin)
			}
		}
	case "v", "max-pods", "audit-log-maxage":
		if _, err := strconv.ParseInt(value, 0, 32); err != nil {
			return fmt.Sprintf("invalid argument %q for \"--%s\" flag", value, name)
		}
	}
	return ""
}

// gatesRefused compares feature gates with those of acceptedMinor; of other versions only a name that
// no version has is certain.
func gatesRefused(value string, minor int) string {
	for pair := range strings.SplitSeq(value, ",") {
		if pair == "" {
			continue
		}
		name, set, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Sprintf("missing bool value for %s", pair)
		}
		i := slices.IndexFunc(words("gates"), func(w string) bool { return strings.HasPrefix(w, name+"=") })
		switch {
		case minor != acceptedMinor:
		case i < 0:
			return "unrecognized feature gate: " + name
		case strings.HasSuffix(words("gates")[i], "=t") && set == "false", strings.HasSuffix(words("gates")[i], "=f") && set == "true":
			return fmt.Sprintf("cannot set feature gate %s to %s, feature is locked", name, set)
		}
	}
	return ""
}
