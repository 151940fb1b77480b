package apiserver

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// storage checks objects about volumes (pkg/apis/storage/validation).
func (c *check) storage(o runtime.Object) {
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		c.claim("spec.", &o.Spec)
	case *corev1.PersistentVolume:
		c.persistentVolume(&o.Spec)
	case *storagev1.StorageClass:
		c.storageClass(o)
	case *storagev1.VolumeAttributesClass:
		c.provisioner("driverName", o.DriverName)
		c.when(len(o.Parameters) == 0, "parameters", "at least one parameter is required", "add one, such as iops")
	case *storagev1.CSIDriver:
		c.csiDriver(o)
	}
}

// claim checks what a claim of a volume asks for (ValidatePersistentVolumeClaimSpec).
func (c *check) claim(at string, s *corev1.PersistentVolumeClaimSpec) {
	c.accessModes(at+"accessModes", s.AccessModes)
	c.labelSelector(at+"selector", s.Selector)
	size, is := s.Resources.Requests[corev1.ResourceStorage]
	c.when(!is, at+"resources[storage]", "resources.requests.storage is required", "set it, such as 10Gi")
	c.when(
		is && size.Sign() <= 0,
		at+"resources[storage]",
		fmt.Sprintf("resources.requests.storage is %s, and has to be positive", size.String()),
		"use a size such as 10Gi",
	)
	if s.StorageClassName != nil {
		c.subdomain(at+"storageClassName", *s.StorageClassName)
	}
	isOneOf(c, at+"volumeMode", s.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
}

func (c *check) accessModes(field string, modes []corev1.PersistentVolumeAccessMode) {
	if len(modes) == 0 {
		c.refuse(field, "at least one access mode is required", "write [ReadWriteOnce]")
	}
	for _, m := range modes {
		oneOf(c, field, m, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
	}
	others := slices.ContainsFunc(modes, func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadWriteOncePod })
	c.when(slices.Contains(modes, corev1.ReadWriteOncePod) && others, field, "ReadWriteOncePod excludes the other modes", "write it alone, or remove it")
}

// persistentVolume checks a PersistentVolume (ValidatePersistentVolumeSpec).
func (c *check) persistentVolume(s *corev1.PersistentVolumeSpec) {
	size, is := s.Capacity[corev1.ResourceStorage]
	switch {
	case len(s.Capacity) == 0:
		c.need("spec.capacity", "")
	case !is || len(s.Capacity) > 1:
		c.refuse("spec.capacity", "storage is the only resource of a volume", "write {storage: 10Gi}")
	case size.Sign() <= 0:
		c.refuse("spec.capacity[storage]", fmt.Sprintf("%s is not positive", size.String()), "use a size such as 10Gi")
	}
	c.accessModes("spec.accessModes", s.AccessModes)
	const reclaim = "spec.persistentVolumeReclaimPolicy"
	oneOf(
		c, reclaim, s.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain,
		corev1.PersistentVolumeReclaimRecycle,
	)
	c.subdomain("spec.storageClassName", s.StorageClassName)
	isOneOf(c, "spec.volumeMode", s.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	required := s.NodeAffinity != nil && s.NodeAffinity.Required != nil
	if required {
		c.nodeSelector("spec.nodeAffinity.required", s.NodeAffinity.Required)
	}
	switch of := sources(s.PersistentVolumeSource); {
	case len(of) == 0:
		c.refuse("spec", "the volume has no type", "add one, such as csi")
	case len(of) > 1:
		c.refuse("spec."+of[1], "the volume is of another type, too: "+of[0], "remove one of them")
	}
	c.when(s.Local != nil && !required, "spec.nodeAffinity", "a local volume needs it", "set required.nodeSelectorTerms to the Node that has the volume")
	c.when(
		s.HostPath != nil && path.Clean(s.HostPath.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle,
		reclaim, "Recycle would delete the whole machine: hostPath is /", "write Retain, or another path",
	)
	c.persistentSource(s)
}

func (c *check) persistentSource(s *corev1.PersistentVolumeSpec) {
	switch {
	case s.CSI != nil:
		c.driver("spec.csi.driver", s.CSI.Driver)
		c.need("spec.csi.volumeHandle", s.CSI.VolumeHandle)
	case s.HostPath != nil:
		c.hostPath("spec.hostPath.", s.HostPath)
	case s.NFS != nil:
		c.nfs("spec.nfs.", s.NFS)
	case s.Local != nil:
		c.need("spec.local.path", s.Local.Path)
		c.noSteps("spec.local.path", s.Local.Path)
	case s.AWSElasticBlockStore != nil:
		c.need("spec.awsElasticBlockStore.volumeID", s.AWSElasticBlockStore.VolumeID)
	}
}

func (c *check) storageClass(o *storagev1.StorageClass) {
	c.provisioner("provisioner", o.Provisioner)
	_, nameless := o.Parameters[""]
	c.when(nameless, "parameters", "a parameter has no name", "remove it, or name it")
	if o.ReclaimPolicy != nil {
		oneOf(c, "reclaimPolicy", *o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)
	}
	isOneOf(c, "volumeBindingMode", o.VolumeBindingMode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)
	for i, t := range o.AllowedTopologies {
		for j, e := range t.MatchLabelExpressions {
			field := fmt.Sprintf("allowedTopologies[%d].matchLabelExpressions[%d].", i, j)
			c.qualified(field+"key", e.Key)
			c.when(len(e.Values) == 0, field+"values", "at least one value is required", "add one, such as the name of a zone")
		}
	}
}

func (c *check) provisioner(field, name string) {
	c.need(field, name)
	if name != "" {
		c.qualified(field, strings.ToLower(name))
	}
}

func (c *check) csiDriver(o *storagev1.CSIDriver) {
	c.driver("metadata.name", o.Name)
	s := &o.Spec
	isOneOf(c, "spec.fsGroupPolicy", s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy)
	for _, m := range s.VolumeLifecycleModes {
		oneOf(c, "spec.volumeLifecycleModes", m, storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)
	}
	for i, t := range s.TokenRequests {
		between(c, fmt.Sprintf("spec.tokenRequests[%d].expirationSeconds", i), t.ExpirationSeconds, 600, 1<<32)
	}
}

// segment refuses a name that cannot be a part of an address of the API.
func (c *check) segment(field, name string) {
	bad := name == "." || name == ".." || strings.ContainsAny(name, "/%")
	c.when(bad, field, fmt.Sprintf("%q contains / or %%, or is . or ..", name), "use another name")
}

// serviceReference checks which Service of a namespace the API server calls (ValidateWebhookService in k8s.io/apiserver/pkg/util/webhook).
func (c *check) serviceReference(at, namespace, name string, path *string, port *int32) {
	c.need(at+"name", name)
	c.need(at+"namespace", namespace)
	between(c, at+"port", port, 1, 65535)
	if path == nil || *path == "" || *path == "/" {
		return
	}
	rest, absolute := strings.CutPrefix(*path, "/")
	c.when(!absolute, at+"path", fmt.Sprintf("%q does not begin with /", *path), "write /"+*path)
	for step := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		c.when(
			len(validation.IsDNS1123Subdomain(step)) > 0, at+"path", fmt.Sprintf("%q has the part %q", *path, step),
			"use small letters, digits, - and . in each part",
		)
	}
}

// ruleSelectors checks label selectors that are not required.
func (c *check) ruleSelectors(at string, namespaces, objects *metav1.LabelSelector) {
	c.labelSelector(at+"namespaceSelector", namespaces)
	c.labelSelector(at+"objectSelector", objects)
}
