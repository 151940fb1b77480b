package rules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// usedFile is a ConfigMap, a Secret or a claim without which a pod does not start.
type usedFile struct {
	at, kind, name string
	keys           []string // that it needs

	of    podsOf
	title string
}

// checkFiles checks the ConfigMaps, Secrets and claims without which the kubelet does not start pods. It warns about one that is not in the
// manifest, unless another object mentions its name, such as a Certificate or a Job that creates it.
func (c *checks) checkFiles(workloads []podsOf, made madeObjects) {
	if len(c.cluster.Charts) > 0 {
		return
	}
	uses := map[string][]*manifest.Document{} // who uses what nothing makes
	var missing []usedFile
	for _, w := range workloads {
		for _, f := range filesOf(w) {
			title := f.kind + " " + w.namespace + "/" + f.name
			if d := made.core[title]; d != nil {
				c.checkKeys(w, d, f, title)
			} else if !c.isForeign(w.namespace, made) && !c.systemFile(w.namespace, f.name) {
				if uses[title] == nil {
					f.of, f.title = w, title
					missing = append(missing, f)
				}
				uses[title] = append(uses[title], w.Document)
			}
		}
	}
	for _, f := range missing {
		if c.hasObject(func(d *manifest.Document) bool {
			return !slices.Contains(uses[f.title], d) && strings.Contains(fmt.Sprint(d.Object), f.name)
		}) {
			continue
		}
		c.warn(f.of.problem(
			fmt.Sprintf("the pods of %s do not start: %s%s: nothing in the manifest makes the %s", f.of.Title(), f.of.at, f.at, f.title),
			"bring it too, or correct the name",
		))
	}
}

// systemFile reports whether Kubernetes, kubeadm or EKS creates the object.
func (c *checks) systemFile(namespace, name string) bool {
	return name == "kube-root-ca.crt" || namespace == "kube-system" &&
		(c.managed || slices.Contains([]string{"kubeadm-config", "kubelet-config", "kube-proxy", "coredns", "extension-apiserver-authentication", "cluster-info"}, name))
}

// checkKeys refuses references to keys that a ConfigMap or Secret of the manifest does not have.
func (c *checks) checkKeys(w podsOf, d *manifest.Document, f usedFile, title string) {
	for _, key := range f.keys {
		has := slices.ContainsFunc([]string{"data", "binaryData", "stringData"}, func(field string) bool {
			values, _ := d.Object[field].(map[string]any)
			_, is := values[key]
			return is
		})
		if !has {
			c.fail(w.problem(
				fmt.Sprintf("the pods of %s do not start: %s%s: the %s has no key %s", w.Title(), w.at, f.at, title, key), "add the key, or correct it",
			))
		}
	}
}

// filesOf returns what the pods of an object mount and read.
func filesOf(w podsOf) (all []usedFile) {
	for i := range w.pod.Spec.Volumes {
		v, at := &w.pod.Spec.Volumes[i], fmt.Sprintf("volumes[%d].", i)
		switch {
		case v.ConfigMap != nil && !isTrue(v.ConfigMap.Optional):
			all = append(all, used(at+"configMap.name", "ConfigMap", v.ConfigMap.Name, keysOf(v.ConfigMap.Items)))
		case v.Secret != nil && !isTrue(v.Secret.Optional):
			all = append(all, used(at+"secret.secretName", "Secret", v.Secret.SecretName, keysOf(v.Secret.Items)))
		case v.PersistentVolumeClaim != nil && !claimsOf(w)[v.Name]:
			all = append(all, used(at+"persistentVolumeClaim.claimName", "PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName, nil))
		case v.Projected != nil:
			all = append(all, projectedFiles(at, v.Projected)...)
		}
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", w.pod.Spec.InitContainers}, {"containers", w.pod.Spec.Containers}} {
		for i := range list.containers {
			all = append(all, variablesOf(fmt.Sprintf("%s[%d].", list.name, i), &list.containers[i])...)
		}
	}
	return all
}

func projectedFiles(at string, v *corev1.ProjectedVolumeSource) (all []usedFile) {
	for i, s := range v.Sources {
		of := fmt.Sprintf("%sprojected.sources[%d].", at, i)
		if s.ConfigMap != nil && !isTrue(s.ConfigMap.Optional) {
			all = append(all, used(of+"configMap.name", "ConfigMap", s.ConfigMap.Name, keysOf(s.ConfigMap.Items)))
		}
		if s.Secret != nil && !isTrue(s.Secret.Optional) {
			all = append(all, used(of+"secret.name", "Secret", s.Secret.Name, keysOf(s.Secret.Items)))
		}
	}
	return all
}

// variablesOf returns the ConfigMaps and Secrets from which a container gets environment variables.
func variablesOf(at string, c *corev1.Container) (all []usedFile) {
	for i, e := range c.EnvFrom {
		of := fmt.Sprintf("%senvFrom[%d].", at, i)
		if r := e.ConfigMapRef; r != nil && !isTrue(r.Optional) {
			all = append(all, used(of+"configMapRef.name", "ConfigMap", r.Name, nil))
		}
		if r := e.SecretRef; r != nil && !isTrue(r.Optional) {
			all = append(all, used(of+"secretRef.name", "Secret", r.Name, nil))
		}
	}
	for i, e := range c.Env {
		of := fmt.Sprintf("%senv[%d].valueFrom.", at, i)
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil && !isTrue(r.Optional) {
			all = append(all, used(of+"configMapKeyRef", "ConfigMap", r.Name, []string{r.Key}))
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil && !isTrue(r.Optional) {
			all = append(all, used(of+"secretKeyRef", "Secret", r.Name, []string{r.Key}))
		}
	}
	return all
}

func keysOf(items []corev1.KeyToPath) (keys []string) {
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys
}

func isTrue(b *bool) bool { return b != nil && *b }

// claimsOf returns the names of the volumes for which a StatefulSet creates claims.
func claimsOf(w podsOf) map[string]bool {
	names := map[string]bool{}
	templates, _ := manifest.ValueAt(w.Object, "spec.volumeClaimTemplates").([]any)
	for _, x := range templates {
		name, _ := manifest.ValueAt(x, "metadata.name").(string)
		names[name] = true
	}
	return names
}

func used(at, kind, name string, keys []string) usedFile {
	return usedFile{at: at, kind: kind, name: name, keys: keys}
}
