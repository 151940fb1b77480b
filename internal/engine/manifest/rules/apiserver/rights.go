package apiserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// binding checks a RoleBinding or a ClusterRoleBinding (pkg/apis/rbac/validation).
func (c *check) binding(role rbacv1.RoleRef, subjects []rbacv1.Subject, kinds ...string) {
	c.need("roleRef.name", role.Name)
	c.need("roleRef.kind", role.Kind)
	oneOf(c, "roleRef.kind", role.Kind, kinds...)
	for i, s := range subjects {
		at := fmt.Sprintf("subjects[%d].", i)
		c.need(at+"kind", s.Kind)
		c.need(at+"name", s.Name)
		oneOf(c, at+"kind", s.Kind, rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind)
		if s.Kind == rbacv1.ServiceAccountKind {
			if !slices.Contains(kinds, "Role") { // a RoleBinding has a namespace itself
				c.need(at+"namespace", s.Namespace)
			}
		}
	}
}

// rights checks the rules of a role.
func (c *check) rights(rules []rbacv1.PolicyRule, namespaced bool) {
	for i, r := range rules {
		at := fmt.Sprintf("rules[%d].", i)
		if len(r.Verbs) == 0 {
			c.refuse(at+"verbs", "a rule needs at least one verb", "add one, such as get")
		}
		switch {
		case len(r.NonResourceURLs) > 0 && namespaced:
			c.refuse(at+"nonResourceURLs", "a Role has no rights to URLs", "use a ClusterRole")
		case len(r.NonResourceURLs) > 0:
		case len(r.APIGroups) == 0:
			c.refuse(at+"apiGroups", "a rule needs at least one API group", `add one: "" is the group of pods and Services`)
		case len(r.Resources) == 0:
			c.refuse(at+"resources", "a rule needs at least one resource", "add one, such as pods")
		}
	}
}

// claim checks what a claim of a volume asks for (ValidatePersistentVolumeClaimSpec).
func (c *check) claim(at string, spec *corev1.PersistentVolumeClaimSpec) {
	c.accessModes(at+"accessModes", spec.AccessModes)
	if size, is := spec.Resources.Requests[corev1.ResourceStorage]; !is || size.Sign() <= 0 {
		c.refuse(at+"resources[storage]", "resources.requests.storage is required", "set it, such as 10Gi")
	}
	if spec.VolumeMode != nil {
		oneOf(c, at+"volumeMode", *spec.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	}
}

func (c *check) accessModes(field string, modes []corev1.PersistentVolumeAccessMode) {
	if len(modes) == 0 {
		c.refuse(field, "at least one access mode is required", "write [ReadWriteOnce]")
	}
	for _, m := range modes {
		oneOf(c, field, m, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
	}
}

func (c *check) storageClass(o *storagev1.StorageClass) {
	if o.ReclaimPolicy != nil {
		oneOf(c, "reclaimPolicy", *o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)
	}
	if o.VolumeBindingMode != nil {
		oneOf(c, "volumeBindingMode", *o.VolumeBindingMode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)
	}
}
