package eks_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// versions returns the changes of versions in a plan.
func versions(s plan.Step) (out []string) {
	for _, c := range s.Diff {
		if c.Field == "version" {
			out = append(out, c.Have+" "+c.Want)
		}
	}
	return out
}

// requireSkew checks the version skew: no node is newer than the control plane, and none
// is too old.
func requireSkew(t *testing.T, a *awssim.AWS) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		for _, g := range enginetest.Plane(s).NodeGroups {
			require.LessOrEqual(t, g.Version, enginetest.Plane(s).Version)
			require.GreaterOrEqual(t, g.Version, "1.31")
		}
	})
}

// An upgrade by two minor versions goes one at a time, the control plane first. The plan
// shows each.
func TestEKSUpgrade(t *testing.T) {
	before, after := enginetest.OfVersion(t, 32), enginetest.OfVersion(t, 34)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, before)
		enginetest.MustApply(t, before, a)
		p := enginetest.MustPlan(t, after, a)
		two := []string{"1.32 1.33", "1.33 1.34"}
		require.Equal(t, two, versions(enginetest.StepOf(t, p, "eks-cluster")))
		require.Equal(t, two, versions(enginetest.StepOf(t, p, "node-group/default_eks-addons-system")))
		require.Equal(t, two, versions(enginetest.StepOf(t, p, "node-group/default_eks-addons-batch")))
		require.Equal(t, []string{"v1.32.6-eksbuild.12 v1.34.0-eksbuild.2"}, versions(enginetest.StepOf(t, p, "addon/kube-proxy")))
		calls := len(a.Calls())
		enginetest.MustApply(t, after, a)
		enginetest.RequireNoChange(t, after, a)
		var versioned []string
		for _, c := range enginetest.Since(a, calls) {
			if c.Operation == "UpdateClusterVersion" || c.Operation == "UpdateNodegroupVersion" {
				versioned = append(versioned, c.Operation)
			}
		}
		require.Equal(t, []string{
			"UpdateClusterVersion", "UpdateClusterVersion", "UpdateNodegroupVersion", "UpdateNodegroupVersion", "UpdateNodegroupVersion", "UpdateNodegroupVersion",
		}, versioned)
		requireSkew(t, a)
		enginetest.RequireRefused(t, before, a, "eks-cluster", "version") // EKS does not support downgrades
		enginetest.MustDelete(t, after, a)
	})
}

// EKS makes one update of a cluster or a node group after the other. A plan expects the time of all of them.
func TestTimeOfEKSUpdates(t *testing.T) {
	const addon, nodes = time.Minute, 2 * 3 * time.Minute // an add-on is updated before the nodes, which are replaced one by one
	const nodeJoins = 100 * time.Second                   // the simulated EKS ends an update when the last node boots
	for name, x := range map[string]struct {
		from int
		edit func(*manifest.Cluster)
		want time.Duration
	}{
		"two versions": {32, nil, 2*9*time.Minute + addon + 2*nodes},
		"one version":  {33, nil, 9*time.Minute + addon + nodes},
		"tags":         {34, func(m *manifest.Cluster) { m.EKS.ControlPlane.Spec.AdditionalTags = infrav1.Tags{"team": "a"} }, 0},
		"logs": {34, func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.Logging.Audit = !m.EKS.ControlPlane.Spec.Logging.Audit
		}, 2 * time.Minute},
		"a version and two settings": {33, func(m *manifest.Cluster) {
			m.EKS.ControlPlane.Spec.Logging.Audit = !m.EKS.ControlPlane.Spec.Logging.Audit
			m.EKS.ControlPlane.Spec.EndpointAccess.PublicCIDRs = []*string{new("192.0.2.0/24"), new("198.51.100.0/24")}
		}, 2*2*time.Minute + 9*time.Minute + addon + nodes},
		"labels of nodes": {34, func(m *manifest.Cluster) { m.Pools[0].Managed.Spec.Labels = map[string]string{"a": "b"} }, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := enginetest.OfVersion(t, x.from), enginetest.OfVersion(t, 34)
			if x.edit != nil {
				x.edit(after)
			}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Prepared(t, before)
				enginetest.MustApply(t, before, a)
				p := enginetest.MustPlan(t, after, a)
				require.Equal(t, x.want, p.Expected, "%v", enginetest.Done(p))
				began := time.Now()
				enginetest.MustApply(t, after, a)
				took := time.Since(began)
				require.GreaterOrEqual(t, took, x.want)
				require.LessOrEqual(t, took, x.want+nodeJoins)
			})
		})
	}
}

