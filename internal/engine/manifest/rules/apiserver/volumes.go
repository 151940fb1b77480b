package apiserver

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// volumes checks the volumes of a pod (ValidateVolumes in pkg/apis/core/validation), and returns them by their names.
func (c *check) volumes(at string, volumes []corev1.Volume) map[string]corev1.VolumeSource {
	all := map[string]corev1.VolumeSource{}
	for i := range volumes {
		v, field := &volumes[i], fmt.Sprintf("%svolumes[%d].", at, i)
		if _, is := all[v.Name]; is {
			c.refuse(field+"name", "another volume has the name "+v.Name, "change one of them")
		}
		all[v.Name] = v.VolumeSource
		if v.Image != nil {
			continue // the API server drops it, unless a feature gate is on
		}
		c.label(field+"name", v.Name)
		if of := sources(v.VolumeSource); len(of) > 1 {
			c.refuse(field+of[1], "the volume is of another type, too: "+of[0], "make two volumes of it")
		}
		c.volume(field, &v.VolumeSource)
	}
	return all
}

// sources returns the fields that say of which type a volume is. A valid volume has one.
func sources(v any) (names []string) {
	of := reflect.ValueOf(v)
	for i, f := range fieldsOf(of.Type()) {
		if !of.Field(i).IsNil() {
			names = append(names, f.name)
		}
	}
	return names
}

// volume checks what a volume consists of.
func (c *check) volume(at string, v *corev1.VolumeSource) {
	switch {
	case v.Secret != nil:
		c.need(at+"secret.secretName", v.Secret.SecretName)
		c.mode(at+"secret.defaultMode", v.Secret.DefaultMode)
		c.items(at+"secret.", v.Secret.Items)
	case v.ConfigMap != nil:
		c.need(at+"configMap.name", v.ConfigMap.Name)
		c.mode(at+"configMap.defaultMode", v.ConfigMap.DefaultMode)
		c.items(at+"configMap.", v.ConfigMap.Items)
	case v.DownwardAPI != nil:
		c.mode(at+"downwardAPI.defaultMode", v.DownwardAPI.DefaultMode)
		c.fieldsAsFiles(at+"downwardAPI.", v.DownwardAPI.Items)
	case v.EmptyDir != nil:
		if n := v.EmptyDir.SizeLimit; n != nil && n.Sign() < 0 {
			c.refuse(at+"emptyDir.sizeLimit", n.String()+" is negative", "use a positive size such as 1Gi")
		}
	case v.PersistentVolumeClaim != nil:
		c.need(at+"persistentVolumeClaim.claimName", v.PersistentVolumeClaim.ClaimName)
	case v.Projected != nil:
		c.projected(at+"projected", v.Projected)
	case v.HostPath != nil:
		c.hostPath(at+"hostPath.", v.HostPath)
	case v.Ephemeral != nil:
		if t := v.Ephemeral.VolumeClaimTemplate; t == nil {
			c.need(at+"ephemeral.volumeClaimTemplate", "")
		} else {
			c.claim(at+"ephemeral.volumeClaimTemplate.spec.", &t.Spec)
		}
	default:
		c.remoteVolume(at, v)
	}
}

// remoteVolume checks a volume that is not on the machine of the pod.
func (c *check) remoteVolume(at string, v *corev1.VolumeSource) {
	switch {
	case v.CSI != nil:
		c.driver(at+"csi.driver", v.CSI.Driver)
		if ref := v.CSI.NodePublishSecretRef; ref != nil {
			c.need(at+"csi.nodePublishSecretRef.name", ref.Name)
		}
	case v.NFS != nil:
		c.nfs(at+"nfs.", v.NFS)
	case v.AWSElasticBlockStore != nil:
		c.need(at+"awsElasticBlockStore.volumeID", v.AWSElasticBlockStore.VolumeID)
		between(c, at+"awsElasticBlockStore.partition", &v.AWSElasticBlockStore.Partition, 0, 255)
	case v.GitRepo != nil:
		c.need(at+"gitRepo.repository", v.GitRepo.Repository)
		c.inside(at+"gitRepo.directory", v.GitRepo.Directory)
	}
}

func (c *check) nfs(at string, v *corev1.NFSVolumeSource) {
	c.need(at+"server", v.Server)
	c.need(at+"path", v.Path)
	c.when(v.Path != "" && !strings.HasPrefix(v.Path, "/"), at+"path", fmt.Sprintf("%q is not an absolute path", v.Path), "write one that begins with /")
}

func (c *check) hostPath(at string, v *corev1.HostPathVolumeSource) {
	c.need(at+"path", v.Path)
	c.noSteps(at+"path", v.Path)
	if v.Type != nil {
		oneOf(
			c, at+"type", *v.Type, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate,
			corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev,
		)
	}
}

