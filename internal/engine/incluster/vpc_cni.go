package incluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// VPCCNI are the settings of the VPC CNI of an EKS cluster: environment variables of its
// DaemonSet aws-node, and an ENIConfig for each zone that has a subnet for pods.
type VPCCNI struct {
	API     *API
	Server  *graph.Ref[APIServerState]
	Cluster *graph.Ref[eks.ClusterState]
	Name    string                                 // of the Cluster, in a label of the ENIConfigs
	Env     []corev1.EnvVar                        // spec.vpcCni.env
	Subnets map[string]*graph.Ref[ec2.SubnetState] // for pods, by zone
}

// VPCCNIState are the current settings.
type VPCCNIState struct {
	Defined   bool // the API server serves ENIConfigs
	Installed bool
	Env       map[string]string // by name, as JSON
	Own       []string          // names of those that runs have set
	Configs   map[string]string // subnet and security group by zone, of ENIConfigs
	Managed   []string          // names of the ENIConfigs of this cluster
}

// CloudID implements graph.State.
func (VPCCNIState) CloudID() string { return "kube-system/aws-node" }

var (
	_ graph.Desired[VPCCNIState] = (*VPCCNI)(nil)
	_ graph.Updater[VPCCNIState] = (*VPCCNI)(nil)
)

// eniConfigs is the path of the ENIConfigs, which have no namespace.
const eniConfigs = "/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs"

// Needs implements graph.Desired.
func (v *VPCCNI) Needs() []graph.Edge {
	needs := append(graph.On(v.Server), graph.Reads(v.Cluster)...)
	for _, zone := range slices.Sorted(maps.Keys(v.Subnets)) {
		needs = append(needs, graph.On(v.Subnets[zone])...)
	}
	return needs
}

// labels are the labels that CAPA sets on ENIConfigs.
func (v *VPCCNI) labels() map[string]any {
	return map[string]any{"app.kubernetes.io/managed-by": "cluster-api-provider-aws", "app.kubernetes.io/part-of": v.Name}
}

// Find implements graph.Desired.
func (v *VPCCNI) Find(ctx context.Context, c *cloud.Clients) (*VPCCNIState, error) {
	if !answers(v.Server) {
		return nil, nil // the API server does not answer yet
	}
	k, err := v.API.Client(c)
	if err != nil {
		return nil, err
	}
	s := &VPCCNIState{Env: map[string]string{}, Configs: map[string]string{}}
	var have appsv1.DaemonSet
	if err := k.Get(ctx, awsNode, &have); apierrors.IsNotFound(err) {
		return s, nil
	} else if err != nil {
		return nil, retryUnavailable(ctx, err)
	}
	s.Installed, s.Own = true, appliedEnv(&have)
	for _, container := range have.Spec.Template.Spec.Containers {
		if container.Name == "aws-node" {
			for _, e := range container.Env {
				s.Env[e.Name] = settingOf(e)
			}
		}
	}
	return s, v.findConfigs(ctx, k, s)
}

// awsNode is the path of the DaemonSet of the VPC CNI.
const awsNode = "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"

// podTemplateFields are fields of a workload in managedFields.
type podTemplateFields struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers map[string]struct {
					Env map[string]any `json:"f:env"`
				} `json:"f:containers"`
			} `json:"f:spec"`
		} `json:"f:template"`
	} `json:"f:spec"`
}