// A pinned release of the nodes' image is requested with the last minor version: EKS does not
// go back from the newest one.
func TestEKSUpgradePinned(t *testing.T) {
	before, after := enginetest.OfVersion(t, 32), enginetest.OfVersion(t, 34)
	before.Pools[0].Managed.Spec.AMIVersion = new("1.32.0-20260603")
	after.Pools[0].Managed.Spec.AMIVersion = new("1.34.0-20260603")
	name := before.Pools[0].Managed.Spec.EKSNodegroupName
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, before)
		enginetest.MustApply(t, before, a)
		enginetest.RequireNoChange(t, before, a)
		var planned []string
		for _, c := range enginetest.StepOf(t, enginetest.MustPlan(t, after, a), plan.ID("node-group/"+name)).Diff {
			planned = append(planned, c.Field+" "+c.Have+" "+c.Want)
		}
		require.Equal(t, []string{"version 1.32 1.33", "version 1.33 1.34", "releaseVersion 1.32.0-20260603 1.34.0-20260603"}, planned)
		enginetest.MustApply(t, after, a)
		enginetest.RequireNoChange(t, after, a)
		a.Edit(func(s *awssim.State) {
			require.Equal(t, "1.34.0-20260603", enginetest.Plane(s).NodeGroups[name].Release)
		})
	})
}

// Whichever write of an upgrade fails, and in whatever way, the next run completes it;
// also if the process is killed at other calls.
func TestEKSUpgradeMayFail(t *testing.T) {
	before, after := enginetest.OfVersion(t, 32), enginetest.OfVersion(t, 34)
	var standing bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, before)
		enginetest.MustApply(t, before, a)
		require.NoError(t, a.Save(&standing))
	})
	for _, fault := range []awssim.Fault{awssim.Throttled, awssim.Denied, awssim.KillAfter, awssim.LostBefore, awssim.LostAfter} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				made := 0
				synctest.Test(t, func(t *testing.T) {
					a, err := awssim.Load(bytes.NewReader(standing.Bytes()), awssim.Options{Region: before.Region, Lag: enginetest.Lag})
					require.NoError(t, err)
					time.Sleep(time.Hour) // every bubble starts at the same time, and the saved state is from another
					p := a.Process()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					p.Killed = cancel
					p.Fault = func(call int, service, op string) awssim.Fault {
						writes := service == "EKS" && !reads(op)
						if writes {
							made++
						}
						if writes && made == n || service == "EKS" && fault == awssim.KillAfter && call == 9*n {
							return fault
						}
						return awssim.None
					}
					_, err = enginetest.Open(after, p).Apply(ctx, cluster.Options{})
					if fault == awssim.Throttled {
						require.NoError(t, err, "call %d", n)
					}
					requireSkew(t, a)
					enginetest.MustApply(t, after, a)
					enginetest.RequireNoChange(t, after, a)
					a.Edit(func(s *awssim.State) {
						require.Equal(t, "1.34", enginetest.Plane(s).Version, "call %d", n)
						for _, g := range enginetest.Plane(s).NodeGroups {
							require.Equal(t, "1.34", g.Version, "call %d", n)
						}
					})
				})
				if made < n {
					break // the upgrade ended before the n-th call
				}
			}
		})
	}
}

// The control plane is not upgraded further than the nodes can follow: this is refused
// before the first write.
func TestEKSUpgradeLeavesNoNodesBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := enginetest.OfVersion(t, 30), enginetest.OfVersion(t, 34)
		a := enginetest.Prepared(t, before)
		enginetest.MustApply(t, before, a)
		enginetest.RequireRefused(t, after, a, "eks-cluster", "version")
		_, err := enginetest.Open(after, a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, "nodes may be 3 minor versions older than the control plane: upgrade both in smaller steps")
		between := enginetest.OfVersion(t, 32)
		enginetest.MustApply(t, between, a)
		enginetest.MustApply(t, after, a)
		enginetest.RequireNoChange(t, after, a)
	})
}

func reads(op string) bool {
	return strings.HasPrefix(op, "Describe") || strings.HasPrefix(op, "List")
}

// applied applies a changed manifest, after checking the plan: which nodes it replaces,
// and how.
func applied(t *testing.T, m *manifest.Cluster, a *awssim.AWS, want ...string) {
	t.Helper()
	var does []string
	for _, s := range enginetest.MustPlan(t, m, a).Steps {
		if s.Does() {
			does = append(does, string(s.Action)+" "+string(s.Resource))
		}
	}
	slices.Sort(does)
	slices.Sort(want)
	require.Equal(t, want, does)
	enginetest.MustApply(t, m, a)
	enginetest.RequireNoChange(t, m, a)
}