// driver checks the name of a CSI driver (ValidateCSIDriverName).
func (c *check) driver(field, name string) {
	const longest = 63
	c.need(field, name)
	c.subdomain(field, strings.ToLower(name))
	c.when(len(name) > longest, field, fmt.Sprintf("%q is longer than %d characters", name, longest), "use a shorter name")
}

// mode checks the permissions of files. YAML reads 0644 as an octal number, and 644 as a decimal one.
func (c *check) mode(field string, n *int32) {
	if n != nil && (*n < 0 || *n > 0o777) {
		c.refuse(field, fmt.Sprintf("%d is 0%o in octal, and not between 0 and 0777", *n, *n), "write an octal number, such as 0644")
	}
}

// items checks which keys of a Secret or a ConfigMap become files.
func (c *check) items(at string, items []corev1.KeyToPath) {
	for i, item := range items {
		field := fmt.Sprintf("%sitems[%d].", at, i)
		c.need(field+"key", item.Key)
		c.file(field+"path", item.Path)
		c.mode(field+"mode", item.Mode)
	}
}

// file checks the path of a file in a volume.
func (c *check) file(field, path string) {
	before := len(c.found)
	c.need(field, path)
	c.inside(field, path)
	if len(c.found) == before {
		c.when(strings.HasPrefix(path, ".."), field, fmt.Sprintf("%q begins with two dots", path), "use another name")
	}
}

// noSteps refuses a path with "..".
func (c *check) noSteps(field, path string) {
	c.when(slices.Contains(strings.Split(path, "/"), ".."), field, fmt.Sprintf("%q has a part ..", path), "write the path without it")
}

