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
type variable struct{ Name string }

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
		if e.Name == "" || strings.ContainsFunc(e.Name, func(r rune) bool { return r == '=' || r < ' ' || r > '~' }) {
			return fmt.Sprintf("kubelet: Pod %q is invalid: spec.containers[0].env.name: Invalid value: %q", component, e.Name)
		}
	}
	return ""
}
