package kubesim

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// resource is a kind with the group and version that serves it.
type resource struct {
	metav1.APIResource
	gv string
}

// builtin lists the built-in kinds: "resource Kind" by group and version. Kinds without
// namespace have a star.
func builtin() map[string]string {
	return map[string]string{
		"v1": "namespaces Namespace*,nodes Node*,pods Pod,configmaps ConfigMap,secrets Secret,services Service,serviceaccounts ServiceAccount," +
			"persistentvolumes PersistentVolume*,persistentvolumeclaims PersistentVolumeClaim,events Event,endpoints Endpoints," +
			"limitranges LimitRange,podtemplates PodTemplate,replicationcontrollers ReplicationController,resourcequotas ResourceQuota",
		"apps/v1": "daemonsets DaemonSet,deployments Deployment,replicasets ReplicaSet,statefulsets StatefulSet," +
			"controllerrevisions ControllerRevision",
		"autoscaling/v1":               "horizontalpodautoscalers HorizontalPodAutoscaler",
		"autoscaling/v2":               "horizontalpodautoscalers HorizontalPodAutoscaler",
		"discovery.k8s.io/v1":          "endpointslices EndpointSlice",
		"events.k8s.io/v1":             "events Event",
		"node.k8s.io/v1":               "runtimeclasses RuntimeClass*",
		"batch/v1":                     "jobs Job,cronjobs CronJob",
		"policy/v1":                    "poddisruptionbudgets PodDisruptionBudget",
		"rbac.authorization.k8s.io/v1": "clusterroles ClusterRole*,clusterrolebindings ClusterRoleBinding*,roles Role,rolebindings RoleBinding",
		"storage.k8s.io/v1":            "storageclasses StorageClass*,csidrivers CSIDriver*,volumeattachments VolumeAttachment*",
		"scheduling.k8s.io/v1":         "priorityclasses PriorityClass*",
		"networking.k8s.io/v1":         "networkpolicies NetworkPolicy,ingresses Ingress,ingressclasses IngressClass*",
		"certificates.k8s.io/v1":       "certificatesigningrequests CertificateSigningRequest*",
		"coordination.k8s.io/v1":       "leases Lease",
		"apiextensions.k8s.io/v1":      "customresourcedefinitions CustomResourceDefinition*",
		"apiregistration.k8s.io/v1":    "apiservices APIService*",
		"admissionregistration.k8s.io/v1": "mutatingwebhookconfigurations MutatingWebhookConfiguration*," +
			"validatingwebhookconfigurations ValidatingWebhookConfiguration*",
	}
}

// newer lists built-in kinds that not all versions of Kubernetes have, by API version and by the first minor version of Kubernetes that has
// them. The kinds are written as in builtin. The source is the API reference of each version
// (https://kubernetes.io/docs/reference/kubernetes-api/).
func newer() map[string]map[int]string {
	return map[string]map[int]string{
		"flowcontrol.apiserver.k8s.io/v1": {29: "flowschemas FlowSchema*,prioritylevelconfigurations PriorityLevelConfiguration*"},
		"admissionregistration.k8s.io/v1": {
			30: "validatingadmissionpolicies ValidatingAdmissionPolicy*,validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding*",
			36: "mutatingadmissionpolicies MutatingAdmissionPolicy*,mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding*",
		},
		"networking.k8s.io/v1": {33: "servicecidrs ServiceCIDR*,ipaddresses IPAddress*"},
		"storage.k8s.io/v1":    {34: "volumeattributesclasses VolumeAttributesClass*"},
		"resource.k8s.io/v1": {
			34: "deviceclasses DeviceClass*,resourceslices ResourceSlice*,resourceclaims ResourceClaim,resourceclaimtemplates ResourceClaimTemplate",
		},
	}
}

// served returns the built-in kinds of an API version that the Kubernetes version of the cluster has.
func (c *Cluster) served(gv string) string {
	list := builtin()[gv]
	for since, more := range newer()[gv] {
		if c.minor() >= since {
			list += "," + more
		}
	}
	return strings.TrimPrefix(list, ",")
}

