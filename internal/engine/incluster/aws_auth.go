package incluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// AWSAuth is the ConfigMap aws-auth, which lists the IAM roles and users that may use an
// EKS cluster without an access entry. Entries that no run has written stay: EKS and people write to it too.
type AWSAuth struct {
	API    *API
	Server *graph.Ref[APIServerState]
	Wanted []Mapping
}

// Mapping gives an IAM role or user access.
type Mapping struct {
	Users    bool // in mapUsers; otherwise in mapRoles
	ARN      string
	Username string
	Groups   []string
}

// writtenAnnotation lists the entries that runs have written, such as "mapUsers arn:aws:iam::123456789012:user/bob". By it, a run knows which
// entries it has to remove when they are no longer in the manifest: those users and roles would otherwise keep their access
// (https://github.com/kubernetes-sigs/cluster-api-provider-aws/issues/4740).
const writtenAnnotation = "clusterawsadm/mapped"

// entry is what writtenAnnotation says of the mapping.
func (m Mapping) entry() string {
	list, _ := m.list()
	return list + " " + m.ARN
}

func (m Mapping) list() (list, key string) {
	if m.Users {
		return "mapUsers", "userarn"
	}
	return "mapRoles", "rolearn"
}

// AWSAuthState is the ConfigMap.
type AWSAuthState struct {
	there   bool
	lists   map[string][]map[string]any // mapRoles, mapUsers
	written []string                    // the entries that runs have written
}

// CloudID implements graph.State.
func (AWSAuthState) CloudID() string { return "kube-system/aws-auth" }

var (
	_ graph.Desired[AWSAuthState] = (*AWSAuth)(nil)
	_ graph.Creator[AWSAuthState] = (*AWSAuth)(nil)
	_ graph.Updater[AWSAuthState] = (*AWSAuth)(nil)
)

// Needs implements graph.Desired.
func (a *AWSAuth) Needs() []graph.Edge { return graph.On(a.Server) }

// Find implements graph.Desired.
func (a *AWSAuth) Find(ctx context.Context, c *cloud.Clients) (*AWSAuthState, error) {
	if !answers(a.Server) {
		return a.none(), nil // the API server does not answer yet
	}
	k, err := a.API.Client(c)
	if err != nil {
		return nil, err
	}
	var have corev1.ConfigMap
	err = k.Get(ctx, "/api/v1/namespaces/kube-system/configmaps/aws-auth", &have)
	if apierrors.IsNotFound(err) {
		return a.none(), nil
	}
	if err != nil {
		return nil, retryUnavailable(ctx, err)
	}
	s := &AWSAuthState{there: true, lists: map[string][]map[string]any{}}
	if text := have.Annotations[writtenAnnotation]; text != "" {
		s.written = strings.Split(text, ",")
	}
	for name, text := range have.Data {
		var list []map[string]any
		if err := yaml.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("ConfigMap kube-system/aws-auth: %s: %w: correct it with kubectl", name, err)
		}
		s.lists[name] = list
	}
	return s, nil
}

// none is the state without a ConfigMap: if nothing is to be in it, it need not exist.
func (a *AWSAuth) none() *AWSAuthState {
	if len(a.Wanted) > 0 {
		return nil
	}
	return &AWSAuthState{}
}

// Diff implements graph.Desired.
func (a *AWSAuth) Diff(have *AWSAuthState) (d plan.Diff) {
	for _, m := range a.Wanted {
		d.Set(m.entry(), have.mappingOf(m), m.Username+" in "+strings.Join(m.Groups, ", "))
	}
	for _, m := range a.unwanted(have) {
		d.Set(m.entry(), have.mappingOf(m), "")
	}
	if len(d) == 0 { // what the entries are recorded as follows from them
		d.Set("recorded entries", strings.Join(have.written, ", "), strings.Join(a.entries(), ", "))
	}
	return d
}

// unwanted lists the entries that a run has written, that exist, and that the manifest does not have.
func (a *AWSAuth) unwanted(have *AWSAuthState) (all []Mapping) {
	wanted := a.entries()
	for _, text := range have.written {
		list, arn, _ := strings.Cut(text, " ")
		m := Mapping{Users: list == "mapUsers", ARN: arn}
		if !slices.Contains(wanted, text) && have.mappingOf(m) != "" {
			all = append(all, m)
		}
	}
	return all
}

// entries lists the desired entries.
func (a *AWSAuth) entries() (all []string) {
	for _, m := range a.Wanted {
		all = append(all, m.entry())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mappingOf returns the user and groups that an ARN is mapped to.
func (s *AWSAuthState) mappingOf(m Mapping) string {
	list, key := m.list()
	for _, x := range s.lists[list] {
		if x[key] == m.ARN {
			groups, _ := x["groups"].([]any)
			names := make([]string, len(groups))
			for i, g := range groups {
				names[i] = fmt.Sprint(g)
			}
			return fmt.Sprint(x["username"]) + " in " + strings.Join(names, ", ")
		}
	}
	return ""
}

// Create implements graph.Creator.
func (a *AWSAuth) Create(ctx context.Context, c *cloud.Clients) (*AWSAuthState, error) {
	return a.Update(ctx, c, &AWSAuthState{lists: map[string][]map[string]any{}}, nil)
}

// Update implements graph.Updater.
func (a *AWSAuth) Update(ctx context.Context, c *cloud.Clients, have *AWSAuthState, _ plan.Diff) (*AWSAuthState, error) {
	k, err := a.API.Client(c)
	if err != nil {
		return nil, err
	}
	data := map[string]any{}
	for _, m := range a.Wanted {
		list, key := m.list()
		entry := map[string]any{key: m.ARN, "username": m.Username, "groups": m.Groups}
		have.lists[list] = replaced(have.lists[list], key, entry)
		data[list] = ""
	}
	for _, m := range a.unwanted(have) {
		list, key := m.list()
		have.lists[list] = slices.DeleteFunc(have.lists[list], func(x map[string]any) bool { return x[key] == m.ARN })
		data[list] = ""
	}
	for list := range data {
		text, err := yaml.Marshal(have.lists[list])
		if err != nil {
			return nil, err
		}
		data[list] = string(text)
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": data,
		"metadata": map[string]any{
			"name": "aws-auth", "namespace": metav1.NamespaceSystem, "annotations": map[string]any{writtenAnnotation: strings.Join(a.entries(), ",")},
		},
	}}
	at := k.Objects(kube.Core("configmaps"), metav1.NamespaceSystem)
	if !have.there {
		_, err = at.Create(ctx, o, metav1.CreateOptions{FieldManager: kube.FieldManager})
	} else {
		_, err = k.Apply(ctx, o, false)
	}
	return nil, retryUnavailable(ctx, err)
}

// replaced replaces the entry with the same ARN in a list, or appends one.
func replaced(list []map[string]any, key string, entry map[string]any) []map[string]any {
	for i, x := range list {
		if x[key] == entry[key] {
			list[i] = entry
			return list
		}
	}
	return append(list, entry)
}
