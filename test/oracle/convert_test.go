package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"
	infrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	eksbootstrapv1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta1"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"
	ekscontrolplanev1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta1"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1beta1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta1"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	bootstrapconversion "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/crd"
	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
)

// ofUpstream converts the JSON of an object with the code of upstream.
type ofUpstream func(raw []byte) (any, error)

func by[Old, New any](convert func(context.Context, *Old, *New) error) ofUpstream {
	return func(raw []byte) (any, error) {
		older, newest := new(Old), new(New)
		if err := json.Unmarshal(raw, older); err != nil {
			return nil, err
		}
		return newest, convert(context.Background(), older, newest)
	}
}

func toHub[Old, New any, OldPointer interface {
	*Old
	conversion.Convertible
}, NewPointer interface {
	*New
	conversion.Hub
}]() ofUpstream {
	return by(func(_ context.Context, older *Old, newest *New) error {
		return OldPointer(older).ConvertTo(NewPointer(newest))
	})
}

func conversions() map[string]ofUpstream {
	return map[string]ofUpstream{
		"cluster.x-k8s.io/Cluster":                                  by(coreconversion.ConvertClusterV1Beta1ToHub),
		"cluster.x-k8s.io/ClusterClass":                             by(coreconversion.ConvertClusterClassV1Beta1ToHub),
		"cluster.x-k8s.io/Machine":                                  by(coreconversion.ConvertMachineV1Beta1ToHub),
		"cluster.x-k8s.io/MachineDeployment":                        by(coreconversion.ConvertMachineDeploymentV1Beta1ToHub),
		"cluster.x-k8s.io/MachineHealthCheck":                       by(coreconversion.ConvertMachineHealthCheckV1Beta1ToHub),
		"cluster.x-k8s.io/MachinePool":                              by(coreconversion.ConvertMachinePoolV1Beta1ToHub),
		"addons.cluster.x-k8s.io/ClusterResourceSet":                by(coreconversion.ConvertClusterResourceSetV1Beta1ToHub),
		"controlplane.cluster.x-k8s.io/KubeadmControlPlane":         by(controlplaneconversion.ConvertKubeadmControlPlaneV1Beta1ToHub),
		"controlplane.cluster.x-k8s.io/KubeadmControlPlaneTemplate": by(controlplaneconversion.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub),
		"bootstrap.cluster.x-k8s.io/KubeadmConfig":                  by(bootstrapconversion.ConvertKubeadmConfigV1Beta1ToHub),
		"bootstrap.cluster.x-k8s.io/KubeadmConfigTemplate":          by(bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub),
		"infrastructure.cluster.x-k8s.io/AWSCluster":                toHub[infrav1beta1.AWSCluster, infrav1.AWSCluster](),
		"infrastructure.cluster.x-k8s.io/AWSClusterTemplate":        toHub[infrav1beta1.AWSClusterTemplate, infrav1.AWSClusterTemplate](),
		"infrastructure.cluster.x-k8s.io/AWSMachine":                toHub[infrav1beta1.AWSMachine, infrav1.AWSMachine](),
		"infrastructure.cluster.x-k8s.io/AWSMachineTemplate":        toHub[infrav1beta1.AWSMachineTemplate, infrav1.AWSMachineTemplate](),
		"infrastructure.cluster.x-k8s.io/AWSClusterStaticIdentity":  toHub[infrav1beta1.AWSClusterStaticIdentity, infrav1.AWSClusterStaticIdentity](),
		"infrastructure.cluster.x-k8s.io/AWSClusterRoleIdentity":    toHub[infrav1beta1.AWSClusterRoleIdentity, infrav1.AWSClusterRoleIdentity](),
		"infrastructure.cluster.x-k8s.io/AWSMachinePool":            toHub[expinfrav1beta1.AWSMachinePool, expinfrav1.AWSMachinePool](),
		"infrastructure.cluster.x-k8s.io/AWSManagedMachinePool":     toHub[expinfrav1beta1.AWSManagedMachinePool, expinfrav1.AWSManagedMachinePool](),
		"infrastructure.cluster.x-k8s.io/AWSFargateProfile":         toHub[expinfrav1beta1.AWSFargateProfile, expinfrav1.AWSFargateProfile](),
		"controlplane.cluster.x-k8s.io/AWSManagedControlPlane":      toHub[ekscontrolplanev1beta1.AWSManagedControlPlane, ekscontrolplanev1.AWSManagedControlPlane](),
		"bootstrap.cluster.x-k8s.io/EKSConfig":                      toHub[eksbootstrapv1beta1.EKSConfig, eksbootstrapv1.EKSConfig](), //nolint:staticcheck // deprecated, and what people have
		"bootstrap.cluster.x-k8s.io/EKSConfigTemplate":              toHub[eksbootstrapv1beta1.EKSConfigTemplate, eksbootstrapv1.EKSConfigTemplate](),
	}
}

