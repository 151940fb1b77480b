package kubesim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// volumeLaws are the rules about the volumes of pods.
func volumeLaws() (all []law) {
	for _, of := range []string{"secret", "configMap", "projected.sources[].secret", "projected.sources[].configMap"} {
		all = append(all,
			law{path: "volumes[]." + of + ".items[].key", wrong: needed},
			law{path: "volumes[]." + of + ".items[].path", wrong: fileName},
			law{path: "volumes[]." + of + ".items[].mode", wrong: between(0, 0o777)},
		)
	}
	for _, of := range []string{"downwardAPI", "projected.sources[].downwardAPI"} {
		all = append(all,
			law{path: "volumes[]." + of + ".items[].path", wrong: fileName},
			law{path: "volumes[]." + of + ".items[]", wrong: fieldFile},
		)
	}
	for _, of := range []string{"secret", "configMap", "downwardAPI", "projected"} {
		all = append(all, law{path: "volumes[]." + of + ".defaultMode", wrong: between(0, 0o777)})
	}
	return append(all,
		law{path: "volumes[].emptyDir.sizeLimit", wrong: func(v any, _ Object) string {
			if strings.HasPrefix(fmt.Sprint(v), "-") {
				return "Forbidden: SizeLimit field must be a valid resource quantity"
			}
			return ""
		}},
		law{path: "volumes[].projected.sources", wrong: distinctFiles},
		law{path: "volumes[].projected.sources[].serviceAccountToken.path", wrong: fileName},
		law{path: "volumes[].hostPath.path", wrong: func(v any, _ Object) string {
			if s, _ := v.(string); slices.Contains(strings.Split(s, "/"), "..") {
				return fmt.Sprintf("Invalid value: %q: must not contain '..'", s)
			}
			return ""
		}},
		law{path: "volumes[].nfs.server", wrong: needed},
		law{path: "volumes[].nfs.path", wrong: func(v any, _ Object) string {
			if s, _ := v.(string); !strings.HasPrefix(s, "/") {
				return fmt.Sprintf("Invalid value: %q: must be an absolute path", s)
			}
			return ""
		}},
		law{path: "volumes[].csi.driver", wrong: csiDriver},
		law{path: "volumes[].ephemeral.volumeClaimTemplate", wrong: needed},
		law{path: "volumes[].ephemeral.volumeClaimTemplate.spec.accessModes", wrong: needed},
	)
}

// csiDriver is the rule of the name of a driver of volumes.
func csiDriver(v any, _ Object) string {
	if s, _ := v.(string); s == "" || len(s) > 63 || !regex.Of(subdomain).MatchString(strings.ToLower(s)) {
		return fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 subdomain", s)
	}
	return ""
}

// fileName is the rule of the path of a file in a volume.
func fileName(v any, in Object) string {
	s, _ := v.(string)
	if s == "" {
		return required
	} else if strings.HasPrefix(s, "..") {
		return fmt.Sprintf("Invalid value: %q: must not start with '..'", s)
	}
	return leavesFolder(v, in)
}

// fieldFile is the rule of a field of a pod that becomes a file.
func fieldFile(v any, _ Object) string {
	f, _ := v.(Object)
	switch {
	case f["fieldRef"] == nil && f["resourceFieldRef"] == nil:
		return "Required value: one of fieldRef and resourceFieldRef is required"
	case f["resourceFieldRef"] != nil && text(f, "resourceFieldRef", "containerName") == "":
		return "resourceFieldRef.containerName: Required value"
	case f["fieldRef"] != nil:
		return shown("name", "namespace", "uid", "labels", "annotations")(value(f, "fieldRef", "fieldPath"), nil)
	}
	return ""
}

// shown permits these fields of metadata of a pod, and single labels and annotations.
func shown(names ...string) func(any, Object) string {
	return func(v any, _ Object) string {
		s, _ := v.(string)
		if name, is := strings.CutPrefix(s, "metadata."); is && slices.Contains(names, name) || regex.Of(`^metadata\.(labels|annotations)\['`).MatchString(s) {
			return ""
		}
		return fmt.Sprintf("fieldPath: Unsupported value: %q", s)
	}
}

// distinctFiles is the rule of the parts of a projected volume.
func distinctFiles(v any, _ Object) string {
	seen := map[string]bool{}
	for i, source := range listed(v) {
		if len(source) > 1 {
			return fmt.Sprintf("[%d]: Forbidden: may not specify more than 1 volume type per source", i)
		}
		for _, part := range source {
			p, _ := part.(Object)
			paths := []string{text(p, "path")}
			for _, item := range listed(p["items"]) {
				paths = append(paths, text(item, "path"))
			}
			for _, path := range paths {
				if seen[path] && path != "" {
					return fmt.Sprintf("Invalid value: %q: conflicting duplicate paths", path)
				}
				seen[path] = true
			}
		}
	}
	return ""
}

// mountLaws are the rules about the volumes of a container of a pod.
func mountLaws(pod Object) []law {
	return []law{
		{path: "volumeMounts[].mountPropagation", wrong: among("Bidirectional", "HostToContainer", "None")},
		{path: "volumeMounts", wrong: recursive},
		{path: "volumeMounts[].subPathExpr", wrong: func(v any, in Object) string {
			if v != nil && text(in, "subPath") != "" {
				return "Invalid value: subPathExpr and subPath are mutually exclusive"
			}
			return leavesFolder(v, in)
		}},
		{path: "volumeDevices[].name", wrong: func(v any, _ Object) string {
			for _, volume := range listed(pod["volumes"]) {
				if text(volume, "name") == v && volume["persistentVolumeClaim"] == nil && volume["ephemeral"] == nil {
					return fmt.Sprintf("Invalid value: %q: can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode", v)
				}
			}
			return ""
		}},
		{path: "volumeDevices[].devicePath", wrong: func(v any, _ Object) string {
			if s, _ := v.(string); s == "" || slices.Contains(strings.Split(s, "/"), "..") {
				return fmt.Sprintf("Invalid value: %q: can not contain backsteps ('..')", s)
			}
			return ""
		}},
		{path: "securityContext", wrong: func(_ any, in Object) string {
			for _, m := range listed(in["volumeMounts"]) {
				if text(m, "mountPropagation") == "Bidirectional" && value(in, "securityContext", "privileged") != true {
					return "Forbidden: Bidirectional mount propagation is available only to privileged containers"
				}
			}
			return ""
		}},
	}
}

func recursive(v any, _ Object) string {
	for i, m := range listed(v) {
		of := text(m, "recursiveReadOnly")
		if of != "" && of != "Disabled" && m["readOnly"] != true {
			return fmt.Sprintf("[%d].recursiveReadOnly: Forbidden: may only be specified when readOnly is true", i)
		}
	}
	return ""
}
