package lives_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// templates is where a clone may have the templates of Cluster API Provider AWS.
const templates = "../../../shared/capa-templates"

// upstream returns the folder of the templates, which CAPA_TEMPLATES overrides.
func upstream() string {
	if dir := os.Getenv("CAPA_TEMPLATES"); dir != "" {
		return dir
	}
	return templates
}

// Upstream's templates work unchanged.
func TestUpstreamTemplates(t *testing.T) {
	env := map[string]string{
		"CLUSTER_NAME": "upstream", "AWS_REGION": "eu-west-1", "AWS_SSH_KEY_NAME": "default", "KUBERNETES_VERSION": "v1.34.2",
		"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "2", "AWS_CONTROL_PLANE_MACHINE_TYPE": "t3.large", "AWS_NODE_MACHINE_TYPE": "t3.large",
		"AWS_S3_BUCKET_NAME": "cluster-api-provider-aws-upstream", "AWS_AVAILABILITY_ZONE": "eu-west-1a",
		"VPC_ADDON_VERSION": "v1.20.4-eksbuild.1", "CNI_RESOURCES": "{}",
	}
	for _, name := range []string{
		"", "-dualstack-ipv4-primary", "-eks-fargate", "-eks-managedmachinepool", "-eks-managedmachinepool-gpu", "-flatcar", "-machinepool", "-simple-clusterclass",
	} {
		file := "cluster-template" + name + ".yaml"
		t.Run(file, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(upstream(), file)); errors.Is(err, fs.ErrNotExist) {
				t.Skip("the template is not there")
			}
			m := enginetest.Quick(enginetest.Load(t, filepath.Join(upstream(), file), env))
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, file, a, m)
				before := a.Inventory()
				require.NotZero(t, enginetest.MustPlan(t, m, a).Count(plan.Create))
				enginetest.MustApply(t, m, a)
				enginetest.RequireNoChange(t, m, a)
				enginetest.MustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}
