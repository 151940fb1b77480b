package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// neededAPI is a version of an API group that clusters of kubeadm need, with the resources that are needed, and what needs them.
type neededAPI struct {
	version   string // group/version; without group for the core API
	resources string
	by        string
	joins     bool // only machines that join need it
}

// neededAPIs lists the APIs without which a kubeadm cluster does not start. kubeadm creates objects of the first three
// (cmd/kubeadm/app/phases/uploadconfig, phases/addons of Kubernetes). The scheduler and the admission plugins wait until their informers have synced,
// which never happens if an API is not served (cmd/kube-scheduler/app/server.go, WaitForReady in k8s.io/apiserver/pkg/admission/handler.go).
func neededAPIs() []neededAPI {
	return []neededAPI{
		{"/v1", "namespaces nodes pods services configmaps secrets serviceaccounts endpoints persistentvolumes persistentvolumeclaims", "kubeadm", false},
		{"rbac.authorization.k8s.io/v1", "roles rolebindings clusterroles clusterrolebindings", "kubeadm", false},
		{"apps/v1", "daemonsets deployments replicasets", "kube-proxy and CoreDNS", false},
		{"coordination.k8s.io/v1", "leases", "the kube-controller-manager and the kube-scheduler", false},
		{"discovery.k8s.io/v1", "endpointslices", "kube-proxy", false},
		{"certificates.k8s.io/v1", "certificatesigningrequests", "a kubelet that joins", true},
		{"storage.k8s.io/v1", "storageclasses csinodes csidrivers", "the kube-scheduler", false},
		{"policy/v1", "poddisruptionbudgets", "the kube-scheduler", false},
		{"scheduling.k8s.io/v1", "priorityclasses", "the admission of pods", false},
		{"admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations validatingwebhookconfigurations", "the admission of all objects", false},
	}
}

// servedAPIs is the value of runtime-config: what is on, by its key (MergeAPIResourceConfigs in k8s.io/apiserver/pkg/server/resourceconfig).
type servedAPIs map[string]bool

func readServed(value string) servedAPIs {
	all := servedAPIs{}
	for item := range strings.SplitSeq(value, ",") {
		key, text, is := strings.Cut(strings.TrimSpace(item), "=")
		if on, err := strconv.ParseBool(text); err == nil || !is || text == "" {
			all[key] = on || err != nil
		}
	}
	return all
}

// serves reports whether the API server serves a resource of a version that it serves by default.
func (s servedAPIs) serves(version, resource string) bool {
	on := true
	for _, key := range []string{"api/all", "api/ga", version, version + "/" + resource} {
		if set, is := s[key]; is && (key != "api/ga" || regex.Of(`/v\d+$`).MatchString(version)) {
			on = set
		}
	}
	return on
}

// missingAPI returns why a cluster does not start with a value of runtime-config, or "" if it does.
func missingAPI(value string, joins bool) string {
	served := readServed(value)
	for _, api := range neededAPIs() {
		for resource := range strings.FieldsSeq(api.resources) {
			if !served.serves(api.version, resource) && (joins || !api.joins) {
				return fmt.Sprintf("it turns off %s of %s, needed by %s", resource, cmp.Or(strings.TrimPrefix(api.version, "/"), "v1"), api.by)
			}
		}
	}
	return ""
}

// replacedAdmission refuses disable-admission-plugins with NodeRestriction or ServiceAccount. kubeadm enables NodeRestriction, and the API server
// does not start with a plugin that is both enabled and disabled (Validate in k8s.io/apiserver/pkg/server/options/admission.go). Without
// ServiceAccount, pods get no tokens, and kube-proxy and CoreDNS need theirs.
func replacedAdmission(args map[string]string) (bad []replaced) {
	off := strings.Split(args["disable-admission-plugins"], ",")
	if _, set := args["enable-admission-plugins"]; !set && slices.Contains(off, "NodeRestriction") {
		bad = append(bad, replaced{
			"disable-admission-plugins", "the API server does not start: kubeadm enables NodeRestriction, which this disables", "remove NodeRestriction from it",
		})
	}
	if slices.Contains(off, "ServiceAccount") {
		bad = append(bad, replaced{
			"disable-admission-plugins", "without ServiceAccount, pods get no tokens: kube-proxy and CoreDNS do not start", "remove ServiceAccount from it",
		})
	}
	return bad
}