// fieldsAsFiles checks which fields of a pod become files.
func (c *check) fieldsAsFiles(at string, items []corev1.DownwardAPIVolumeFile) {
	for i, item := range items {
		field := fmt.Sprintf("%sitems[%d]", at, i)
		c.file(field+".path", item.Path)
		c.mode(field+".mode", item.Mode)
		c.onlyOne(
			field,
			given(setting{"fieldRef", item.FieldRef != nil}, setting{"resourceFieldRef", item.ResourceFieldRef != nil}),
			"fieldRef, resourceFieldRef",
		)
		if item.FieldRef != nil {
			c.fieldRef(field+".fieldRef", item.FieldRef, "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
		}
		if r := item.ResourceFieldRef; r != nil {
			c.need(field+".resourceFieldRef.containerName", r.ContainerName)
			c.resourceRef(field+".resourceFieldRef.", r)
		}
	}
}

// fieldRef checks which field of a pod is meant (validateObjectFieldSelector).
func (c *check) fieldRef(at string, r *corev1.ObjectFieldSelector, permitted ...string) {
	c.need(at+".fieldPath", r.FieldPath)
	if m := regex.Of(`^(metadata\.(?:labels|annotations))\['(.*)'\]$`).FindStringSubmatch(r.FieldPath); m != nil {
		key := m[2]
		if m[1] == "metadata.annotations" {
			key = strings.ToLower(key)
		}
		c.qualified(at, key)
		return
	}
	oneOf(c, at+".fieldPath", r.FieldPath, permitted...)
}

// resourceRef checks which resource of a container is meant.
func (c *check) resourceRef(at string, r *corev1.ResourceFieldSelector) {
	c.need(at+"resource", r.Resource)
	if regex.Of(`^(requests|limits)\.hugepages-`).MatchString(r.Resource) {
		return
	}
	oneOf(
		c, at+"resource", r.Resource, "limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory",
		"requests.ephemeral-storage",
	)
}

// projected checks the parts of a projected volume (validateProjectionSources).
func (c *check) projected(at string, v *corev1.ProjectedVolumeSource) {
	c.mode(at+".defaultMode", v.DefaultMode)
	paths := map[string]bool{}
	for i := range v.Sources {
		s, field := &v.Sources[i], fmt.Sprintf("%s.sources[%d].", at, i)
		if of := sources(*s); len(of) > 1 {
			c.refuse(strings.TrimSuffix(field, "."), strings.Join(of, " and ")+" are in one item", "make an item of each")
		}
		for _, path := range c.projectedPart(field, s) {
			c.when(paths[path] && path != "", at, fmt.Sprintf("two files have the path %s", path), "change one of them")
			paths[path] = true
		}
	}
}

// projectedPart checks a part of a projected volume, and returns the paths of its files.
func (c *check) projectedPart(at string, s *corev1.VolumeProjection) (paths []string) {
	if s.Secret != nil {
		c.need(at+"secret.name", s.Secret.Name)
		c.items(at+"secret.", s.Secret.Items)
		paths = append(paths, pathsOf(s.Secret.Items)...)
	}
	if s.ConfigMap != nil {
		c.need(at+"configMap.name", s.ConfigMap.Name)
		c.items(at+"configMap.", s.ConfigMap.Items)
		paths = append(paths, pathsOf(s.ConfigMap.Items)...)
	}
	if s.DownwardAPI != nil {
		c.fieldsAsFiles(at+"downwardAPI.", s.DownwardAPI.Items)
		for _, item := range s.DownwardAPI.Items {
			paths = append(paths, item.Path)
		}
	}
	if t := s.ServiceAccountToken; t != nil {
		const shortest = 10 * 60
		field := at + "serviceAccountToken."
		if n := t.ExpirationSeconds; n != nil && *n < shortest {
			c.refuse(field+"expirationSeconds", fmt.Sprintf("%d is less than 10 minutes", *n), "use 600 or more")
		}
		between(c, field+"expirationSeconds", t.ExpirationSeconds, math.MinInt64, 1<<32)
		c.file(field+"path", t.Path)
		paths = append(paths, t.Path)
	}
	return paths
}

func pathsOf(items []corev1.KeyToPath) (paths []string) {
	for _, item := range items {
		paths = append(paths, item.Path)
	}
	return paths
}

// mounts checks where the volumes of a container are (ValidateVolumeMounts).
func (c *check) mounts(at string, of *corev1.Container, volumes map[string]corev1.VolumeSource) {
	paths := map[string]bool{}
	for i := range of.VolumeMounts {
		m, field := &of.VolumeMounts[i], fmt.Sprintf("%svolumeMounts[%d].", at, i)
		if _, is := volumes[m.Name]; !is {
			c.refuse(field+"name", fmt.Sprintf("the pod has no volume %s", m.Name), "add it to volumes, or correct the name")
		}
		c.need(field+"mountPath", m.MountPath)
		c.inside(field+"subPath", m.SubPath)
		c.inside(field+"subPathExpr", m.SubPathExpr)
		c.when(m.SubPath != "" && m.SubPathExpr != "", field+"subPathExpr", "stands beside subPath", "remove one of them")
		if paths[m.MountPath] && m.MountPath != "" {
			c.refuse(field+"mountPath", "another volume is mounted at "+m.MountPath, "change one of them")
		}
		paths[m.MountPath] = true
		c.propagation(field, m, of.SecurityContext)
	}
	c.devices(at, of, volumes, paths)
}

// propagation checks which mounts a container shares with its machine.
func (c *check) propagation(at string, m *corev1.VolumeMount, s *corev1.SecurityContext) {
	shared := corev1.MountPropagationNone
	if m.MountPropagation != nil {
		shared = *m.MountPropagation
	}
	isOneOf(
		c, at+"mountPropagation", m.MountPropagation, corev1.MountPropagationNone, corev1.MountPropagationHostToContainer,
		corev1.MountPropagationBidirectional,
	)
	privileged := s != nil && yes(s.Privileged)
	c.when(
		shared == corev1.MountPropagationBidirectional && !privileged, at+"mountPropagation",
		"Bidirectional is only for privileged containers", "set securityContext.privileged, or write HostToContainer",
	)
	if m.RecursiveReadOnly == nil {
		return
	}
	isOneOf(
		c, at+"recursiveReadOnly", m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible,
		corev1.RecursiveReadOnlyEnabled,
	)
	if *m.RecursiveReadOnly != corev1.RecursiveReadOnlyDisabled {
		c.when(!m.ReadOnly, at+"recursiveReadOnly", "is only for mounts with readOnly: true", "set readOnly, or remove it")
		c.when(shared != corev1.MountPropagationNone, at+"recursiveReadOnly", "is only for mountPropagation: None", "remove one of them")
	}
}

// devices checks the block devices of a container (ValidateVolumeDevices).
func (c *check) devices(at string, of *corev1.Container, volumes map[string]corev1.VolumeSource, mounted map[string]bool) {
	paths := map[string]bool{}
	for i, d := range of.VolumeDevices {
		field := fmt.Sprintf("%svolumeDevices[%d].", at, i)
		v, is := volumes[d.Name]
		block := v.PersistentVolumeClaim != nil || v.Ephemeral != nil || len(sources(v)) == 0
		c.when(!is, field+"name", fmt.Sprintf("the pod has no volume %s", d.Name), "add it to volumes, or correct the name")
		c.when(is && !block, field+"name", fmt.Sprintf("the volume %s is no claim, and only those can be devices", d.Name), "mount it in volumeMounts")
		c.when(
			slices.ContainsFunc(of.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == d.Name }), field+"name",
			fmt.Sprintf("the volume %s is in volumeMounts, too", d.Name), "remove one of them",
		)
		c.need(field+"devicePath", d.DevicePath)
		c.noSteps(field+"devicePath", d.DevicePath)
		c.when(paths[d.DevicePath] || mounted[d.DevicePath], field+"devicePath", fmt.Sprintf("%s is used twice", d.DevicePath), "change one of them")
		paths[d.DevicePath] = true
	}
}
