package reconcile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"clusterawsadm/pkg/reconcile/graph"
)

// templates is where a checkout may have Cluster API Provider AWS's own
// templates beside it.
const templates = "../../../shared/capa-templates"

// The templates that upstream ships work unchanged.
func TestUpstreamTemplates(t *testing.T) {
	env := map[string]string{
		"CLUSTER_NAME": "upstream", "AWS_REGION": "eu-west-1", "AWS_SSH_KEY_NAME": "default", "KUBERNETES_VERSION": "v1.34.2",
		"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "2", "AWS_CONTROL_PLANE_MACHINE_TYPE": "t3.large", "AWS_NODE_MACHINE_TYPE": "t3.large",
		"AWS_S3_BUCKET_NAME": "cluster-api-provider-aws-upstream",
	}
	for _, file := range []string{"cluster-template.yaml", "cluster-template-flatcar.yaml", "cluster-template-dualstack-ipv4-primary.yaml"} {
		t.Run(file, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(templates, file)); errors.Is(err, fs.ErrNotExist) {
				t.Skip("the template is not there")
			}
			m := quick(load(t, filepath.Join(templates, file), env))
			synctest.Test(t, func(t *testing.T) {
				a := account(m, lag)
				before := a.Inventory()
				require.NotZero(t, mustPlan(t, m, a).Count(graph.Create))
				mustApply(t, m, a)
				requireEmpty(t, m, a)
				mustDelete(t, m, a)
				require.Equal(t, before, a.Inventory())
			})
		})
	}
}
