package eks_test

import (
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// podsOnly is the trust policy of a role for pods.
const podsOnly = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`

// An add-on owns the pod identity associations of its annotation. They replace its serviceAccountRoleARN, change their role, and
// go when the annotation names none. Without the annotation they stay.
func TestPodIdentitiesOfAddons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file, account = "eks.yaml", "arn:aws:iam::123456789012:role/"
		load := func(annotation, role string) *manifest.Cluster {
			addon := "{name: vpc-cni, version: v1.20.4-eksbuild.1}"
			if role != "" {
				addon = "{name: vpc-cni, version: v1.20.4-eksbuild.1, serviceAccountRoleARN: '" + account + role + "'}"
			}
			edits := []string{"  version: v1.34\n", "  version: v1.34\n  associateOIDCProvider: true\n  addons: [" + addon + "]\n"}
			if annotation != "" {
				edits = append(edits, planeHead, planeHead+"  annotations: {clusterawsadm/addon-pod-identities: '"+annotation+"'}\n")
			}
			return enginetest.Rewritten(t, file, edits...)
		}
		identities := func(account, role string) string {
			return `[{"addon": "vpc-cni", "serviceAccount": "` + account + `", "roleARN": "arn:aws:iam::123456789012:role/` + role + `"}]`
		}
		first := load("", "irsa")
		a := enginetest.Account(first, enginetest.Lag)
		enginetest.Prepare(t, a, first)
		client := iam.NewFromConfig(a.Config())
		for _, name := range []string{"cni", "other"} {
			_, err := client.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(podsOnly)})
			require.NoError(t, err)
		}
		enginetest.MustApply(t, first, a)
		of := func() (roles []string) {
			a.Edit(func(s *awssim.State) {
				c := onlyCluster(t, s)
				assert.Empty(t, c.Addons["vpc-cni"].RoleARN)
				for _, p := range c.PodIdentities {
					assert.Equal(t, []string{"kube-system", "aws-node", c.Addons["vpc-cni"].ARN}, []string{p.Namespace, p.ServiceAccount, p.Owner})
					roles = append(roles, p.RoleARN)
				}
			})
			return roles
		}
		for _, role := range []string{"cni", "other"} {
			m := load(identities("aws-node", role), "")
			enginetest.MustApply(t, m, a)
			assert.Equal(t, []string{account + role}, of())
			enginetest.RequireNoChange(t, m, a)
			enginetest.RequireNoChange(t, load("", ""), a)
		}
		_, err := enginetest.Open(load(identities("default", "cni"), ""), a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "vpc-cni v1.20.4-eksbuild.1 takes no pod identity association for the service account default: name aws-node")
		none := load("[]", "")
		enginetest.MustApply(t, none, a)
		assert.Empty(t, of())
		enginetest.RequireNoChange(t, none, a)
		enginetest.MustApply(t, load(identities("aws-node", "cni"), ""), a)
		enginetest.MustDelete(t, load(identities("aws-node", "cni"), ""), a)
	})
}