// appliedEnv returns the names of the environment variables of aws-node that runs have set.
func appliedEnv(o *appsv1.DaemonSet) (names []string) {
	for _, fields := range fieldsOfWriter[podTemplateFields](o.ManagedFields, kube.FieldManager, metav1.ManagedFieldsOperationApply) {
		for item := range fields.Spec.Template.Spec.Containers[`k:{"name":"aws-node"}`].Env {
			var key struct{ Name string }
			if raw, is := strings.CutPrefix(item, "k:"); is && json.Unmarshal([]byte(raw), &key) == nil {
				names = append(names, key.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// settingOf returns an environment variable without its name, as JSON.
func settingOf(e corev1.EnvVar) string {
	if e.ValueFrom == nil {
		return e.Value
	}
	text, err := json.Marshal(e.ValueFrom)
	if err != nil {
		return e.ValueFrom.String()
	}
	return string(text)
}

func (v *VPCCNI) findConfigs(ctx context.Context, k *kube.Client, s *VPCCNIState) error {
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Spec     struct {
				Subnet         string
				SecurityGroups []string
			}
		}
	}
	err := k.Get(ctx, eniConfigs, &list)
	if apierrors.IsNotFound(err) { // the API server does not serve them yet
		return nil
	}
	s.Defined = err == nil
	for _, x := range list.Items {
		s.Configs[x.Metadata.Name] = configOf(x.Spec.Subnet, x.Spec.SecurityGroups...)
		if x.Metadata.Labels["app.kubernetes.io/part-of"] == v.Name && x.Metadata.Labels["app.kubernetes.io/managed-by"] == "cluster-api-provider-aws" {
			s.Managed = append(s.Managed, x.Metadata.Name)
		}
	}
	return retryUnavailable(ctx, err)
}

func configOf(subnet string, groups ...string) string { return fmt.Sprintf("%s %v", subnet, groups) }

// Diff implements graph.Desired.
func (v *VPCCNI) Diff(have *VPCCNIState) (d plan.Diff) {
	if !have.Installed && v.hasSettings() {
		d.Await("DaemonSet aws-node", "", "installed by EKS")
		return d
	}
	if !have.Defined && len(v.Subnets) > 0 {
		d.Await("CustomResourceDefinition eniconfigs.crd.k8s.amazonaws.com", "", "served by the API server")
		return d
	}
	for _, e := range v.Env {
		d.Set("env "+e.Name, have.Env[e.Name], settingOf(e))
	}
	for _, name := range v.former(have) {
		d.Set("env "+name, have.Env[name], "")
	}
	for _, zone := range slices.Sorted(maps.Keys(v.Subnets)) {
		d.Set("ENIConfig "+zone, have.Configs[zone], v.config(zone))
	}
	for _, name := range have.Managed {
		if v.Subnets[name] == nil {
			d.Set("ENIConfig "+name, have.Configs[name], "")
		}
	}
	return d
}

// hasSettings reports whether the manifest has settings. If not, a run only removes the settings of earlier runs.
func (v *VPCCNI) hasSettings() bool { return len(v.Env)+len(v.Subnets) > 0 }

// former lists the environment variables that runs have set and that are not in the manifest any more.
func (v *VPCCNI) former(have *VPCCNIState) []string {
	return slices.DeleteFunc(slices.Clone(have.Own), func(name string) bool {
		return slices.ContainsFunc(v.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	})
}

// config returns the desired settings of the ENIConfig of a zone.
func (v *VPCCNI) config(zone string) string {
	cluster, _ := v.Cluster.Found()
	return configOf(v.Subnets[zone].CloudID(), cluster.Group)
}

// Update implements graph.Updater.
func (v *VPCCNI) Update(ctx context.Context, c *cloud.Clients, have *VPCCNIState, _ plan.Diff) (*VPCCNIState, error) {
	k, err := v.API.Client(c)
	if err != nil {
		return nil, err
	}
	if err := v.updateEnv(ctx, k, have); err != nil {
		return nil, retryUnavailable(ctx, fmt.Errorf("environment of aws-node: %w", err))
	}
	cluster, _ := v.Cluster.Found()
	for _, zone := range slices.Sorted(maps.Keys(v.Subnets)) {
		if have.Configs[zone] == v.config(zone) {
			continue
		}
		if err := v.apply(ctx, k, zone, cluster.Group); err != nil {
			return nil, retryUnavailable(ctx, fmt.Errorf("ENIConfig %s: %w", zone, err))
		}
	}
	for _, name := range have.Managed {
		if v.Subnets[name] != nil {
			continue
		}
		if err := k.Delete(ctx, eniConfigs+"/"+url.PathEscape(name)); err != nil && !apierrors.IsNotFound(err) {
			return nil, retryUnavailable(ctx, fmt.Errorf("ENIConfig %s: %w", name, err))
		}
	}
	return nil, nil // nil: Find has to read it
}

// updateEnv sets the environment variables, if one of them differs: a server-side apply
// removes those that it does not name.
func (v *VPCCNI) updateEnv(ctx context.Context, k *kube.Client, have *VPCCNIState) error {
	env, same := []any{}, len(v.former(have)) == 0
	for _, e := range v.Env {
		same = same && have.Env[e.Name] == settingOf(e)
		x := map[string]any{"name": e.Name, "value": e.Value}
		if e.ValueFrom != nil {
			var from map[string]any
			if err := json.Unmarshal([]byte(settingOf(e)), &from); err != nil {
				return err
			}
			x = map[string]any{"name": e.Name, "valueFrom": from}
		}
		env = append(env, x)
	}
	if same {
		return nil
	}
	_, err := k.Apply(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": map[string]any{"name": "aws-node", "namespace": metav1.NamespaceSystem},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "aws-node", "env": env}},
		}}},
	}}, false)
	return err
}

func (v *VPCCNI) apply(ctx context.Context, k *kube.Client, zone, group string) error {
	_, err := k.Apply(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": "ENIConfig", "metadata": map[string]any{"name": zone, "labels": v.labels()},
		"spec": map[string]any{"subnet": v.Subnets[zone].CloudID(), "securityGroups": []any{group}},
	}}, false)
	return err
}
