package kubernetes

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// refusalOfEKS returns the status with which the API server of EKS refuses a request; 0 if it does
// not. It is 401 for a principal without an access entry or a mapping in the ConfigMap aws-auth
// ("Unauthorized or access denied", troubleshooting IAM, EKS user guide), and 403 for one whose
// policies and groups do not permit the request ("Review access policy permissions").
func (svc *Service) refusalOfEKS(k *kubesim.Cluster, req *http.Request) int {
	principal := svc.principalOf(req)
	c := svc.EKS.ClusterNamed(k.EKS)
	switch {
	case principal == "":
		return http.StatusUnauthorized
	case c == nil || c.Creator == "": // a copy of another account's: who may enter is not known
		return 0
	}
	var policies []eks.AccessPolicy
	var groups []string
	configMap, api := string(types.AuthenticationModeConfigMap), string(types.AuthenticationModeApi)
	e := c.Access[principal]
	if e != nil && !svc.Visible(e.Born) { // it takes several seconds ("Grant IAM users access to Kubernetes with EKS access entries")
		e = nil
	}
	switch {
	case c.Authentication != configMap && e != nil: // an entry takes precedence over the ConfigMap
		policies, groups = e.Policies, e.Groups
	case c.Authentication == configMap && principal == c.Creator:
		return 0
	case c.Authentication == api:
		return http.StatusUnauthorized
	default:
		var mapped bool
		if groups, mapped = mappedGroups(k, principal); !mapped {
			return http.StatusUnauthorized
		}
	}
	if isOpen(req.URL.Path) || slices.ContainsFunc(groups, func(g string) bool { return g == "system:masters" || isBound(k, g) }) ||
		slices.ContainsFunc(policies, func(p eks.AccessPolicy) bool { return permits(p, req) }) {
		return 0
	}
	return http.StatusForbidden
}

// principalOf returns the ARN of the user or the role that has signed the token of a request; ""
// for a token that is not one of EKS.
func (svc *Service) principalOf(req *http.Request) string {
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer k8s-aws-v1.")
	signed, err := base64.RawURLEncoding.DecodeString(token)
	if !ok || err != nil {
		return ""
	}
	u, err := url.Parse(string(signed))
	if err != nil {
		return ""
	}
	key, _, _ := strings.Cut(u.Query().Get("X-Amz-Credential"), "/")
	if key == "" {
		return ""
	}
	if r := svc.IAM.AssumedWith(key); r != nil {
		return r.RoleARN
	}
	return svc.IAM.ARN("user", "", iam.Caller)
}

// mappedGroups returns the groups of a principal in the ConfigMap aws-auth.
func mappedGroups(k *kubesim.Cluster, principal string) (groups []string, mapped bool) {
	data, _ := k.Get("/api/v1/namespaces/kube-system/configmaps/aws-auth")["data"].(kubesim.Object)
	for _, field := range []string{"mapRoles", "mapUsers"} {
		text, _ := data[field].(string)
		var rows []struct {
			RoleARN string   `json:"rolearn"`
			UserARN string   `json:"userarn"`
			Groups  []string `json:"groups"`
		}
		if err := yaml.Unmarshal([]byte(text), &rows); err != nil {
			continue
		}
		for _, r := range rows {
			if r.RoleARN == principal || r.UserARN == principal {
				return r.Groups, true
			}
		}
	}
	return nil, false
}

// isOpen reports whether every user may read a path: health, version and what there is
// ("Discovery roles", Using RBAC Authorization, Kubernetes).
func isOpen(path string) bool {
	return slices.Contains([]string{"/version", "/readyz", "/healthz", "/livez", "/api", "/apis", "/api/v1"}, path) ||
		strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") <= 3
}

// isBound reports whether a ClusterRoleBinding makes a group administrators. Other roles are not
// simulated.
func isBound(k *kubesim.Cluster, group string) bool {
	for _, path := range core.SortedKeys(k.Objects) {
		if !strings.HasPrefix(path, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/") ||
			kubesim.Value(k.Objects[path], "roleRef", "name") != "cluster-admin" {
			continue
		}
		subjects, _ := k.Objects[path]["subjects"].([]any)
		for _, x := range subjects {
			if s, ok := x.(kubesim.Object); ok && s["kind"] == "Group" && s["name"] == group {
				return true
			}
		}
	}
	return false
}

// permits reports whether an access policy permits a request ("Review access policy permissions",
// EKS user guide): administrators of the cluster everything, others what is in namespaces, viewers
// reading it without Secrets, and AmazonEKSAdminViewPolicy reading everything.
func permits(p eks.AccessPolicy, req *http.Request) bool {
	_, rest, in := strings.Cut(req.URL.Path, "/namespaces/")
	namespace, what, of := strings.Cut(rest, "/")
	in = in && of
	if len(p.Namespaces) > 0 && (!in || !slices.Contains(p.Namespaces, namespace)) {
		return false
	}
	reads := req.Method == http.MethodGet
	switch p.ARN[strings.LastIndex(p.ARN, "/")+1:] {
	case "AmazonEKSClusterAdminPolicy":
		return true
	case "AmazonEKSAdminViewPolicy":
		return reads
	case "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy":
		return in
	case "AmazonEKSViewPolicy":
		return in && reads && !strings.HasPrefix(what, "secrets")
	}
	return false
}
