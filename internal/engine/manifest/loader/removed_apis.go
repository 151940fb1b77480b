package loader

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// removedAPI is an API version that Kubernetes no longer serves.
type removedAPI struct {
	version string // "policy/v1beta1"
	kinds   []string
	minor   uint64 // the first minor version of Kubernetes without it
	now     string // the version to use; "" if there is none
}

// removedAPIs lists the API versions that Kubernetes has removed.
// https://kubernetes.io/docs/reference/using-api/deprecation-guide/
func removedAPIs() []removedAPI {
	workloads := []string{"Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "ControllerRevision"}
	roles := []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
	flows := []string{"FlowSchema", "PriorityLevelConfiguration"}
	return []removedAPI{
		{"extensions/v1beta1", workloads, 16, "apps/v1"},
		{"apps/v1beta1", workloads, 16, "apps/v1"},
		{"apps/v1beta2", workloads, 16, "apps/v1"},
		{"extensions/v1beta1", []string{"NetworkPolicy"}, 16, "networking.k8s.io/v1"},
		{"extensions/v1beta1", []string{"PodSecurityPolicy"}, 16, ""},
		{"admissionregistration.k8s.io/v1beta1", []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, 22, "admissionregistration.k8s.io/v1"},
		{"apiextensions.k8s.io/v1beta1", []string{"CustomResourceDefinition"}, 22, "apiextensions.k8s.io/v1"},
		{"apiregistration.k8s.io/v1beta1", []string{"APIService"}, 22, "apiregistration.k8s.io/v1"},
		{"certificates.k8s.io/v1beta1", []string{"CertificateSigningRequest"}, 22, "certificates.k8s.io/v1"},
		{"coordination.k8s.io/v1beta1", []string{"Lease"}, 22, "coordination.k8s.io/v1"},
		{"extensions/v1beta1", []string{"Ingress"}, 22, "networking.k8s.io/v1"},
		{"networking.k8s.io/v1beta1", []string{"Ingress", "IngressClass"}, 22, "networking.k8s.io/v1"},
		{"rbac.authorization.k8s.io/v1beta1", roles, 22, "rbac.authorization.k8s.io/v1"},
		{"scheduling.k8s.io/v1beta1", []string{"PriorityClass"}, 22, "scheduling.k8s.io/v1"},
		{"storage.k8s.io/v1beta1", []string{"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"}, 22, "storage.k8s.io/v1"},
		{"batch/v1beta1", []string{"CronJob"}, 25, "batch/v1"},
		{"discovery.k8s.io/v1beta1", []string{"EndpointSlice"}, 25, "discovery.k8s.io/v1"},
		{"events.k8s.io/v1beta1", []string{"Event"}, 25, "events.k8s.io/v1"},
		{"autoscaling/v2beta1", []string{"HorizontalPodAutoscaler"}, 25, "autoscaling/v2"},
		{"policy/v1beta1", []string{"PodDisruptionBudget"}, 25, "policy/v1"},
		{"policy/v1beta1", []string{"PodSecurityPolicy"}, 25, ""},
		{"node.k8s.io/v1beta1", []string{"RuntimeClass"}, 25, "node.k8s.io/v1"},
		{"autoscaling/v2beta2", []string{"HorizontalPodAutoscaler"}, 26, "autoscaling/v2"},
		{"flowcontrol.apiserver.k8s.io/v1beta1", flows, 26, "flowcontrol.apiserver.k8s.io/v1"},
		{"storage.k8s.io/v1beta1", []string{"CSIStorageCapacity"}, 27, "storage.k8s.io/v1"},
		{"flowcontrol.apiserver.k8s.io/v1beta2", flows, 29, "flowcontrol.apiserver.k8s.io/v1"},
		{"flowcontrol.apiserver.k8s.io/v1beta3", flows, 32, "flowcontrol.apiserver.k8s.io/v1"},
	}
}

// dropRemoved removes the objects of a set whose API the cluster does not serve, with a warning.
// Cluster API applies the other objects, too.
func (l *loader) dropRemoved(set *manifest.ResourceSet) {
	set.Documents = slices.DeleteFunc(set.Documents, func(d *manifest.Document) bool {
		removed, is := l.removed(d)
		if !is {
			return false
		}
		p := d.At
		p.What = fmt.Sprintf("%s is not applied: Kubernetes has no %s since v1.%d", d.Title(), removed.version, removed.minor)
		if p.Fix = "use " + removed.now; removed.now == "" {
			p.Fix = "remove it: there is no newer version"
		}
		l.warn(p)
		return true
	})
}

// removed returns the removed API version of an object.
func (l *loader) removed(d *manifest.Document) (removedAPI, bool) {
	version, known := uint64(0), l.cluster.Version != ""
	if v, err := semver.ParseTolerant(l.cluster.Version); known && err == nil {
		version = v.Minor
	} else if !l.managed {
		return removedAPI{}, false
	}
	for _, r := range removedAPIs() {
		gone := !known || version >= r.minor // without a version, EKS takes a new one
		if gone && r.version == manifest.StringField(d.Object, "apiVersion") && slices.Contains(r.kinds, d.Kind()) {
			return r, true
		}
	}
	return removedAPI{}, false
}