// The settings of a pool are changed in place.
func TestEKSPoolChangesInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.EKSAddons, nil)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		const batch = "node-group/default_eks-addons-batch"
		pool := m.Pools[slices.IndexFunc(m.Pools, func(p manifest.Pool) bool { return strings.HasSuffix(p.Object.Name, "-batch") })]
		spec := &pool.Managed.Spec
		two, four, ten := int32(2), int32(4), 10
		pool.Object.Spec.Replicas = &four
		spec.Scaling.MinSize = &two
		applied(t, m, a, "update "+batch)
		spec.Labels = map[string]string{"example.com/purpose": "night", "example.com/cheap": "true"}
		spec.Taints = expinfrav1.Taints{{Key: "example.com/batch", Value: "night", Effect: expinfrav1.TaintEffectNoExecute}}
		spec.UpdateConfig = &expinfrav1.UpdateConfig{MaxUnavailable: &ten}
		applied(t, m, a, "update "+batch)
		spec.Taints, spec.Labels = nil, nil
		applied(t, m, a, "update "+batch)
		a.Edit(func(s *awssim.State) {
			g := enginetest.Plane(s).NodeGroups["default_eks-addons-batch"]
			require.Empty(t, g.Taints)
			require.Empty(t, g.Labels)
			require.Equal(t, []int32{2, 4, 10, 10}, []int32{g.Least, g.Desired, g.Most, g.MaxUnavailable})
			require.Len(t, g.Instances, 4)
		})
		other := "t3.large"
		spec.InstanceType = &other
		enginetest.RequireRefused(t, m, a, batch, "instanceTypes")
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorContains(
			t,
			err,
			`cannot change instanceTypes from "m6i.xlarge" to "t3.large": set spec.eksNodegroupName of the AWSManagedMachinePool to another name`,
		)
		kind := spec.InstanceType
		spec.InstanceType, spec.AWSLaunchTemplate = nil, &expinfrav1.AWSLaunchTemplate{InstanceType: *kind}
		enginetest.RequireRefused(t, m, a, batch, "launchTemplate")
		spec.EKSNodegroupName = "batch-2"
		applied(t, m, a, "create launch-template/eks-addons-eks-addons-batch", "create node-group/batch-2", "delete "+batch)
		enginetest.MustDelete(t, m, a)
	})
}

// Owned resources that are not in the manifest any more are deleted; those of others
// stay; only new ones are created.
func TestEKSPartsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, all := enginetest.Load(t, enginetest.EKSAddons, nil), enginetest.Load(t, enginetest.EKSAddons, nil)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) { // resources of others have no tag
			c := enginetest.Plane(s)
			group, addon, access, fargate := *c.NodeGroups["default_eks-addons-batch"], *c.Addons["coredns"], *c.Access["arn:aws:iam::123456789012:role/operators"], *c.Fargate["default_eks-addons-serverless"]
			group.Name, group.ARN, group.Tags, group.Instances = "theirs", group.ARN+"0", nil, nil
			addon.Name, addon.ARN, addon.Tags = "metrics-server", addon.ARN+"0", nil
			access.Principal, access.ARN, access.Tags = "arn:aws:iam::123456789012:role/theirs", access.ARN+"0", nil
			fargate.Name, fargate.ARN, fargate.Tags = "theirs", fargate.ARN+"0", nil
			c.NodeGroups["theirs"], c.Addons["metrics-server"], c.Access[access.Principal], c.Fargate["theirs"] = &group, &addon, &access, &fargate
		})
		enginetest.RequireNoChange(t, m, a)
		standing := a.Inventory()
		cp := &m.EKS.ControlPlane.Spec
		addons := (*cp.Addons)[:3]
		m.Pools, m.EKS.Fargate, cp.Addons, cp.AccessEntries = m.Pools[:1], nil, &addons, cp.AccessEntries[:1]
		parts := []string{
			" node-group/default_eks-addons-batch", " fargate-profile/default_eks-addons-serverless", " addon/eks-pod-identity-agent",
			" access-entry/arn:aws:iam::123456789012:role/developers", " addon/aws-ebs-csi-driver", " role/default_eks-addons-us-east-1-ebs-csi-controller-sa",
		}
		act := func(verb string) (out []string) {
			for _, p := range parts {
				out = append(out, verb+p)
			}
			return out
		}
		applied(t, m, a, act("delete")...)
		applied(t, all, a, act("create")...)
		standing = append(standing, "Interface aws-K8S-(ID)") // which the CNI leaves behind, and a deletion deletes
		require.ElementsMatch(t, enginetest.Unnumbered(standing), enginetest.Unnumbered(a.Inventory()))
	})
}

