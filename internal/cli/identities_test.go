package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tenant writes the manifest of a cluster whose identities are not in it, and a file with
// these identities.
func tenant(t *testing.T) (manifest, identities string) {
	t.Helper()
	raw, err := os.ReadFile(configured("multi-tenancy"))
	require.NoError(t, err)
	const first = "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusterRoleIdentity\n"
	at := strings.Index(string(raw), first)
	require.Positive(t, at)
	dir := t.TempDir()
	manifest, identities = filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "identities.yaml")
	require.NoError(t, os.WriteFile(manifest, raw[:at], 0o600))
	others := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n---\napiVersion: example.com/v1\nkind: Other\nmetadata: {name: other}\n"
	require.NoError(t, os.WriteFile(identities, append(raw[at:], others...), 0o600))
	return manifest, identities
}

// Identities may be in another file, together with anything else of a management cluster.
func TestIdentitiesOfAnotherFile(t *testing.T) {
	manifest, identities := tenant(t)
	s := newSession(t)
	s.types(3, "cluster", "validate", "-f", manifest)
	assert.Contains(
		t,
		s.err.String(),
		"spec.identityRef.name: there is no AWSClusterRoleIdentity/team-a in the input — add it, pass --identities FILE, or remove spec.identityRef of the cluster to use your own credentials: the input has no AWSClusterRoleIdentity",
	)
	s.types(0, "cluster", "validate", "-f", manifest, "--identities", identities, "--strict")
	s.types(3, "cluster", "validate", "-f", manifest, "--identities", manifest)
	s.types(3, "cluster", "validate", "-f", manifest, "--identities", "-")
	s.types(3, "cluster", "validate", "-f", manifest, "--identities", "nowhere.yaml")
}

// If the file is a kubeconfig, the identities are read from its cluster.
func TestIdentitiesOfAManagementCluster(t *testing.T) {
	manifest, _ := tenant(t)
	const group = "/apis/infrastructure.cluster.x-k8s.io"
	server := newAPIServer(t, map[string]string{
		group: `{"kind": "APIGroup", "apiVersion": "v1", "name": "infrastructure.cluster.x-k8s.io",
			"versions": [{"groupVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "version": "v1beta2"}], "preferredVersion": {"version": "v1beta2"}}`,
		group + "/v1beta2": `{"kind": "APIResourceList", "apiVersion": "v1", "resources": [
			{"name": "awsclusterroleidentities", "kind": "AWSClusterRoleIdentity"}, {"name": "awsclusterstaticidentities", "kind": "AWSClusterStaticIdentity"}]}`,
		group + "/v1beta2/awsclusterroleidentities": `{"kind": "AWSClusterRoleIdentityList", "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "items": [
			{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSClusterRoleIdentity",
				"metadata": {"name": "team-a", "uid": "u", "managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}], "creationTimestamp": "2026-01-01T00:00:00Z"},
				"spec": {"roleARN": "arn:aws:iam::123456789012:role/team-a-clusters", "allowedNamespaces": {}, "sourceIdentityRef": {"kind": "AWSClusterStaticIdentity", "name": "keys"}}}]}`,
		group + "/v1beta2/awsclusterstaticidentities": `{"kind": "AWSClusterStaticIdentityList", "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "items": [
			{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSClusterStaticIdentity", "metadata": {"name": "keys"}, "spec": {"secretRef": "keys", "allowedNamespaces": {}}},
			{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSClusterStaticIdentity", "metadata": {"name": "broken"}, "spec": {"secretRef": "nowhere"}}]}`,
		"/api/v1/namespaces/capa-system/secrets/keys": `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "capa-system"}, "type": "Opaque",
			"data": {"AccessKeyID": "QUtJQVNFQ1JFVA==", "SecretAccessKey": "c2VjcmV0LWtleQ=="}}`,
	})
	s := newSession(t)
	kubeconfig := filepath.Join(t.TempDir(), "management.yaml")
	server.kubeconfig(t, kubeconfig)
	s.types(0, "cluster", "validate", "-f", manifest, "--identities", kubeconfig, "--strict")

	server.denied = "/api/v1/namespaces/capa-system/secrets/keys"
	s.types(1, "cluster", "validate", "-f", manifest, "--identities", kubeconfig)
	assert.Contains(
		t,
		s.err.String(),
		"read secret capa-system/keys of AWSClusterStaticIdentity/keys: the user of the kubeconfig lacks a permission in the management cluster at ",
	)
	assert.NotContains(t, s.err.String(), "secret-token")
}
