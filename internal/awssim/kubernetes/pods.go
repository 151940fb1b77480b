package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// hostVolume is a folder or file of the machine that a manifest adds to a component.
type hostVolume struct{ Name, HostPath, MountPath, PathType string }

// variable is a variable of the environment of a component.
type variable struct {
	Name, Value string
	ValueFrom   map[string]map[string]any
}

// refused returns why a static pod cannot have the variable: those of validateEnvVarValueFrom in pkg/apis/core/validation, and tryDecodeSinglePod in
// pkg/kubelet/config of Kubernetes ("static pods may not reference secrets"). The kubelet of an earlier version runs the pod, but gets no Secret or
// ConfigMap for it ("Create static Pods" in Kubernetes' documentation).
func (v variable) refused() string {
	fields := strings.Fields(
		"metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName status.hostIP status.hostIPs status.podIP status.podIPs",
	)
	resources := regex.Of(`^((limits|requests)\.(cpu|memory|ephemeral-storage)|(limits|requests)\.hugepages-.+)$`)
	switch from := v.ValueFrom; {
	case v.Name == "" || strings.ContainsFunc(v.Name, func(r rune) bool { return r == '=' || r < ' ' || r > '~' }):
		return fmt.Sprintf("name: Invalid value: %q", v.Name)
	case from == nil:
		return ""
	case v.Value != "":
		return "valueFrom: Invalid value: may not be specified when `value` is not empty"
	case len(from) != 1:
		return "valueFrom: Invalid value: may not have more than one field specified at a time"
	case from["secretKeyRef"] != nil:
		return "valueFrom: static pods may not reference secrets"
	case from["configMapKeyRef"] != nil:
		return "valueFrom: static pods may not reference configmaps"
	case from["fileKeyRef"] != nil:
		return "valueFrom.fileKeyRef.volumeName: Not found"
	}
	if f := v.ValueFrom["fieldRef"]; f != nil {
		field, _ := f["fieldPath"].(string)
		if !slices.Contains(fields, field) && !regex.Of(`^metadata\.(labels|annotations)\['.+'\]$`).MatchString(field) {
			return fmt.Sprintf("valueFrom.fieldRef.fieldPath: Unsupported value: %q", field)
		}
		if api, is := f["apiVersion"]; is && api != "" && api != "v1" {
			return "valueFrom.fieldRef: error converting fieldPath: field label not supported"
		}
	}
	if r := v.ValueFrom["resourceFieldRef"]; r != nil {
		if name, _ := r["resource"].(string); !resources.MatchString(name) {
			return fmt.Sprintf("valueFrom.resourceFieldRef.resource: Unsupported value: %q", name)
		}
	}
	return ""
}

// podRefused returns why the kubelet does not run the static pod of a component with what a manifest adds to it
// (ValidateVolumes, ValidateVolumeMounts and ValidateEnv in pkg/apis/core/validation of Kubernetes). kubeadm keeps one volume
// of each name (addComponentVolume in cmd/kubeadm/app/phases/controlplane/volumes.go).
func podRefused(component, keys string, volumes []hostVolume, env []variable) string {
	paths := []string{keys, "/etc/ssl/certs"}
	if component == "kube-scheduler" {
		paths = []string{"/etc/kubernetes/scheduler.conf"}
	}
	if component == "kube-controller-manager" {
		paths = append(paths, "/etc/kubernetes/controller-manager.conf")
	}
	kinds := strings.Fields("DirectoryOrCreate Directory FileOrCreate File Socket CharDevice BlockDevice")
	for i, v := range volumes {
		replaced := slices.ContainsFunc(volumes[i+1:], func(o hostVolume) bool { return o.Name == v.Name })
		own := v.Name == "k8s-certs" && component != "kube-scheduler" || v.Name == "kubeconfig" && component != "kube-apiserver"
		switch {
		case replaced:
			continue
		case len(v.Name) > 63 || !regex.Of(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(v.Name):
			return fmt.Sprintf("kubelet: Pod %q is invalid: spec.volumes.name: Invalid value: %q", component, v.Name)
		case own && !slices.Contains(paths, v.MountPath):
			return component + ": open: no such file or directory: a volume has replaced that of kubeadm"
		case slices.Contains(strings.Split(v.HostPath, "/"), ".."):
			return fmt.Sprintf("kubelet: Pod %q is invalid: spec.volumes.hostPath.path: Invalid value: must not contain '..'", component)
		case v.PathType != "" && !slices.Contains(kinds, v.PathType):
			return fmt.Sprintf("kubelet: Pod %q is invalid: spec.volumes.hostPath.type: Unsupported value: %q", component, v.PathType)
		case v.MountPath == "" || strings.Contains(v.MountPath, ":"):
			return fmt.Sprintf("kubelet: Pod %q is invalid: spec.containers[0].volumeMounts.mountPath: Invalid value: must not contain ':'", component)
		case !own && slices.Contains(paths, v.MountPath):
			return fmt.Sprintf("kubelet: Pod %q is invalid: spec.containers[0].volumeMounts.mountPath: Invalid value: %q: must be unique", component, v.MountPath)
		}
		paths = append(paths, v.MountPath)
	}
	for _, e := range env {
		if why := e.refused(); why != "" {
			return fmt.Sprintf("kubelet: Pod %q is invalid: spec.containers[0].env.%s", component, why)
		}
	}
	return ""
}