// EKS in three zones with a node group may take no more calls than these, with those
// for the lock and for secrets.
func TestEKSCallBudgets(t *testing.T) {
	m := enginetest.Load(t, enginetest.EKSSmall, nil)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Prepared(t, m)
		check := func(what string, most int, do func()) {
			before := len(a.Calls())
			do()
			n, ops := enginetest.Counted(enginetest.Since(a, before))
			t.Logf("%s: %d calls %v", what, n, ops)
			require.LessOrEqual(t, n, most, "%s: %v", what, ops)
		}
		check("create", 184, func() { enginetest.MustApply(t, m, a) })
		check("no-op", 30, func() { enginetest.MustApply(t, m, a) })
		check("plan", 24, func() { require.True(t, enginetest.MustPlan(t, m, a).Empty()) })
		check("delete", 160, func() { enginetest.MustDelete(t, m, a) }) // six of them for the interface of the CNI
	})
}

// The subnets of a cluster are changed, but not their zones, which EKS keeps.
func TestSubnetsOfEKSChange(t *testing.T) {
	const eks = "eks.yaml"
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, eks, nil)
		listed := func(zones string) (subnets infrav1.Subnets) {
			for i, zone := range strings.Split(zones, "") {
				for j, public := range []bool{true, false} {
					subnets = append(subnets, infrav1.SubnetSpec{
						ID: fmt.Sprintf("%s-%t", zone, public), AvailabilityZone: "us-east-1" + zone, CidrBlock: fmt.Sprintf("10.0.%d.0/24", 2*i+j), IsPublic: public,
					})
				}
			}
			return subnets
		}
		plan := &m.EKS.ControlPlane.Spec
		setSubnets := func(zones string) {
			plan.NetworkSpec.Subnets, m.Infra.Spec.NetworkSpec.Subnets = listed(zones), listed(zones)
		}
		setSubnets("ab")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		plan.RestrictPrivateSubnets = true
		applied(t, m, a, "update eks-cluster")
		a.Edit(func(s *awssim.State) {
			require.Len(t, enginetest.Plane(s).Subnets, 2)
			for _, id := range enginetest.Plane(s).Subnets {
				require.False(t, s.EC2.Subnets[id].MapPublicIP)
			}
		})
		setSubnets("abd")
		enginetest.RequireRefused(t, m, a, "eks-cluster", "zone")
		setSubnets("a")
		enginetest.RequireRefused(t, m, a, "eks-cluster", "zone")
		setSubnets("ab")
		plan.RestrictPrivateSubnets = false
		applied(t, m, a, "update eks-cluster")
		enginetest.MustDelete(t, m, a)
	})
}

// The access entries of machines exist before EKS ignores the ConfigMap, and a run that is
// killed in between continues.
func TestAccessEntriesBeforeTheLastStep(t *testing.T) {
	const file = "eks-machines.yaml"
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := enginetest.Rewritten(t, file, "authenticationMode: api\n", "authenticationMode: config_map\n")
			a := enginetest.Prepared(t, m)
			enginetest.MustApply(t, m, a)
			before := len(a.Calls())
			m = enginetest.Load(t, file, nil)
			p := enginetest.MustPlan(t, m, a)
			require.True(t, enginetest.StepOf(t, p, "eks-cluster").Diff.Has("authenticationMode"))
			require.Equal(t, "API", enginetest.StepOf(t, p, "eks-authentication").Diff[0].Want)
			if killed {
				p := a.Process()
				require.Error(t, enginetest.Faulty(t, p, func(_ int, _, op string) awssim.Fault {
					if op == "CreateAccessEntry" {
						return awssim.KillBefore
					}
					return awssim.None
				}, func(ctx context.Context) error {
					_, err := enginetest.Open(m, p).Apply(ctx, cluster.Options{})
					return err
				}))
			}
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
			var order []string
			for _, c := range a.Calls()[before:] {
				if c.Service == "EKS" && slices.Contains([]string{"CreateAccessEntry", "UpdateClusterConfig"}, c.Operation) {
					order = append(order, c.Operation)
				}
			}
			require.Equal(t, "UpdateClusterConfig", order[0])
			require.Equal(t, "UpdateClusterConfig", order[len(order)-1])
			require.Contains(t, order, "CreateAccessEntry")
			require.Equal(t, 2, len(order)-strings.Count(strings.Join(order, " "), "CreateAccessEntry"))
			a.Edit(func(s *awssim.State) { require.Equal(t, "API", enginetest.Plane(s).Authentication) })
			enginetest.MustDelete(t, m, a)
		})
	}
}
