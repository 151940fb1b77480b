package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // API version of classes
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/webhooks/admission"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	"sigs.k8s.io/cluster-api/exp/topology/desiredstate"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class"
	capa "github.com/clusterawsadm/clusterawsadm/test/upstream"
)

// topologyInput is a Cluster with its class and templates.
type topologyInput struct {
	cluster   *clusterv1.Cluster
	class     *clusterv1.ClusterClass
	templates map[string]map[string]any // by "kind/name"
}

// readTopology reads manifests.
func readTopology(t require.TestingT, text string) topologyInput {
	in := topologyInput{templates: map[string]map[string]any{}}
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var m map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(document), &m), document)
		kind, _ := m["kind"].(string)
		old := m["apiVersion"] == "cluster.x-k8s.io/v1beta1"
		switch {
		case kind == "Cluster":
			in.cluster = typed(t, m, old, coreconversion.ConvertClusterV1Beta1ToHub)
			in.cluster.Namespace = "default"
		case kind == "ClusterClass":
			in.class = typed(t, m, old, coreconversion.ConvertClusterClassV1Beta1ToHub)
			in.class.Namespace = "default"
		case strings.HasSuffix(kind, "Template"):
			// Integers stay integers, as in an API server.
			u := &unstructured.Unstructured{}
			raw, err := yaml.YAMLToJSON([]byte(document))
			require.NoError(t, err)
			require.NoError(t, u.UnmarshalJSON(raw))
			u.SetNamespace("default")
			in.templates[kind+"/"+u.GetName()] = u.Object
		}
	}
	in.cluster.TypeMeta = metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster"}
	return in
}

// typed decodes an object of either version.
func typed[Old, New any](t require.TestingT, m map[string]any, old bool, convert func(context.Context, *Old, *New) error) *New {
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	newest := new(New)
	if !old {
		require.NoError(t, json.Unmarshal(raw, newest))
		return newest
	}
	older := new(Old)
	require.NoError(t, json.Unmarshal(raw, older))
	require.NoError(t, convert(context.Background(), older, newest))
	return newest
}

var _ = clusterv1beta1.GroupVersion

// crds simulates the queries of Cluster API to its API server during the generation: the
// contract of the version of a control plane.
type crds struct{ client.Client }

func (crds) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	labels := map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
	if strings.HasPrefix(o.GetName(), "aws") {
		labels = map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1_v1beta2"}
	}
	o.SetLabels(labels)
	return nil
}

type noCache struct{ clustercache.ClusterCache }

// made are the generated objects by purpose.
type made map[string]map[string]any

// theirs runs the generator of Cluster API.
func theirs(t require.TestingT, in topologyInput) (made, error) {
	ctx := context.Background()
	cluster, clusterClass := in.cluster.DeepCopy(), in.class.DeepCopy()
	for _, v := range clusterClass.Spec.Variables {
		clusterClass.Status.Variables = append(clusterClass.Status.Variables, clusterv1.ClusterClassStatusVariable{
			Name:        v.Name,
			Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{From: clusterv1.VariableDefinitionFromInline, Required: v.Required, Schema: v.Schema}},
		})
	}
	if errs := admission.DefaultVariables(cluster, clusterClass); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	s := scope.New(cluster)
	s.Current.ControlPlane = &scope.ControlPlaneState{}
	template := func(r clusterv1.ClusterClassTemplateReference) *unstructured.Unstructured {
		return (&unstructured.Unstructured{Object: in.templates[r.Kind+"/"+r.Name]}).DeepCopy()
	}
	spec := clusterClass.Spec
	s.Blueprint = &scope.ClusterBlueprint{
		Topology: cluster.Spec.Topology, ClusterClass: clusterClass,
		InfrastructureClusterTemplate: template(spec.Infrastructure.TemplateRef),
		ControlPlane:                  &scope.ControlPlaneBlueprint{Template: template(spec.ControlPlane.TemplateRef)},
		MachineDeployments:            map[string]*scope.MachineDeploymentBlueprint{},
	}
	if machine := spec.ControlPlane.MachineInfrastructure.TemplateRef; machine.IsDefined() {
		s.Blueprint.ControlPlane.InfrastructureMachineTemplate = template(machine)
	}
	for _, d := range spec.Workers.MachineDeployments {
		s.Blueprint.MachineDeployments[d.Class] = &scope.MachineDeploymentBlueprint{
			Metadata: d.Metadata, BootstrapTemplate: template(d.Bootstrap.TemplateRef), InfrastructureMachineTemplate: template(d.Infrastructure.TemplateRef),
			HealthCheck: d.HealthCheck,
		}
	}
	generator, err := desiredstate.NewGenerator(crds{}, noCache{}, nil, nil, nil)
	require.NoError(t, err)
	state, err := generator.Generate(ctx, s)
	if err != nil {
		return nil, err
	}
	m := made{"infrastructure": state.InfrastructureCluster.Object, "plane": state.ControlPlane.Object.Object}
	if state.ControlPlane.InfrastructureMachineTemplate != nil {
		m["machine"] = state.ControlPlane.InfrastructureMachineTemplate.Object
	}
	for name, d := range state.MachineDeployments {
		raw, err := json.Marshal(d.Object)
		require.NoError(t, err)
		var o map[string]any
		require.NoError(t, json.Unmarshal(raw, &o))
		o["apiVersion"], o["kind"] = clusterv1.GroupVersion.String(), "MachineDeployment"
		m["md "+name], m["bootstrap "+name], m["infra "+name] = o, d.BootstrapTemplate.Object, d.InfrastructureMachineTemplate.Object
	}
	return m, nil
}

