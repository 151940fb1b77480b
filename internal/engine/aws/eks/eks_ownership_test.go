package eks_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/stretchr/testify/require"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	ekssim "github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const (
	adminPolicy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
	viewPolicy  = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
)

// byEntries is the example with access entries, of which it has these.
func byEntries(t *testing.T, file string, entries ...ekscontrolplanev1.AccessEntry) *manifest.Cluster {
	t.Helper()
	m := enginetest.Load(t, file, nil)
	spec := &m.EKS.ControlPlane.Spec
	spec.AccessConfig = &ekscontrolplanev1.AccessConfig{
		AuthenticationMode:                      ekscontrolplanev1.EKSAuthenticationModeAPI,
		BootstrapClusterCreatorAdminPermissions: new(true),
	}
	spec.AccessEntries = entries
	return m
}

func entry(principal, policy string) ekscontrolplanev1.AccessEntry {
	return ekscontrolplanev1.AccessEntry{PrincipalARN: principal, AccessPolicies: []ekscontrolplanev1.AccessPolicyReference{{
		PolicyARN: policy, AccessScope: ekscontrolplanev1.AccessScope{Type: "cluster"},
	}}}
}

// roleOfNodes returns the ARN of the role of the example's nodes.
func roleOfNodes(s *awssim.State) string {
	for _, g := range enginetest.Plane(s).NodeGroups {
		return g.RoleARN
	}
	return ""
}

// requireNothingWritten requires that a plan and a run are refused with a reason, before the
// first write.
func requireNothingWritten(t *testing.T, m *manifest.Cluster, a *awssim.AWS, reasons ...string) {
	t.Helper()
	calls := len(a.Calls())
	_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
	require.ErrorAs(t, err, new(*plan.RefusedError))
	_, err = enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
	require.ErrorAs(t, err, new(*plan.RefusedError))
	require.NotErrorAs(t, err, new(*plan.HalfwayError))
	for _, reason := range reasons {
		require.ErrorContains(t, err, reason)
	}
	require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
}

// A node whose role has an access entry for users is answered with 401: the simulated EKS does as
// EKS.
func TestEntryForUsersLocksNodesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := byEntries(t, enginetest.EKSSmall)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Booting)
		c, cluster := eks.NewFromConfig(a.Config()), aws.String("default_eks")
		var role string
		a.Edit(func(s *awssim.State) { role = roleOfNodes(s) })
		_, err := c.DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: cluster, PrincipalArn: &role})
		require.NoError(t, err)
		_, err = c.CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: cluster, PrincipalArn: &role})
		require.NoError(t, err)
		_, err = c.ListClusters(t.Context(), &eks.ListClustersInput{})
		require.NoError(t, err)
		enginetest.Inside(a, func(k *kubesim.Cluster) { require.Len(t, k.Refused, 2) })

		in := &eks.CreateNodegroupInput{ClusterName: cluster, NodegroupName: aws.String("b"), NodeRole: &role}
		a.Edit(func(s *awssim.State) { in.Subnets = enginetest.Plane(s).NodeGroups["default_eks-pool-0"].Subnets })
		_, err = c.CreateNodegroup(t.Context(), in)
		require.NoError(t, err)
		time.Sleep(awssim.EKSNodeGroupGivesUp + time.Minute)
		out, err := c.DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: cluster, NodegroupName: in.NodegroupName})
		require.NoError(t, err)
		require.Equal(t, "CREATE_FAILED", string(out.Nodegroup.Status))
		require.Equal(t, "NodeCreationFailure", string(out.Nodegroup.Health.Issues[0].Code))
	})
}

// An access entry for users whose principal is the role of nodes, of machines or of a Fargate
// profile is a conflict, in a new cluster and in an existing one.
func TestEntriesOfRolesOfNodesAreRefused(t *testing.T) {
	for file, want := range map[string][]string{
		enginetest.EKSSmall: {"is the role of the node group default_eks-pool-0 (eks.yaml:", "AWSManagedMachinePool/eks-pool-0", "only by an access entry of the type EC2_LINUX"},
		"eks-machines.yaml": {"is the role of the machines of", "iamInstanceProfile", "only by an access entry of the type EC2_LINUX"},
		"eks-fargate.yaml":  {"is the role of the Fargate profile default_eks-fargate-", "only by an access entry of the type FARGATE_LINUX"},
	} {
		for _, exists := range []bool{false, true} {
			t.Run(enginetest.Name(file)+map[bool]string{false: " new", true: " existing"}[exists], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := byEntries(t, file)
					a := enginetest.Prepared(t, m)
					trial := enginetest.Prepared(t, m)
					enginetest.MustApply(t, m, trial)
					var role string
					trial.Edit(func(s *awssim.State) {
						for principal, e := range enginetest.Plane(s).Access {
							if e.Type != "STANDARD" {
								role = principal
							}
						}
					})
					require.NotEmpty(t, role)
					if exists {
						a = trial
					}
					requireNothingWritten(t, byEntries(t, file, entry(role, viewPolicy)), a, append(want, role)...)
				})
			})
		}
	}
}

