package eks_test

import (
	"testing"
	"testing/synctest"
	"time"

	awseks "github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// withRoles returns an example with some texts replaced. Runs create the IAM roles of its cluster, as with CAPA_EKS_IAM=true.
func withRoles(t *testing.T, file string, oldnew ...string) *manifest.Cluster {
	t.Helper()
	return enginetest.RewrittenWith(t, input.LoadOptions{EKSEnableIAM: true}, file, oldnew...)
}

// What EKS does not change is a conflict of the plan also if its new value is not known yet: the run would create it, and fail then.
func TestUnchangeableEKS(t *testing.T) {
	const plane, group = "  sshKeyName: \"\"\n", "  scaling:\n    minSize: 1\n"
	for what, x := range map[string]struct {
		before, after func(t *testing.T) *manifest.Cluster
		field         string
	}{
		"role of the cluster": {
			func(t *testing.T) *manifest.Cluster { t.Helper(); return withRoles(t, "eks.yaml") },
			func(t *testing.T) *manifest.Cluster {
				t.Helper()
				return withRoles(t, "eks.yaml", plane, plane+"  roleName: other\n")
			}, "role",
		},
		"role of nodes": {
			func(t *testing.T) *manifest.Cluster { t.Helper(); return withRoles(t, "eks.yaml") },
			func(t *testing.T) *manifest.Cluster {
				t.Helper()
				return withRoles(t, "eks.yaml", group, "  roleName: other\n"+group)
			}, "role",
		},
		"VPC": {
			func(t *testing.T) *manifest.Cluster { t.Helper(); return enginetest.LoadQuick(t, "eks-byo-vpc.yaml") },
			func(t *testing.T) *manifest.Cluster {
				t.Helper()
				m := enginetest.LoadQuick(t, "eks-byo-vpc.yaml")
				m.Infra.Spec.NetworkSpec.VPC.ID, m.Infra.Spec.NetworkSpec.Subnets = "", nil
				return m
			}, "vpc",
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := x.before(t)
				a := enginetest.Prepared(t, m)
				enginetest.MustApply(t, m, a)
				calls := len(a.Calls())
				_, err := enginetest.Open(x.after(t), a.Process()).Apply(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				require.ErrorContains(t, err, x.field)
				require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
				enginetest.MustDeleteAll(t, m, a)
			})
		})
	}
}

// A deletion with a manifest also deletes what this manifest does not name any more, and its plan shows that.
func TestDeletionOfUnnamed(t *testing.T) {
	for file, edit := range map[string]func(*manifest.Cluster){
		"eks-iam.yaml": func(m *manifest.Cluster) { m.EKS.ControlPlane.Spec.AssociateOIDCProvider = false },
		enginetest.EKSAddons: func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.Addons = nil
			m.EKS.PodIdentities, m.EKS.AddonIdentities = nil, nil
		},
	} {
		t.Run(file, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, file)
				a := enginetest.Prepared(t, m)
				before := a.Inventory()
				enginetest.MustApply(t, m, a)
				edit(m)
				shown, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), enginetest.Everything)
				require.NoError(t, err)
				planned := map[string]bool{}
				for _, s := range shown.Steps {
					planned[s.CloudID] = true
				}
				res, err := enginetest.Open(m, a.Process()).Delete(t.Context(), enginetest.Everything)
				require.NoError(t, err)
				require.Equal(t, before, a.Inventory())
				require.NotEmpty(t, res.Absent)
				for _, x := range res.Absent {
					require.True(t, planned[x.CloudID], "%s is deleted, and the plan does not show it", x.CloudID)
				}
			})
		})
	}
}

// EKS takes one identity provider for a cluster. One that somebody else has associated is not disassociated.
func TestIdentityProviderOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := withRoles(t, "eks-iam.yaml")
		given := m.EKS.ControlPlane.Spec.OIDCIdentityProviderConfig
		m.EKS.ControlPlane.Spec.OIDCIdentityProviderConfig = nil
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		client := awseks.NewFromConfig(a.Config())
		_, err := client.AssociateIdentityProviderConfig(t.Context(), &awseks.AssociateIdentityProviderConfigInput{
			ClusterName: &m.EKS.ControlPlane.Spec.EKSClusterName,
			Oidc: &types.OidcIdentityProviderConfigRequest{
				IdentityProviderConfigName: new("theirs"), IssuerUrl: new("https://login.example.com"), ClientId: new("kubernetes"),
			},
		})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		enginetest.RequireNoChange(t, m, a)
		m.EKS.ControlPlane.Spec.OIDCIdentityProviderConfig = given
		_, err = enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, "the cluster has the identity provider theirs, and EKS takes one")
	})
}

// The permissions boundary of a role can be changed, and its path cannot. Without either in the manifest, a role keeps those that it has.
func TestBoundaryAndPathOfRoles(t *testing.T) {
	const file, plane = "eks-iam.yaml", "  version: v1.34\n"
	synctest.Test(t, func(t *testing.T) {
		m := withRoles(t, file)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		const boundary = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
		bounded := withRoles(t, file, plane, plane+"  rolePermissionsBoundary: "+boundary+"\n")
		require.Equal(t, []string{"update role/eks-iam-iam-service-role"}, enginetest.Done(enginetest.MustPlan(t, bounded, a)))
		enginetest.MustApply(t, bounded, a)
		enginetest.RequireNoChange(t, bounded, a)
		a.Edit(func(s *awssim.State) { require.Equal(t, boundary, s.IAM.Roles["eks-iam-iam-service-role"].Boundary) })
		enginetest.RequireNoChange(t, m, a)
		_, err := enginetest.Open(withRoles(t, file, plane, plane+"  rolePath: /clusters/\n"), a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, `cannot change path from "/" to "/clusters/": IAM does not change the path of a role`)
	})
}