// kinds returns the kinds of a group and version.
func (c *Cluster) kinds(gv string) (all []metav1.APIResource) {
	for kind := range strings.SplitSeq(c.served(gv), ",") {
		if name, kind, ok := strings.Cut(kind, " "); ok {
			all = append(all, metav1.APIResource{Name: name, Kind: strings.TrimSuffix(kind, "*"), Namespaced: !strings.HasSuffix(kind, "*")})
		}
	}
	return append(all, c.Kinds[gv]...)
}

func (c *Cluster) resourceOf(gv, kind string) (resource, bool) {
	for _, r := range c.kinds(gv) {
		if r.Kind == kind {
			return resource{r, gv}, true
		}
	}
	return resource{}, false
}

// groups lists the API groups.
func (c *Cluster) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	versions := slices.Sorted(maps.Keys(builtin()))
	for gv := range newer() {
		if !slices.Contains(versions, gv) && c.served(gv) != "" {
			versions = append(versions, gv)
		}
	}
	for gv := range c.Kinds {
		if !slices.Contains(versions, gv) {
			versions = append(versions, gv)
		}
	}
	for _, gv := range versions {
		name, version, ok := strings.Cut(gv, "/")
		if !ok {
			continue // the core group is not in this list
		}
		of := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
		if i := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == name }); i >= 0 {
			list.Groups[i].Versions = append(list.Groups[i].Versions, of)
			continue
		}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{of}, PreferredVersion: of})
	}
	return list
}

func (c *Cluster) discover(gv string) (int, any) {
	all := c.kinds(gv)
	if len(all) == 0 {
		return failure(http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	}
	return http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: all}
}

// define starts to serve a custom resource.
func (c *Cluster) define(crd Object) {
	versions, _ := value(crd, "spec", "versions").([]any)
	for _, v := range versions {
		version, _ := v.(Object)
		gv := text(crd, "spec", "group") + "/" + text(version, "name")
		r := metav1.APIResource{
			Name:       text(crd, "spec", "names", "plural"),
			Kind:       text(crd, "spec", "names", "kind"),
			Namespaced: text(crd, "spec", "scope") == "Namespaced",
		}
		if _, known := c.resourceOf(gv, r.Kind); !known {
			c.Kinds[gv] = append(c.Kinds[gv], r)
		}
	}
}

// place is the target of a request: an object, a list, or a subresource.
type place struct {
	resource             resource
	namespace, name, sub string
}

func (r resource) path(namespace, name string) string {
	path := "/apis/" + r.gv
	if !strings.Contains(r.gv, "/") {
		path = "/api/" + r.gv
	}
	if r.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Name
	if name != "" {
		path += "/" + name
	}
	return path
}

func (p place) full() string { return p.resource.path(p.namespace, p.name) }

// parse parses a path.
func (c *Cluster) parse(path string) (at place, ok bool) {
	words := strings.Split(strings.Trim(path, "/"), "/")
	skip := 3
	if words[0] == "api" {
		skip = 2
	}
	if len(words) <= skip {
		return at, false
	}
	gv := strings.Join(words[1:skip], "/")
	if words = words[skip:]; len(words) > 2 && words[0] == "namespaces" && !isNamespacePart(words[2]) {
		at.namespace, words = words[1], words[2:]
	}
	for _, r := range c.kinds(gv) {
		if r.Name != words[0] {
			continue
		}
		at.resource = resource{r, gv}
		if len(words) > 1 {
			at.name = words[1]
		}
		if len(words) > 2 {
			at.sub = words[2]
		}
		return at, true
	}
	return at, false
}

func isNamespacePart(word string) bool { return word == "status" || word == "finalize" }

// selected reports whether an object matches the selectors.
func selected(o Object, labelText, fieldText string) (bool, error) {
	want, err := labels.Parse(labelText)
	if err != nil {
		return false, err
	}
	has := labels.Set{}
	given, _ := value(o, "metadata", "labels").(Object)
	for k, v := range given {
		has[k], _ = v.(string)
	}
	field, err := fields.ParseSelector(fieldText)
	if err != nil {
		return false, err
	}
	return want.Matches(has) && field.Matches(fields.Set{
		"metadata.name": text(o, "metadata", "name"), "metadata.namespace": text(o, "metadata", "namespace"),
		"spec.nodeName": text(o, "spec", "nodeName"), "type": text(o, "type"), "status.phase": text(o, "status", "phase"),
	}), nil
}