// The same entry with the type of nodes is fine. EKS has made it, so it stays when it leaves the
// manifest.
func TestEntriesOfNodesStayThoseOfEKS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := byEntries(t, enginetest.EKSSmall)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		var role string
		a.Edit(func(s *awssim.State) { role = roleOfNodes(s) })
		with := byEntries(t, enginetest.EKSSmall, ekscontrolplanev1.AccessEntry{PrincipalARN: role, Type: "ec2_linux"})
		enginetest.RequireNoChange(t, with, a)
		enginetest.RequireNoChange(t, m, a)
		a.Edit(func(s *awssim.State) { require.Empty(t, enginetest.Plane(s).Access[role].Tags) })
	})
	synctest.Test(t, func(t *testing.T) { // from the start, it is the program's, and stays nevertheless
		m := byEntries(t, enginetest.EKSSmall)
		a := enginetest.Prepared(t, m)
		role := "arn:aws:iam::123456789012:role/" + m.Pools[0].Managed.Spec.RoleName
		with := byEntries(t, enginetest.EKSSmall, ekscontrolplanev1.AccessEntry{PrincipalARN: role, Type: "ec2_linux"})
		enginetest.MustApply(t, with, a)
		a.Edit(func(s *awssim.State) { require.Equal(t, role, roleOfNodes(s)) })
		enginetest.RequireNoChange(t, m, a)
	})
}

// A node group whose role has an entry for users, that somebody else has made, is refused before
// it is created.
func TestNodeGroupsWithAnEntryOfAnotherTypeAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, none := byEntries(t, enginetest.EKSSmall), byEntries(t, enginetest.EKSSmall)
		none.Pools = nil
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, none, a)
		role := "arn:aws:iam::123456789012:role/" + m.Pools[0].Managed.Spec.RoleName
		_, err := eks.NewFromConfig(a.Config()).
			CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: aws.String("default_eks"), PrincipalArn: &role})
		require.NoError(t, err)
		time.Sleep(time.Minute) // AWS lists it
		requireNothingWritten(t, m, a, "node-group/default_eks-pool-0", "the access entry of its role "+role+" has the type STANDARD")
	})
}

// Parts of somebody else in an owned cluster are neither taken over nor deleted.
func TestPartsOfOthersAreConflicts(t *testing.T) {
	for kind, change := range map[string]func(c *awssim.EKSCluster) (tags *map[string]string){
		"addon/coredns": func(c *awssim.EKSCluster) *map[string]string { return &c.Addons["coredns"].Tags },
		"access-entry/arn:aws:iam::123456789012:role/operators": func(c *awssim.EKSCluster) *map[string]string {
			return &c.Access["arn:aws:iam::123456789012:role/operators"].Tags
		},
		"node-group/default_eks-addons-batch":           func(c *awssim.EKSCluster) *map[string]string { return &c.NodeGroups["default_eks-addons-batch"].Tags },
		"fargate-profile/default_eks-addons-serverless": func(c *awssim.EKSCluster) *map[string]string { return &c.Fargate["default_eks-addons-serverless"].Tags },
	} {
		for what, tags := range map[string]map[string]string{"of Terraform": {"owner": "terraform"}, "without tags": nil} {
			t.Run(kind+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := enginetest.Load(t, enginetest.EKSAddons, nil)
					a := enginetest.Prepared(t, m)
					enginetest.MustApply(t, m, a)
					a.Edit(func(s *awssim.State) { *change(enginetest.Plane(s)) = maps.Clone(tags) })
					requireNothingWritten(t, m, a, kind, "cluster import NAME --adopt")
					spec := &m.EKS.ControlPlane.Spec
					m.Pools, m.EKS.Fargate, spec.Addons, spec.AccessEntries = nil, nil, nil, nil
					_, remarks := remarked(t, m, a)
					costs := strings.HasPrefix(kind, "node-group/") || strings.HasPrefix(kind, "fargate-profile/")
					require.Equal(t, costs, strings.Contains(remarks, kind+": neither in the manifest, nor with the tags of the cluster"), remarks)
					enginetest.MustApply(t, m, a)
					a.Edit(func(s *awssim.State) { require.Equal(t, tags, *change(enginetest.Plane(s))) }) // it is there
				})
			})
		}
	}
}

