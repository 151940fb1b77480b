package hooks_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1" //nolint:staticcheck // deprecated, and what manifests contain

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/hooks"
)

// What is written into required fields is what a webhook answers: upstream's own type, read from the object and
// written again.
func TestRequiredFieldsAsUpstream(t *testing.T) {
	const rules = `{"network": {
		"cni": {"cniIngressRules": [{"protocol": "-1"}, {"protocol": "tcp", "fromPort": 1, "toPort": 2}]},
		"additionalControlPlaneIngressRules": [{"protocol": "4", "description": "a"}],
		"additionalNodeIngressRules": [{"protocol": "50"}]
	}}`
	for _, tt := range []struct {
		kind, version, object string
		typed                 any
	}{
		{manifest.KindAWSCluster, manifest.VersionNew, `{"spec": ` + rules + `}`, &infrav1.AWSCluster{}},
		{
			manifest.KindAWSCluster, manifest.VersionNew,
			`{"spec": {"controlPlaneLoadBalancer": {"ingressRules": [{"protocol": "-1"}]}, "secondaryControlPlaneLoadBalancer": {"ingressRules": [{"protocol": "-1"}]}}}`,
			&infrav1.AWSCluster{},
		},
		{manifest.KindManagedPlane, manifest.VersionNew, `{"spec": ` + rules + `}`, &ekscontrolplanev1.AWSManagedControlPlane{}},
		{manifest.KindManagedPlane, manifest.VersionNew, `{"spec": {"addons": [{"name": "coredns"}]}}`, &ekscontrolplanev1.AWSManagedControlPlane{}},
		{manifest.KindAWSCluster, manifest.VersionNew, `{"spec": {"network": {"subnets": [{"cidrBlock": "10.0.0.0/24"}]}}}`, &infrav1.AWSCluster{}},
		{manifest.KindAWSClusterTemplate, manifest.VersionNew, `{"spec": {"template": {"spec": ` + rules + `}}}`, &infrav1.AWSClusterTemplate{}},
		{manifest.KindAWSClusterTemplate, manifest.VersionNew, `{"spec": {"template": {}}}`, &infrav1.AWSClusterTemplate{}},
		{manifest.KindManagedPlaneTemplate, manifest.VersionNew, `{"spec": {"template": {}}}`, &ekscontrolplanev1.AWSManagedControlPlaneTemplate{}},
		{manifest.KindManagedPool, manifest.VersionNew, `{"spec": {"taints": [{"key": "a", "effect": "no-schedule"}]}}`, &expinfrav1.AWSManagedMachinePool{}},
		{manifest.KindControlPlane, manifest.VersionOld, `{"spec": {"version": "v1.34.2"}}`, &controlplanev1beta1.KubeadmControlPlane{}},
	} {
		object, answer := map[string]any{}, map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(tt.object), &object))
		before, err := json.Marshal(object)
		require.NoError(t, err)
		hooks.WriteRequired(tt.kind, tt.version, object)
		after, err := json.Marshal(object)
		require.NoError(t, err)
		assert.NotEqual(t, string(before), string(after), "%s: something is written", tt.kind)
		require.NoError(t, json.Unmarshal([]byte(tt.object), tt.typed))
		raw, err := json.Marshal(tt.typed)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &answer))
		require.NoError(t, json.Unmarshal(after, &object))
		assertContains(t, answer, object, tt.kind)
	}
}

// assertContains requires that a value is in another one that may have more fields.
func assertContains(t *testing.T, whole, part any, path string) {
	t.Helper()
	switch p := part.(type) {
	case map[string]any:
		w, _ := whole.(map[string]any)
		for name, value := range p {
			assertContains(t, w[name], value, path+"."+name)
		}
		if whole == nil {
			assert.Fail(t, "missing", path)
		}
	case []any:
		w, _ := whole.([]any)
		require.Len(t, w, len(p), path)
		for i, item := range p {
			assertContains(t, w[i], item, path)
		}
	default:
		assert.Equal(t, part, whole, path)
	}
}

// A port that AWS needs is not made up, nor is anything in kinds without a mutating webhook.
func TestRequiredFieldsThatStay(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"network": map[string]any{"cni": map[string]any{
		"cniIngressRules": []any{map[string]any{"protocol": "tcp", "fromPort": int64(1), "description": "a"}},
	}}}}
	before, err := json.Marshal(object)
	require.NoError(t, err)
	for _, kind := range []string{manifest.KindAWSCluster, manifest.KindAWSMachineTemplate, manifest.KindConfig} {
		hooks.WriteRequired(kind, manifest.VersionNew, object)
		after, err := json.Marshal(object)
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after), kind)
	}
}
