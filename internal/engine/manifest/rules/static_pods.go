package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/components"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/rules/apiserver"
)

// checkStaticPods checks the volumes and variables that a manifest adds to the components of the control plane. The kubelet
// does not run a static pod that is not valid (validateHostPathVolumeSource, ValidateVolumeMounts and ValidateEnv in
// pkg/apis/core/validation of Kubernetes).
func (c *checks) checkStaticPods(o *manifest.Entry, prefix string, spec *bootstrapv1.KubeadmConfigSpec) {
	config := &spec.ClusterConfiguration
	at, keys := prefix+".clusterConfiguration", boot.CertificatesDir(config)
	for _, x := range []struct {
		component, field string
		volumes          []bootstrapv1.HostPathMount
		env              *[]bootstrapv1.EnvVar
		mounts           []string // of kubeadm
	}{
		{components.APIServer, ".apiServer", config.APIServer.ExtraVolumes, config.APIServer.ExtraEnvs, []string{keys, "/etc/ssl/certs"}},
		{
			components.ControllerManager, ".controllerManager", config.ControllerManager.ExtraVolumes, config.ControllerManager.ExtraEnvs,
			[]string{keys, "/etc/ssl/certs", "/etc/kubernetes/controller-manager.conf"},
		},
		{components.Scheduler, ".scheduler", config.Scheduler.ExtraVolumes, config.Scheduler.ExtraEnvs, []string{"/etc/kubernetes/scheduler.conf"}},
		{"etcd", ".etcd.local", nil, config.Etcd.Local.ExtraEnvs, nil},
	} {
		c.checkExtraVolumes(o, at+x.field+".extraVolumes", x.component, x.volumes, x.mounts, spec)
		if x.env == nil {
			continue
		}
		for i, e := range *x.env {
			c.checkPodVariable(o, fmt.Sprintf("%s%s.extraEnvs[%d]", at, x.field, i), x.component, e.EnvVar)
		}
	}
}

// checkPodVariable checks a variable of a static pod. The kubelet runs no static pod that refers to objects of the API server (HasAPIObjectReference in
// pkg/api/pod of Kubernetes 1.34); before, its container waited for them in vain.
func (c *checks) checkPodVariable(o *manifest.Entry, at, component string, e corev1.EnvVar) {
	fail := func(field, what, fix string) { c.fail(o.Problem(at+field, component+" does not start: "+what, fix)) }
	if bad := validation.IsRelaxedEnvVarName(e.Name); len(bad) > 0 {
		fail(".name", fmt.Sprintf("%q is not the name of a variable: %s", e.Name, bad[0]), "change it")
		return
	}
	if from := e.ValueFrom; from != nil && (from.SecretKeyRef != nil || from.ConfigMapKeyRef != nil || from.FileKeyRef != nil) {
		fail(
			".valueFrom",
			"it runs before there is an API server, so its pod can refer to no Secret, ConfigMap or volume of others",
			"write the value, or a file and an argument",
		)
		return
	}
	for _, r := range apiserver.OfVariable(e) {
		fail("."+r.Field, r.What, r.Fix)
	}
}

// hostPathTypes are the types of HostPathVolumeSource.
func hostPathTypes() []string {
	return []string{"DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"}
}

func (c *checks) checkExtraVolumes(
	o *manifest.Entry, at, component string, volumes []bootstrapv1.HostPathMount, mounts []string, spec *bootstrapv1.KubeadmConfigSpec,
) {
	names := map[string]int{}
	for i, v := range volumes {
		at := fmt.Sprintf("%s[%d]", at, i)
		fail := func(field, what, fix string) { c.fail(o.Problem(at+field, component+" does not start: "+what, fix)) }
		if bad := validation.IsDNS1123Label(v.Name); len(bad) > 0 {
			fail(".name", fmt.Sprintf("%q is not the name of a volume: %s", v.Name, bad[0]), "use small letters, digits and -")
		}
		if other, twice := names[v.Name]; twice { // addComponentVolume in cmd/kubeadm/app/phases/controlplane/volumes.go
			c.warn(o.Problem(at+".name", fmt.Sprintf("kubeadm keeps one volume of each name, and ignores that at the position %d", other), "change the name"))
		}
		names[v.Name] = i
		own := v.Name == "k8s-certs" && component != components.Scheduler || v.Name == "kubeconfig" && component != components.APIServer
		if own && !slices.Contains(mounts, v.MountPath) {
			fail(".name", fmt.Sprintf("the volume takes the place of kubeadm's volume %s, in which the component has its keys", v.Name), "choose another name")
		}
		checkHostPath(v, fail)
		switch {
		case strings.Contains(v.MountPath, ":"):
			fail(".mountPath", fmt.Sprintf("%q contains a colon", v.MountPath), "change the path")
		case !own && slices.Contains(mounts, v.MountPath):
			fail(".mountPath", v.MountPath+" is the path of another volume", "change the path")
		}
		mounts = append(mounts, v.MountPath)
		if v.PathType == "File" || v.PathType == "Directory" || v.PathType == "Socket" {
			c.checkWritten(o, at+".hostPath", path.Clean(v.HostPath), spec, component+" does not start")
		}
	}
}

// checkHostPath checks what a volume is on the machine.
func checkHostPath(v bootstrapv1.HostPathMount, fail func(field, what, fix string)) {
	if kind := string(v.PathType); kind != "" && !slices.Contains(hostPathTypes(), kind) {
		fail(".pathType", fmt.Sprintf("%q is not a type of a path", kind), "use one of "+strings.Join(hostPathTypes(), ", "))
	}
	if slices.Contains(strings.Split(v.HostPath, "/"), "..") {
		fail(".hostPath", fmt.Sprintf("%q contains ..", v.HostPath), "write the path without it")
	}
}
