package kubesim

import "fmt"

// use is a ConfigMap, a Secret or a claim without which a pod does not start.
type use struct {
	kind, name string
	keys       []string
}

// withoutFiles returns why a pod does not start: a ConfigMap, a Secret or a claim that it uses does not exist, or does not have a key that it
// uses (pkg/volume/configmap, pkg/volume/secret and makeEnvironmentVariables in pkg/kubelet of Kubernetes v1.34.2; VolumeBinding of the
// kube-scheduler).
func (c *Cluster) withoutFiles(namespace string, pod Object) string {
	for _, u := range usesOf(pod) {
		o := c.Objects["/api/v1/namespaces/"+namespace+"/"+u.kind+"/"+u.name]
		switch {
		case u.name == "kube-root-ca.crt":
			continue
		case o == nil:
			return fmt.Sprintf("%s %q not found", u.kind, u.name)
		}
		data, _ := o["data"].(Object)
		binary, _ := o["binaryData"].(Object)
		for _, key := range u.keys {
			if data[key] == nil && binary[key] == nil {
				return fmt.Sprintf("references non-existent key %s of %s %s", key, u.kind, u.name)
			}
		}
	}
	return ""
}

// usesOf returns what a pod needs to start.
func usesOf(pod Object) (all []use) {
	add := func(kind, name string, o Object, keys ...string) {
		if name != "" && o["optional"] != true {
			all = append(all, use{kind, name, keys})
		}
	}
	volumes := list(pod, "spec", "volumes")
	for _, v := range volumes {
		volumes = append(volumes, list(v, "projected", "sources")...)
	}
	for _, v := range volumes {
		files, _ := v["configMap"].(Object)
		secret, _ := v["secret"].(Object)
		add("configmaps", text(files, "name"), files, keysOf(files)...)
		add("secrets", text(secret, "secretName")+text(secret, "name"), secret, keysOf(secret)...)
		add("persistentvolumeclaims", text(v, "persistentVolumeClaim", "claimName"), nil)
	}
	kinds := map[string]string{"configMap": "configmaps", "secret": "secrets"}
	for _, container := range append(list(pod, "spec", "initContainers"), list(pod, "spec", "containers")...) {
		for field, kind := range kinds {
			for _, from := range list(container, "envFrom") {
				ref, _ := from[field+"Ref"].(Object)
				add(kind, text(ref, "name"), ref)
			}
			for _, e := range list(container, "env") {
				ref, _ := value(e, "valueFrom", field+"KeyRef").(Object)
				add(kind, text(ref, "name"), ref, text(ref, "key"))
			}
		}
	}
	return all
}

func keysOf(o Object) (keys []string) {
	for _, item := range list(o, "items") {
		keys = append(keys, text(item, "key"))
	}
	return keys
}