// TestConvertAsUpstream converts random v1beta1 objects as text. The result equals that of upstream's own
// conversion.
func TestConvertAsUpstream(t *testing.T) {
	for name, convertWithUpstream := range conversions() {
		group, kind, _ := strings.Cut(name, "/")
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			oldSchema, newSchema := schemas(t, kind)
			rapid.Check(t, func(r *rapid.T) {
				object, _ := someOf(r, oldSchema.props, kind).(map[string]any)
				object["apiVersion"], object["kind"], object["metadata"] = group+"/v1beta1", kind, map[string]any{"name": "a"}
				text, err := yaml.Marshal(object)
				require.NoError(r, err)
				if rapid.Bool().Draw(r, "JSON") {
					text, err = json.MarshalIndent(object, "", "  ")
					require.NoError(r, err)
				}

				stored := asMap(r, object)
				oldSchema.compiled.Default(stored)
				raw, err := json.Marshal(stored)
				require.NoError(r, err)
				want, err := convertWithUpstream(raw)
				require.NoError(r, err)

				result, err := convert.File("in.yaml", text)
				require.NoError(r, err, string(text))
				typed := map[string]any{}
				require.NoError(r, yaml.Unmarshal(result.Text, &typed))
				require.Empty(r, newSchema.compiled.Prune(typed, true), string(result.Text))
				require.Equal(r, group+"/v1beta2", typed["apiVersion"])
				a, b := settled(r, newSchema, want), settled(r, newSchema, typed)
				require.Empty(r, cmp.Diff(a, b), "%s\n---\n%s", text, result.Text)
			})
		})
	}
}

type schema struct {
	props    *apiextensionsv1.JSONSchemaProps
	compiled *crd.Schema
}

func schemas(t *testing.T, kind string) (older, newest schema) {
	t.Helper()
	for version, s := range map[string]*schema{"v1beta1": &older, "v1beta2": &newest} {
		raw, err := crd.Raw(kind, version)
		require.NoError(t, err)
		s.props = &apiextensionsv1.JSONSchemaProps{}
		require.NoError(t, json.Unmarshal(raw, s.props))
		delete(s.props.Properties, "status")
		s.compiled, err = crd.Parse(raw)
		require.NoError(t, err)
	}
	return older, newest
}

func asMap(t require.TestingT, value any) map[string]any {
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	out := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// settled returns an object as an API server stores it: with the defaults of the schema and of the
// webhooks, without values that say nothing.
func settled(t require.TestingT, s schema, value any) map[string]any {
	out := asMap(t, value)
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(out, field)
	}
	s.compiled.Default(out)
	out, _ = essential(out).(map[string]any)
	return asMap(t, out)
}

