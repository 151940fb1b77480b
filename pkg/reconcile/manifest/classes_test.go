package manifest_test

import (
	"maps"
	"os"
	"path/filepath"
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
