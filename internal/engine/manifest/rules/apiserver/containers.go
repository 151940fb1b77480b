package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// container checks a container (validateContainerCommon in pkg/apis/core/validation). It does not check the name: package rules has done so.
func (c *check) container(at string, of *corev1.Container, pod *corev1.PodSpec, volumes map[string]bool) {
	c.need(at+"image", of.Image)
	oneOf(c, at+"imagePullPolicy", of.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	c.containerPorts(at, of.Ports, pod.HostNetwork)
	c.variables(at, of.Env)
	paths := map[string]bool{}
	for i, m := range of.VolumeMounts {
		field := fmt.Sprintf("%svolumeMounts[%d].", at, i)
		if !volumes[m.Name] {
			c.refuse(field+"name", fmt.Sprintf("the pod has no volume %s", m.Name), "add it to volumes, or correct the name")
		}
		c.need(field+"mountPath", m.MountPath)
		c.inside(field+"subPath", m.SubPath)
		if paths[m.MountPath] && m.MountPath != "" {
			c.refuse(field+"mountPath", "another volume is mounted at "+m.MountPath, "change one of them")
		}
		paths[m.MountPath] = true
	}
	if s := of.SecurityContext; s != nil && s.Privileged != nil && *s.Privileged && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		c.refuse(at+"securityContext", "is privileged, and allowPrivilegeEscalation is false", "remove one of them")
	}
	c.resources(at+"resources.", of.Resources)
	c.probe(at+"livenessProbe", of.LivenessProbe, true)
	c.probe(at+"readinessProbe", of.ReadinessProbe, false)
	c.probe(at+"startupProbe", of.StartupProbe, true)
}

// inside refuses a path that leaves its folder.
func (c *check) inside(field, path string) {
	if strings.HasPrefix(path, "/") || slices.Contains(strings.Split(path, "/"), "..") {
		c.refuse(field, fmt.Sprintf("%q is not below the folder", path), "write a relative path without ..")
	}
}

func (c *check) containerPorts(at string, ports []corev1.ContainerPort, host bool) {
	names := map[string]bool{}
	for i, p := range ports {
		field := fmt.Sprintf("%sports[%d].", at, i)
		c.port(field+"containerPort", intstr.FromInt32(p.ContainerPort), false)
		c.port(field+"hostPort", intstr.FromInt32(p.HostPort), true)
		oneOf(c, field+"protocol", p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
		if p.Name != "" {
			c.port(field+"name", intstr.FromString(p.Name), false)
			if names[p.Name] {
				c.refuse(field+"name", "another port has the name "+p.Name, "change one of them")
			}
			names[p.Name] = true
		}
		if host && p.HostPort != 0 && p.HostPort != p.ContainerPort {
			what := fmt.Sprintf("%d: with hostNetwork, it is the containerPort, %d", p.HostPort, p.ContainerPort)
			c.refuse(field+"hostPort", what, "give both the same port, or remove it")
		}
	}
}

// variables checks environment variables. Two with the same name are refused, because the name is the key of the list in a server-side apply.
func (c *check) variables(at string, env []corev1.EnvVar) {
	seen := map[string]bool{}
	for i, e := range env {
		field := fmt.Sprintf("%senv[%d].", at, i)
		switch {
		case e.Name == "" || strings.Contains(e.Name, "="):
			c.refuse(field+"name", fmt.Sprintf("%q is not the name of a variable", e.Name), "change it")
		case seen[e.Name]:
			c.refuse(field+"name", "another variable has the name "+e.Name, "remove one of them")
		}
		seen[e.Name] = true
		from := e.ValueFrom
		if from == nil {
			continue
		}
		if e.Value != "" {
			c.refuse(field+"valueFrom", "stands beside a value", "remove one of them")
		}
		if from.SecretKeyRef != nil {
			c.need(field+"valueFrom.secretKeyRef.key", from.SecretKeyRef.Key)
		}
		if from.ConfigMapKeyRef != nil {
			c.need(field+"valueFrom.configMapKeyRef.key", from.ConfigMapKeyRef.Key)
		}
	}
}

// resources checks what a container requests, and its limits.
func (c *check) resources(at string, of corev1.ResourceRequirements) {
	for _, list := range []struct {
		name string
		all  corev1.ResourceList
	}{{"limits", of.Limits}, {"requests", of.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.all)) {
			n, field := list.all[name], fmt.Sprintf("%s%s[%s]", at, list.name, name)
			usual := name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
			pages := strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
			most, limited := of.Limits[name]
			switch {
			case !usual && !pages && !strings.Contains(string(name), "/"):
				c.refuse(field, "is not a resource of containers", "use cpu, memory, ephemeral-storage, or one such as nvidia.com/gpu")
			case len(validation.IsQualifiedName(string(name))) > 0:
				c.refuse(field, "is not the name of a resource", "correct it")
			case n.Sign() < 0:
				c.refuse(field, n.String()+" is negative", "use 0 or more")
			case list.name == "limits":
			case !limited && !usual:
				c.refuse(field, "a request of it needs the same limit", fmt.Sprintf("add limits: {%s: %s}", name, n.String()))
			case limited && n.Cmp(most) > 0:
				c.refuse(at+"requests", fmt.Sprintf("%s: %s is more than the limit, %s", name, n.String(), most.String()), "change one of them")
			}
		}
	}
}

// probe checks a probe. restarts is true for liveness and startup probes, after whose failure the kubelet restarts the container: their
// successThreshold has to be 1.
func (c *check) probe(at string, p *corev1.Probe, restarts bool) {
	if p == nil {
		return
	}
	var handlers []string
	for _, h := range []struct {
		name string
		set  bool
	}{{"exec", p.Exec != nil}, {"httpGet", p.HTTPGet != nil}, {"tcpSocket", p.TCPSocket != nil}, {"grpc", p.GRPC != nil}} {
		if h.set {
			handlers = append(handlers, h.name)
		}
	}
	switch {
	case len(handlers) == 0:
		c.refuse(at, "needs one of exec, httpGet, tcpSocket, grpc", "add it")
	case len(handlers) > 1:
		c.refuse(at+"."+handlers[1], "stands beside "+handlers[0], "remove one of them")
	}
	if p.HTTPGet != nil {
		c.port(at+".httpGet.port", p.HTTPGet.Port, false)
		oneOf(c, at+".httpGet.scheme", p.HTTPGet.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	}
	if p.TCPSocket != nil {
		c.port(at+".tcpSocket.port", p.TCPSocket.Port, false)
	}
	if restarts && p.SuccessThreshold > 1 {
		c.refuse(at+".successThreshold", fmt.Sprintf("is %d, and must be 1", p.SuccessThreshold), "remove it")
	}
}