// essential removes what is empty, and false, which is the value of a boolean that is not set.
func essential(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, below := range v {
			if ignition, ok := below.(map[string]any); ok && key == "ignition" && ignition["containerLinuxConfig"] == nil && ignition["version"] == nil {
				ignition["version"] = "2.3" // the default of the webhook
			}
			if below = essential(below); below != nil {
				out[key] = below
			}
		}
		if strategy, ok := out["strategy"].(map[string]any); ok && strategy["rollingUpdate"] != nil && strategy["type"] == nil {
			strategy["type"] = "RollingUpdate" // the default of the webhook
		}
		strategy, _ := out["strategy"].(map[string]any)
		if len(strategy) == 1 && strategy["type"] == "RollingUpdate" ||
			cmp.Equal(strategy, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 1.0}}) {
			delete(out, "strategy") // the default of the webhook
		}
		for _, field := range []string{"retryPeriodSeconds", "port", "defaultInstanceWarmup", "defaultCoolDown", "divisor"} {
			if out[field] == 0.0 || out[field] == "0s" || out[field] == "0" {
				delete(out, field)
			}
		}
		if out["replicas"] == 1.0 {
			delete(out, "replicas") // the default of the webhook
		}
		if out["scheme"] == "Internet-facing" {
			out["scheme"] = "internet-facing" // which v1beta2 requires, and the old conversion leaves as it is
		}
		if vpc, ok := out["vpc"].(map[string]any); ok && len(vpc) == 3 && vpc["availabilityZoneSelection"] == "Ordered" &&
			fmt.Sprint(vpc["availabilityZoneUsageLimit"]) == "3" && vpc["subnetSchema"] == "PreferPrivate" {
			delete(out, "vpc") // the defaults, which are set in one that is not missing
		}
		if id, _ := out["id"].(string); strings.HasPrefix(id, "a-subnet-") {
			delete(out, "id") // v1beta2 requires one
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		out := []any{}
		for _, below := range v {
			if below = essential(below); below != nil {
				out = append(out, below)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case bool:
		if !v {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}

// someOf returns a value with some of the fields of a schema.
func someOf(r *rapid.T, s *apiextensionsv1.JSONSchemaProps, path string) any {
	name, _, _ := strings.Cut(path[strings.LastIndexByte(path, '.')+1:], "[")
	draw := func(what string, of ...any) any { return rapid.SampledFrom(of).Draw(r, path+" "+what) }
	switch {
	case name == "divisor":
		return "1"
	case s.Format == "byte":
		return draw("bytes", "YQ==", "YWI=")
	case s.XIntOrString:
		return draw("number or share", 1, "30%")
	case len(s.Enum) > 0:
		var value any
		_ = json.Unmarshal(s.Enum[rapid.IntRange(0, len(s.Enum)-1).Draw(r, path)].Raw, &value)
		return value
	case s.Type == "object" && len(s.Properties) > 0:
		out := map[string]any{}
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			below := s.Properties[field]
			if slices.Contains(s.Required, field) || path == name || rapid.IntRange(0, 2).Draw(r, path+"."+field) == 0 {
				out[field] = someOf(r, &below, path+"."+field)
			}
		}
		return out
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && strings.Count(path, ".") < 9:
		out := map[string]any{}
		for i := range rapid.IntRange(0, 2).Draw(r, path) {
			out[fmt.Sprint("key", i)] = someOf(r, s.AdditionalProperties.Schema, path+".x")
		}
		return out
	case s.Type == "object":
		return map[string]any{}
	case s.Type == "array":
		out := []any{}
		for i := range rapid.IntRange(0, 2).Draw(r, path) {
			out = append(out, someOf(r, s.Items.Schema, fmt.Sprintf("%s[%d]", path, i)))
		}
		return out
	case s.Type == "boolean":
		return draw("truth", true, false)
	case s.Type == "integer", s.Type == "number":
		return draw("number", 1, 7)
	case s.Format == "date-time":
		return "2024-01-01T00:00:00Z"
	case s.Format == "duration", strings.Contains(strings.ToLower(name), "timeout"), name == "ttl", strings.HasSuffix(name, "Period"):
		return draw("duration", "10m", "0s", "1h0m0.5s")
	case name == "apiVersion":
		return "infrastructure.cluster.x-k8s.io/v1"
	case name == "token" && strings.Contains(path, "bootstrapTokens"):
		return "abcdef.0123456789abcdef"
	case name == "defaultCoolDown":
		return "5m0s"
	case (name == "name" || name == "path" || name == "hostPath") && strings.Contains(path, "]"): // upstream finds items of a list by these
		return "name" + path[strings.LastIndexByte(path, '[')+1:strings.LastIndexByte(path, ']')]
	case s.Type == "string":
		return draw("text", "a", "two words", "5", "${NAME}", "-", "it's\nlines\n")
	}
	if name == "value" || name == "default" || name == "example" {
		return map[string]any{"any": "thing"}
	}
	return nil
}
