package eks_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The driver's add-on with the agent, and the annotation with the entries.
func withDriver(t *testing.T, annotations ...string) *manifest.Cluster {
	t.Helper()
	edits := []string{
		"  version: v1.34\n",
		"  version: v1.34\n  addons:\n  - {name: eks-pod-identity-agent, version: v1.3.9-eksbuild.3}\n  - {name: aws-ebs-csi-driver, version: v1.51.0-eksbuild.1}\n",
	}
	if len(annotations) > 0 {
		edits = append(edits, planeHead, planeHead+"  annotations:\n    "+strings.Join(annotations, "\n    ")+"\n")
	}
	return enginetest.Rewritten(t, "eks.yaml", edits...)
}

// Roles of pods are made with the policies of the annotations, change with them, are deleted when the annotation names an
// existing role or none, and with the cluster. No role of the same name in another region is touched.
func TestRolesOfPodsAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			managed = "arn:aws:iam::aws:policy/"
			driver  = managed + "service-role/AmazonEBSCSIDriverPolicy"
			role    = "default_eks-us-east-1-ebs-csi-controller-sa"
		)
		addon := func(roleOrPolicies string) string {
			return "clusterawsadm/addon-pod-identities: '[{addon: aws-ebs-csi-driver, serviceAccount: ebs-csi-controller-sa, " + roleOrPolicies + "}]'"
		}
		app := func(policies string) string {
			return "clusterawsadm/pod-identity-associations: '[{namespace: shop, serviceAccount: orders, policyARNs: [" + policies + "]}]'"
		}
		m := withDriver(t, addon("policyARNs: ["+driver+"]"), app(managed+"ReadOnlyAccess"))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		createPodRole(t, a, "ebs", "/")
		other := "/clusterawsadm/eu-west-1/default_eks/"
		createPodRole(t, a, "default_eks-eu-west-1-shop.orders", other)
		_, err := iam.NewFromConfig(a.Config()).TagRole(t.Context(), &iam.TagRoleInput{
			RoleName: aws.String("default_eks-eu-west-1-shop.orders"), Tags: []types.Tag{{Key: aws.String("kubernetes.io/cluster/eks"), Value: aws.String("owned")}},
		})
		require.NoError(t, err)
		roles := func() map[string][]string {
			out := map[string][]string{}
			a.Edit(func(s *awssim.State) {
				for _, r := range s.IAM.Roles {
					if strings.HasPrefix(r.Path, "/clusterawsadm/us-east-1/default_eks/") {
						assert.Contains(t, r.Trust, "sts:TagSession")
						out[r.Name] = slices.Sorted(slices.Values(r.Attached))
					}
				}
			})
			return out
		}
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		assert.Equal(t, map[string][]string{role: {driver}, "default_eks-us-east-1-shop.orders": {managed + "ReadOnlyAccess"}}, roles())

		m = withDriver(t, addon("policyARNs: ["+driver+"]"), app(managed+"ReadOnlyAccess, "+managed+"CloudWatchAgentServerPolicy"))
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		assert.Equal(t, []string{managed + "CloudWatchAgentServerPolicy", managed + "ReadOnlyAccess"}, roles()["default_eks-us-east-1-shop.orders"])

		m = withDriver(t, addon("roleARN: arn:aws:iam::123456789012:role/ebs"))
		assert.Contains(t, enginetest.Done(enginetest.MustPlan(t, m, a)), "delete role/"+role)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		assert.Empty(t, roles())

		m = withDriver(t, addon("policyARNs: ["+driver+"]"))
		enginetest.MustApply(t, m, a)
		enginetest.MustDelete(t, m, a)
		enginetest.MustApply(t, m, a)
		_, err = enginetest.ByName("eks", a).Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Empty(t, roles())
		a.Edit(func(s *awssim.State) { assert.Contains(t, s.IAM.Roles, "default_eks-eu-west-1-shop.orders") })
	})
}

// A plan refuses a policy that does not exist, and a role with the name that somebody else has made.
func TestRolesOfPodsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(policy string) *manifest.Cluster {
			return withDriver(t, "clusterawsadm/pod-identity-associations: '[{namespace: shop, serviceAccount: orders, policyARNs: ["+policy+"]}]'")
		}
		m := with("arn:aws:iam::123456789012:policy/orders")
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.Prepare(t, a, m)
		assert.Contains(t, enginetest.Refused(t, m, a), "the policy arn:aws:iam::123456789012:policy/orders does not exist: create it, or correct the ARN")
		createPodRole(t, a, "default_eks-us-east-1-shop.orders", "/")
		_, err := enginetest.Open(with("arn:aws:iam::aws:policy/ReadOnlyAccess"), a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.ConflictError))
		require.ErrorContains(t, err, "delete the role default_eks-us-east-1-shop.orders, or name it in the manifest by its roleARN instead of policyARNs")
	})
}
