package rules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// checkStart checks what kubelets refuse of pods that the API server accepts.
func (c *checks) checkStart(w podsOf) {
	for _, list := range []struct {
		name string
		all  []corev1.Container
	}{{"initContainers", w.pod.Spec.InitContainers}, {"containers", w.pod.Spec.Containers}} {
		for i, of := range list.all {
			w.checkImageName(fmt.Sprintf("%s%s[%d].image", w.at, list.name, i), of.Image)
		}
	}
	c.checkSysctls(w)
}

// checkImageName checks the reference of an image: the API server does not read it, and the kubelet does not start a container with one that
// it cannot read (InvalidImageName; github.com/distribution/reference).
func (w podsOf) checkImageName(field, image string) {
	switch name, bad := strings.TrimSpace(image), "is not the name of an image"; {
	case name == "":
	case name != image && w.Kind() == "Pod": // the API server refuses it
	case name != image:
		w.fail(w.ProblemAt(field, fmt.Sprintf(
			"the API server refuses the pods of %s: %s: %q begins or ends with a space", w.Title(), field, image,
		), "remove it"))
	case isImage(name):
	case isImage(strings.ToLower(name)):
		w.fail(w.ProblemAt(field, fmt.Sprintf("%s of %s: %q %s", field, w.Title(), image, bad), "write it in lower case"))
	default:
		w.fail(w.ProblemAt(field, fmt.Sprintf("%s of %s: %q %s", field, w.Title(), image, bad), "write one such as registry.k8s.io/pause:3.10"))
	}
}

// isImage reports whether a text is a reference of an image: a name, with a tag and a digest or without. The first part of the name is a
// registry if it has a dot, a port or capital letters, or is localhost.
func isImage(text string) bool {
	const tag, digest = `(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?`, `(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?`
	parts := regex.Of(`^([^@]*?)` + tag + digest + `$`).FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	name := parts[1]
	host, rest, deeper := strings.Cut(name, "/")
	if deeper && (strings.ContainsAny(host, ".:") || host == "localhost" || strings.ToLower(host) != host) {
		if !regex.Of(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(:[0-9]+)?$`).MatchString(host) {
			return false
		}
		name = rest
	} else if regex.Of(`^[0-9a-f]{64}$`).MatchString(text) { // the ID of an image
		return false
	}
	const most = 255
	return len(parts[1]) <= most && regex.Of(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`).MatchString(name)
}

// safeSysctls are the parameters of the kernel that every kubelet permits (safeSysctls in pkg/kubelet/sysctl of Kubernetes).
func safeSysctls() []string {
	return []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
		"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
	}
}

// checkSysctls warns of pods that set a parameter of the kernel for which the configuration of a kubelet has to be changed ("Using sysctls in a
// Kubernetes Cluster"): kubelets refuse them again and again (SysctlForbidden). The image of a machine may have such a configuration.
func (c *checks) checkSysctls(w podsOf) {
	if w.pod.Spec.SecurityContext == nil || c.permitsSysctls() {
		return
	}
	for i, s := range w.pod.Spec.SecurityContext.Sysctls {
		name := strings.ReplaceAll(s.Name, "/", ".")
		if slices.Contains(safeSysctls(), name) {
			continue
		}
		field := fmt.Sprintf("%ssecurityContext.sysctls[%d].name", w.at, i)
		c.warn(w.ProblemAt(
			field, fmt.Sprintf("kubelets refuse the pods of %s: %s: %s is not one of the parameters that they permit by default", w.Title(), field, s.Name),
			fmt.Sprintf("add {name: allowed-unsafe-sysctls, value: %s} to kubeletExtraArgs of the machines, or remove it", name),
		))
	}
}

// permitsSysctls reports whether something in the manifest may change which parameters kubelets permit.
func (c *checks) permitsSysctls() bool {
	for _, o := range c.objects {
		if o.Kind == manifest.KindCluster || o.Kind == "ConfigMap" || o.Kind == "Secret" {
			continue
		}
		if text := strings.ToLower(fmt.Sprint(o.Value)); strings.Contains(text, "unsafe-sysctls") || strings.Contains(text, "unsafesysctls") {
			return true
		}
	}
	return false
}