// ours runs the expansion under test.
func ours(in topologyInput) (made, []class.Problem) {
	result, problems := class.Expand(context.Background(), class.Input{
		Cluster: in.cluster.DeepCopy(), Class: in.class.DeepCopy(),
		Template: func(kind, apiVersion, name string) (*class.Template, bool) {
			v := in.templates[kind+"/"+name]
			if v == nil {
				return nil, false
			}
			return &class.Template{Kind: kind, APIVersion: apiVersion, Name: name, Value: (&unstructured.Unstructured{Object: v}).DeepCopy().Object}, true
		},
	})
	if result == nil {
		return nil, problems
	}
	objects := result.Objects
	m := made{"infrastructure": objects[0].Value, "plane": objects[1].Value}
	objects = objects[2:]
	if in.class.Spec.ControlPlane.MachineInfrastructure.TemplateRef.IsDefined() {
		m["machine"], objects = objects[0].Value, objects[1:]
	}
	for i, d := range in.cluster.Spec.Topology.Workers.MachineDeployments {
		m["md "+d.Name], m["bootstrap "+d.Name], m["infra "+d.Name] = objects[3*i].Value, objects[3*i+1].Value, objects[3*i+2].Value
	}
	return m, nil
}

func nameOf(o map[string]any) string { return (&unstructured.Unstructured{Object: o}).GetName() }

// comparable is JSON with the names of this program, without fields that only an API
// server sets.
func (m made) comparable(t require.TestingT, names map[string]string) map[string]any {
	out := map[string]any{}
	for role, o := range m {
		u := (&unstructured.Unstructured{Object: o}).DeepCopy()
		u.SetOwnerReferences(nil)
		if len(u.GetAnnotations()) == 0 {
			u.SetAnnotations(nil)
		}
		delete(u.Object, "status")
		raw, err := json.Marshal(u.Object)
		require.NoError(t, err)
		text := string(raw)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			text = strings.ReplaceAll(text, name, names[name])
		}
		var v any
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		out[role] = v
	}
	return out
}

// compare compares both results, except for random names.
func compare(t require.TestingT, in topologyInput) {
	want, err := theirs(t, in)
	got, problems := ours(in)
	require.NoError(t, err)
	require.Empty(t, problems)
	names := map[string]string{}
	for role, o := range want {
		require.Contains(t, got, role)
		names[nameOf(o)] = nameOf(got[role])
	}
	diff := cmp.Diff(want.comparable(t, names), got.comparable(t, nil), cmpopts.EquateEmpty())
	require.Empty(t, diff)
	plain := map[string]bool{}
	for role, o := range got {
		key := fmt.Sprint(o["kind"], "/", nameOf(o))
		require.False(t, plain[key], "%s has the name of another: %s", role, key)
		plain[key] = true
	}
}

// For CAPA's own classes, the result is the same as in Cluster API.
func TestUpstreamClasses(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(capa.Dir(t), "templates", "*clusterclass.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			text := os.Expand(string(raw), func(name string) string {
				switch {
				case strings.HasSuffix(name, "COUNT"):
					return "3"
				case name == "KUBERNETES_VERSION":
					return "v1.34.2"
				default:
					return "value-of-" + strings.ReplaceAll(strings.ToLower(name), "_", "-")
				}
			})
			if !strings.Contains(text, "kind: Cluster\n") {
				text += clusterOfClass
			}
			in := readTopology(t, text)
			if strings.Contains(file, "multitenancy") {
				// Its patches replace defaults of the webhook and the CRD of
				// AWSClusterTemplate, which do not run here. Package manifest tests it
				// with them.
				_, err := theirs(t, in)
				require.ErrorContains(t, err, "/spec/template/spec/bastion/enabled")
				_, problems := ours(in)
				require.NotEmpty(t, problems)
				require.Contains(t, problems[0].What, "/spec/template/spec/bastion/enabled")
				return
			}
			compare(t, in)
		})
	}
}

// clusterOfClass returns a Cluster for the class that has none.
const clusterOfClass = `
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: alone}
spec:
  topology:
    class: value-of-cluster-class-name
    version: v1.34.2
    workers: {machineDeployments: [{class: default-worker, name: md-0, replicas: 2}]}
`

// For random classes and Clusters, the result is the same as in Cluster API.
func TestGeneratedClasses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := generated(r)
		r.Logf("%s", text)
		compare(r, readTopology(r, text))
	})
}
