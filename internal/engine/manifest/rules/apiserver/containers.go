package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// container checks a container (validateContainerCommon in pkg/apis/core/validation). It does not check the name: package rules has done so.
func (c *check) container(at string, of *corev1.Container, pod *corev1.PodSpec, volumes map[string]corev1.VolumeSource) {
	c.need(at+"image", of.Image)
	oneOf(c, at+"imagePullPolicy", of.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	c.containerPorts(at, of.Ports, pod.HostNetwork)
	c.variables(at, of.Env)
	c.variableSets(at, of.EnvFrom)
	c.mounts(at, of, volumes)
	oneOf(c, at+"terminationMessagePolicy", of.TerminationMessagePolicy, corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	c.containerSecurity(at+"securityContext", of.SecurityContext, pod)
	c.resize(at+"resizePolicy", of.ResizePolicy, pod.RestartPolicy)
	c.resources(at+"resources.", of.Resources)
	c.claims(at+"resources.", of.Resources.Claims, pod.ResourceClaims)
}

// inside refuses a path that leaves its folder.
func (c *check) inside(field, path string) {
	if strings.HasPrefix(path, "/") || slices.Contains(strings.Split(path, "/"), "..") {
		c.refuse(field, fmt.Sprintf("%q is not below the folder", path), "write a relative path without ..")
	}
}

func (c *check) containerPorts(at string, ports []corev1.ContainerPort, host bool) {
	names, keys := map[string]bool{}, []string{}
	for i, p := range ports {
		field := fmt.Sprintf("%sports[%d].", at, i)
		c.port(field+"containerPort", intstr.FromInt32(p.ContainerPort), false)
		c.port(field+"hostPort", intstr.FromInt32(p.HostPort), true)
		keys = append(keys, fmt.Sprintf("%d/%s", p.ContainerPort, cmp.Or(p.Protocol, corev1.ProtocolTCP)))
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
	c.distinct(at+"ports", keys)
}

// OfVariable returns the reasons for which a pod cannot have an environment variable.
func OfVariable(e corev1.EnvVar) []Refusal {
	c := &check{}
	c.variables("", []corev1.EnvVar{e})
	for i := range c.found {
		c.found[i].Field = strings.TrimPrefix(c.found[i].Field, "env[0].")
	}
	return c.found
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
		if e.ValueFrom != nil {
			c.when(e.Value != "", field+"valueFrom", "stands beside a value", "remove one of them")
			c.valueFrom(field+"valueFrom", e.ValueFrom)
		}
	}
}

// valueFrom checks where the value of a variable is from (validateEnvVarValueFrom).
func (c *check) valueFrom(at string, from *corev1.EnvVarSource) {
	c.onlyOne(at, sources(*from), "fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef")
	if from.SecretKeyRef != nil {
		c.key(at+".secretKeyRef.key", from.SecretKeyRef.Key)
	}
	if from.ConfigMapKeyRef != nil {
		c.key(at+".configMapKeyRef.key", from.ConfigMapKeyRef.Key)
	}
	if from.FieldRef != nil {
		c.fieldRef(
			at+".fieldRef", from.FieldRef, "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
			"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
		)
	}
	if from.ResourceFieldRef != nil {
		c.resourceRef(at+".resourceFieldRef.", from.ResourceFieldRef)
	}
}

// key checks the key of a Secret or a ConfigMap that a variable is from.
func (c *check) key(field, name string) {
	c.need(field, name)
	if name != "" {
		c.invalid(field, name, validation.IsConfigMapKey(name))
	}
}

// variableSets checks which Secrets and ConfigMaps become variables (ValidateEnvFrom).
func (c *check) variableSets(at string, from []corev1.EnvFromSource) {
	for i, e := range from {
		field := fmt.Sprintf("%senvFrom[%d]", at, i)
		c.when(strings.Contains(e.Prefix, "="), field+".prefix", fmt.Sprintf("%q contains =", e.Prefix), "change it")
		c.onlyOne(field, given(setting{"configMapRef", e.ConfigMapRef != nil}, setting{"secretRef", e.SecretRef != nil}), "configMapRef, secretRef")
		if e.ConfigMapRef != nil {
			c.need(field+".configMapRef.name", e.ConfigMapRef.Name)
			c.subdomain(field+".configMapRef.name", e.ConfigMapRef.Name)
		}
		if e.SecretRef != nil {
			c.need(field+".secretRef.name", e.SecretRef.Name)
			c.subdomain(field+".secretRef.name", e.SecretRef.Name)
		}
	}
}

// resize checks what happens when the resources of a container change (validateResizePolicy).
func (c *check) resize(at string, policies []corev1.ContainerResizePolicy, restart corev1.RestartPolicy) {
	for _, p := range policies {
		oneOf(c, at, p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)
		oneOf(c, at, p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)
		c.when(p.RestartPolicy == "", at, "an item needs restartPolicy", "write NotRequired or RestartContainer")
		c.when(
			restart == corev1.RestartPolicyNever && p.RestartPolicy == corev1.RestartContainer, at,
			"containers of a pod with restartPolicy: Never are not restarted", "write NotRequired",
		)
	}
}

// claims checks which devices of the pod a container uses.
func (c *check) claims(at string, used []corev1.ResourceClaim, all []corev1.PodResourceClaim) {
	for i, u := range used {
		known := slices.ContainsFunc(all, func(p corev1.PodResourceClaim) bool { return p.Name == u.Name })
		c.when(!known, fmt.Sprintf("%sclaims[%d]", at, i), fmt.Sprintf("the pod has no resource claim %s", u.Name), "add it to resourceClaims of the pod")
	}
}

// hostPorts refuses a port of the machine that two of the containers have.
func (c *check) hostPorts(at string, containers []corev1.Container) {
	type port struct {
		protocol corev1.Protocol
		address  string
		number   int32
	}
	seen := map[port]bool{}
	for i := range containers {
		for j, p := range containers[i].Ports {
			one := port{cmp.Or(p.Protocol, corev1.ProtocolTCP), p.HostIP, p.HostPort}
			c.when(
				seen[one] && one.number != 0, fmt.Sprintf("%s[%d].ports[%d].hostPort", at, i, j),
				fmt.Sprintf("another port is %d of the machine", one.number), "change one of them",
			)
			seen[one] = true
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
			switch most, limited := of.Limits[name]; {
			case n.Sign() < 0:
				c.refuse(field, n.String()+" is negative", "use 0 or more")
			case isDevice(name) && n.MilliValue()%1000 != 0:
				c.refuse(field, n.String()+" is not a whole number", "use a whole number: devices are not shared")
			case c.isResource(field, name) && list.name == "requests":
				c.request(at, name, n, most, limited)
			}
		}
	}
	c.pages(strings.TrimSuffix(at, "."), of)
}

// isResource refuses a name that is not one of a resource of containers, and reports whether it is one.
func (c *check) isResource(field string, name corev1.ResourceName) bool {
	switch {
	case !isUsual(name) && !isPages(name) && !strings.Contains(string(name), "/"):
		c.refuse(field, "is not a resource of containers", "use cpu, memory, ephemeral-storage, or one such as nvidia.com/gpu")
	case len(validation.IsQualifiedName(string(name))) > 0:
		c.refuse(field, "is not the name of a resource", "correct it")
	default:
		return true
	}
	return false
}

// request compares what a container requests with its limit.
func (c *check) request(at string, name corev1.ResourceName, n, most resource.Quantity, limited bool) {
	switch {
	case !limited && !isUsual(name):
		c.refuse(fmt.Sprintf("%srequests[%s]", at, name), "a request of it needs the same limit", fmt.Sprintf("add limits: {%s: %s}", name, n.String()))
	case limited && n.Cmp(most) > 0:
		c.refuse(at+"requests", fmt.Sprintf("%s: %s is more than the limit, %s", name, n.String(), most.String()), "change one of them")
	case limited && !isUsual(name) && n.Cmp(most) != 0:
		c.refuse(at+"requests", fmt.Sprintf("%s: %s is not the limit, %s", name, n.String(), most.String()), "give both the same value")
	}
}

// pages refuses huge pages without processors and memory.
func (c *check) pages(at string, of corev1.ResourceRequirements) {
	names := slices.Concat(slices.Collect(maps.Keys(of.Limits)), slices.Collect(maps.Keys(of.Requests)))
	counted := slices.Contains(names, corev1.ResourceCPU) || slices.Contains(names, corev1.ResourceMemory)
	c.when(slices.ContainsFunc(names, isPages) && !counted, at, "huge pages need cpu or memory, too", "add a limit of memory")
}

// isUsual reports whether Kubernetes permits to overcommit a resource: only then may the request of a container be lower than its limit.
func isUsual(name corev1.ResourceName) bool {
	return slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, name) || isNative(name)
}

func isNative(name corev1.ResourceName) bool { return strings.Contains(string(name), "kubernetes.io/") }

func isPages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isDevice reports whether a resource is an extended one, such as nvidia.com/gpu.
func isDevice(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !isNative(name)
}
