package eks_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// For each missing role of the account, a plan names the setting with which bootstrap
// creates it: by default it creates only that of control planes.
func TestMissingRolesOfEKS(t *testing.T) {
	const suffix, made = ".cluster-api-provider-aws.sigs.k8s.io does not exist in the account: create it with --set CAPA_EKS_IAM=true, or ", "create it for all clusters of the account with 'clusterawsadm bootstrap iam create-cloudformation-stack"
	for role, hint := range map[string]string{
		"eks-controlplane": suffix + made + "'",
		"eks-nodegroup":    suffix + made + " --config FILE', where FILE says spec.eks.managedMachinePool.disable: false",
		"eks-fargate":      suffix + made + " --config FILE', where FILE says spec.eks.fargate.disable: false",
		"mine":             " does not exist in the account: create it with --set CAPA_EKS_IAM=true, or set the name of an existing role",
	} {
		m := enginetest.Load(t, "eks-addons.yaml", nil)
		m.EKS.EnableIAM = false
		if role == "mine" {
			*m.EKS.ControlPlane.Spec.RoleName = "mine"
		}
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, enginetest.Lag)
			a.Edit(func(s *awssim.State) { clear(s.IAM.Roles) })
			_, err := run.Open(m, cluster.Target{Config: a.Config(), Owner: "test"}).Plan(t.Context())
			require.ErrorContains(t, err, "role "+role+hint)
			assert.NotContains(t, err.Error(), "docs/adr")
		})
	}
}