// EKS makes an entry for the creator of a cluster. If the manifest has one for him, it is that. A
// plan that takes the last administrator away says so.
func TestEntryOfTheCreator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const creator = "arn:aws:iam::123456789012:user/simulated"
		m := byEntries(t, enginetest.EKSSmall, entry(creator, adminPolicy))
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		enginetest.RequireNoChange(t, m, a)
		other := byEntries(t, enginetest.EKSSmall, entry("arn:aws:iam::123456789012:role/admins", adminPolicy))
		enginetest.Prepare(t, a, other) // the role that it names
		_, remarks := remarked(t, other, a)
		require.NotContains(t, remarks, "nobody can administer the cluster")
		for _, entries := range [][]ekscontrolplanev1.AccessEntry{nil, {entry(creator, viewPolicy)}} {
			_, remarks = remarked(t, byEntries(t, enginetest.EKSSmall, entries...), a)
			require.Contains(t, remarks, "AmazonEKSClusterAdminPolicy is taken from "+creator+", and no other access entry has it")
		}
		calls := len(a.Calls())
		enginetest.MustApply(t, other, a)
		require.False(t, calledAt(t, enginetest.Since(a, calls), "DeleteAccessEntry").Before(calledAt(t, enginetest.Since(a, calls), "AssociateAccessPolicy")))
		a.Edit(func(s *awssim.State) { require.Nil(t, enginetest.Plane(s).Access[creator]) })
		enginetest.RequireNoChange(t, other, a)
		enginetest.MustDelete(t, other, a)
	})
}

// Policies are associated before others are disassociated.
func TestPoliciesAreExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const who = "arn:aws:iam::123456789012:role/admins"
		m := byEntries(t, enginetest.EKSSmall, entry(who, adminPolicy))
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		calls := len(a.Calls())
		enginetest.MustApply(t, byEntries(t, enginetest.EKSSmall, entry(who, strings.Replace(adminPolicy, "Cluster", "", 1))), a)
		require.Equal(t, []string{"AssociateAccessPolicy", "DisassociateAccessPolicy"}, enginetest.Writes(enginetest.Since(a, calls)))
	})
}

// Where the creator of the cluster is no administrator, the entry of the caller in the manifest is
// there before the API server is asked, and has had its effect.
func TestEntryOfTheCallerIsBeforeTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const caller = "arn:aws:iam::123456789012:user/simulated"
		with, without := byEntries(t, enginetest.EKSSmall, entry(caller, adminPolicy)), byEntries(t, enginetest.EKSSmall)
		for _, m := range []*manifest.Cluster{with, without} {
			m.EKS.ControlPlane.Spec.AccessConfig.BootstrapClusterCreatorAdminPermissions = new(false)
		}
		a := enginetest.Prepared(t, with)
		_, err := enginetest.Rolling(with, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.RequireDone(t, with, a)

		// Somebody has deleted it: without an entry in the manifest, the run says what is missing.
		_, err = eks.NewFromConfig(a.Config()).
			DeleteAccessEntry(t.Context(), &eks.DeleteAccessEntryInput{ClusterName: aws.String("default_eks"), PrincipalArn: aws.String(caller)})
		require.NoError(t, err)
		began := time.Now()
		_, err = enginetest.Rolling(without, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "it does not let the caller in: Unauthorized: give the caller's user or role an entry in spec.accessEntries")
		require.Less(t, time.Since(began), 5*time.Minute)
		_, err = enginetest.Rolling(with, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		_, err = enginetest.Rolling(with, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.RequireDone(t, with, a)
	})
}

// An API server of EKS answers 401 to callers without an entry, and 403 to those without the policy.
func TestAPIServerOfEKSRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const caller = "arn:aws:iam::123456789012:user/simulated"
		m := byEntries(t, enginetest.EKSSmall)
		a := enginetest.Prepared(t, m)
		_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		for policy, want := range map[string]string{viewPolicy: "cannot get /api/v1/nodes", "": "Unauthorized", adminPolicy: ""} {
			a.Edit(func(s *awssim.State) {
				e := &ekssim.Access{Principal: caller, Type: "STANDARD", User: caller, Policies: []ekssim.AccessPolicy{{ARN: policy}}}
				if enginetest.Plane(s).Access[caller] = e; policy == "" {
					delete(enginetest.Plane(s).Access, caller)
				}
			})
			_, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
			if want == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, want)
		}
	})
}
