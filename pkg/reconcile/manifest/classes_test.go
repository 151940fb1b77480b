package manifest_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"clusterawsadm/pkg/reconcile/manifest"
)

// CAPA's own template with a class loads, and its variables arrive.
func TestUpstreamClass(t *testing.T) {
	path := filepath.Join(templates, "cluster-template-simple-clusterclass.yaml")
	if _, err := os.Stat(path); err != nil {
		t.Skip("CAPA's templates are not here")
	}
	values := quickStart()
	maps.Copy(values, map[string]string{"CNI_RESOURCES": "{}", "AWS_SSH_KEY_NAME": "mine", "AWS_NODE_MACHINE_TYPE": "m5.large"})
	c := mustLoad(t, read(t, path), manifest.Options{Lookup: lookup(values)})
	assert.Equal(t, "eu-west-1", c.Region)
	assert.Equal(t, "v1.34.2", c.Version)
	assert.Equal(t, "mine", *c.Infra.Spec.SSHKeyName)
	require.NotNil(t, c.ControlPlane)
	assert.Equal(t, 3, c.ControlPlane.Replicas())
	assert.Equal(t, "t3.large", c.ControlPlane.Template.Spec.Template.Spec.InstanceType)
	require.Len(t, c.Deployments, 1)
	assert.Equal(t, "quick-md-0", c.Deployments[0].Object.Name)
	assert.Equal(t, "m5.large", c.Deployments[0].Template.Spec.Template.Spec.InstanceType)
	assert.Equal(t, "mine", *c.Deployments[0].Template.Spec.Template.Spec.SSHKeyName)
	assert.Equal(t, "cluster.yaml:24 AWSMachineTemplate/quick-md-0 spec.template.spec.instanceType", c.Origin("AWSMachineTemplate/quick-md-0", "spec.template.spec.instanceType"))
	assert.Empty(t, warnings(c))
}

// The class with tenants patches what CAPA's webhook adds to its template, and
// the Cluster sets variables that are objects.
func TestUpstreamTenantClass(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api-provider-aws/v2").Output()
	require.NoError(t, err)
	yaml := read(t, filepath.Join(strings.TrimSpace(string(out)), "templates", "cluster-template-multitenancy-clusterclass.yaml"))
	values := quickStart()
	maps.Copy(values, map[string]string{
		"CNI_RESOURCES": "{}", "AWS_ACCOUNT_ID": "123456789012",
		"MULTI_TENANCY_JUMP_ROLE_ARN": "arn:aws:iam::123456789012:role/jump", "MULTI_TENANCY_JUMP_IDENTITY_NAME": "jump",
		"MULTI_TENANCY_NESTED_ROLE_ARN": "arn:aws:iam::123456789012:role/nested", "MULTI_TENANCY_NESTED_IDENTITY_NAME": "nested",
	})
	c := mustLoad(t, yaml, manifest.Options{Lookup: lookup(values)})
	assert.True(t, c.Infra.Spec.Bastion.Enabled)
	assert.Equal(t, 1, *c.Infra.Spec.NetworkSpec.VPC.AvailabilityZoneUsageLimit)
	assert.Equal(t, "nested-quick", c.Infra.Spec.IdentityRef.Name)
	assert.Len(t, c.Identity, 2)
	assert.Equal(t, "t3.large", c.Deployments[0].Template.Spec.Template.Spec.InstanceType)
}
