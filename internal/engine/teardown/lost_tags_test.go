package teardown_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// withoutTags calls a function while a resource has no tags.
func withoutTags(a *awssim.AWS, id string, do func()) (had bool) {
	var tags, before map[string]string
	var group *autoscaling.Group
	var ofGroup map[string]autoscaling.Tag
	a.Edit(func(s *awssim.State) {
		if group = s.AutoScaling.Groups[id]; group != nil {
			ofGroup, group.Tags = group.Tags, map[string]autoscaling.Tag{}
			return
		}
		switch {
		case s.EC2.Tags(id) != nil || s.S3.Buckets[id] != nil || s.ELB.Classic[id] != nil || s.ELB.LoadBalancers[id] != nil || s.ELB.TargetGroups[id] != nil || s.ELB.Listeners[id] != nil:
			tags = enginetest.TagsOf(s, id)
		case len(s.EKS.Clusters) > 0:
			tags = enginetest.EKSTagsOf(s, id)
		}
		before = maps.Clone(tags)
		clear(tags)
	})
	if len(before) == 0 && len(ofGroup) == 0 {
		return false
	}
	time.Sleep(2 * enginetest.Lag)
	do()
	a.Edit(func(*awssim.State) {
		if group != nil {
			group.Tags = ofGroup
			return
		}
		maps.Copy(tags, before)
	})
	time.Sleep(2 * enginetest.Lag)
	return true
}

// Whichever resource has lost its tags: a deletion finds it without them, or is refused
// before the first write, names the resource, and says how to restore its tags.
func TestDeletionFindsLostTags(t *testing.T) {
	all := append(enginetest.SampleOfAll(t), "eks-iam.yaml", "eks-karpenter.yaml", "flow-logs.yaml", "bastion.yaml")
	several := []string{"machine", "role"} // of which each is tried: they have different tasks
	enginetest.EachOf(t, all, awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Booting)
		planned, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		tried := map[string]bool{}
		for _, s := range planned.Steps {
			if s.Action != plan.Remove || tried[s.Resource.Kind()] && !slices.Contains(several, s.Resource.Kind()) || deletedWithAnother(s.Resource.Kind()) {
				continue
			}
			tried[s.Resource.Kind()] = withoutTags(a, s.CloudID, func() {
				calls := len(a.Calls())
				for how, theCluster := range map[string]*run.Cluster{"by file": enginetest.Open(m, a.Process()), "by name": enginetest.ByName(m.Name, a)} {
					planned, err := theCluster.PlanDelete(t.Context(), cluster.Options{})
					if err != nil {
						assert.ErrorAs(t, err, new(*plan.RefusedError), "%s %s", how, s.Resource) //nolint:testifylint // all are listed
						assert.ErrorContains(t, err, s.CloudID, "%s %s", how, s.Resource)         //nolint:testifylint // as above
						assert.Regexp(t, `tags|does not have the tag`, err.Error(), "%s %s", how, s.Resource)
						if s.Resource.Kind() == "target-group" {
							assert.NotContains(t, err.Error(), "describe-load-balancers", "it is none")
						}
						continue
					}
					if harmless(m, s, how) {
						continue
					}
					assert.True(
						t,
						slices.ContainsFunc(planned.Steps, func(x plan.Step) bool { return x.CloudID == s.CloudID && x.Action == plan.Remove }),
						"%s: the deletion leaves %s %s",
						how,
						s.Resource,
						s.CloudID,
					)
				}
				assert.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
			}) || tried[s.Resource.Kind()]
		}
		enginetest.MustDelete(t, m, a)
	})
}

// If a resource has lost its tags, no plan creates a second one. Either the plan finds the resource and adds the tags again, or it is refused with an
// error that names the resource and says how to restore the tags.
func TestPlanFindsLostTags(t *testing.T) {
	files := append(
		enginetest.SampleOfAll(t),
		enginetest.MachinePool,
		"ipv6.yaml",
		"wavelength.yaml",
		"bastion.yaml",
		"flatcar.yaml",
		"flow-logs.yaml",
		"eks-iam.yaml",
		"eks-karpenter.yaml",
	)
	enginetest.EachOf(t, files, awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Booting)
		planned, err := enginetest.Open(m, a.Process()).PlanDelete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		tried := map[string]bool{}
		for _, s := range planned.Steps {
			kind := s.Resource.Kind()
			if s.Action != plan.Remove || tried[kind] || deletedWithAnother(kind) {
				continue
			}
			tried[kind] = withoutTags(a, s.CloudID, func() {
				calls := len(a.Calls())
				found, err := enginetest.Open(m, a.Process()).Plan(t.Context())
				assert.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
				if err != nil {
					assert.ErrorAs(t, err, new(*plan.RefusedError), "%s", s.Resource) //nolint:testifylint // all are listed
					named := strings.Contains(err.Error(), s.CloudID) || strings.Contains(err.Error(), string(s.Resource))
					assert.True(t, named, "%s: %v", s.Resource, err)
					assert.NotContains(t, err.Error(), "accessScope", "%s: the field has nothing to do with it", s.Resource)
					assert.Regexp(
						t,
						`create-tags|create-or-update-tags|add-tags|tag-resource|tag-role|tag-queue|without the tags|does not have the tag`,
						err,
						"%s",
						s.Resource,
					)
					return
				}
				for _, x := range found.Steps {
					assert.False(t, x.Resource.Kind() == kind && x.Action == plan.Create, "a second %s: %s", x.Resource, err)
				}
			})
		}
		assert.True(t, len(tried) > 0 || m.External || m.Infra.Spec.NetworkSpec.VPC.ID != "", "parts of the network")
		enginetest.MustDelete(t, m, a)
	})
}

// A route table takes one gateway endpoint of S3: one of somebody else is a conflict, before the first write, and the plan names the command that
// takes the route tables from it.
func TestEndpointOfSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, "flatcar.yaml")
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			for _, e := range s.EC2.Endpoints {
				e.Tags = map[string]string{"Name": "platform-team"}
			}
		})
		time.Sleep(2 * enginetest.Lag)
		calls := len(a.Calls())
		_, err := enginetest.Open(m, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.Regexp(
			t,
			`vpce-[0-9a-f]+ \(platform-team\) routes com.amazonaws.us-east-1.s3 in rtb-.*: remove the route tables from it: aws ec2 modify-vpc-endpoint `+
				`--region us-east-1 --vpc-endpoint-id vpce-[0-9a-f]+ --remove-route-table-ids rtb-`,
			err.Error(),
		)
		require.Empty(t, enginetest.Writes(enginetest.Since(a, calls)))
		a.Edit(func(s *awssim.State) {
			for _, e := range s.EC2.Endpoints {
				e.RouteTables = nil
			}
		})
		time.Sleep(2 * enginetest.Lag)
		enginetest.MustApply(t, m, a)
	})
}

// If somebody has deleted the launch template of a group, a deletion goes on, and does not ask for tags on it.
func TestDeletionWithoutLaunchTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.MachinePool)
		a := enginetest.Prepared(t, m)
		before := a.Inventory()
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) { clear(s.EC2.LaunchTemplates) })
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
	})
}

// deletedWithAnother reports whether AWS deletes resources of a kind with another one, or the
// tags are all that a run deletes.
func deletedWithAnother(kind string) bool {
	return slices.Contains([]string{
		"listener", "targets", "classic-targets", "security-group-rules", "subnet-tags", "addon", "access-entry", "pod-identity", "identity-provider",
	}, kind)
}

// harmless reports whether a deletion leaves a resource without tags because it cannot know
// whose it is, and nothing that it deletes depends on it.
func harmless(m *manifest.Cluster, s plan.Step, how string) bool {
	existing := m.Infra.Spec.NetworkSpec.VPC.ID != "" || m.External
	switch s.Resource.Kind() {
	case "bucket": // only a manifest says its name
		return how == "by name"
	case "machine", "security-group": // in a VPC of somebody else, with groups of somebody else
		return existing
	case "target-group":
		return existing && how == "by name"
	case "flow-log": // a VPC may have flow logs of somebody else, and none prevents its deletion; only a manifest says which it is
		return how == "by name"
	case "launch-template": // that of a node group may be another tool's
		return m.EKS != nil
	}
	return false
}

// setMarker writes the init marker.
func setMarker(t *testing.T, a *awssim.AWS, cluster string, change func(value string) string) {
	t.Helper()
	c, name := ssm.NewFromConfig(a.Config()), "/clusterawsadm/"+cluster+"/init"
	out, err := c.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &name})
	require.NoError(t, err)
	value := change(*out.Parameter.Value)
	_, err = c.PutParameter(t.Context(), &ssm.PutParameterInput{Name: &name, Value: &value, Overwrite: new(true)})
	require.NoError(t, err)
}

// A marker that names a machine of another cluster does not make a deletion ask for that machine, and one
// that nobody can read names the way out.
func TestDamagedMarkersOnDelete(t *testing.T) {
	m, neighbour := enginetest.LoadQuick(t, enginetest.Quickstart), enginetest.LoadQuick(t, enginetest.ThreeZones)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		a.Edit(func(s *awssim.State) { s.EC2.Limits.Addresses = 10 })
		enginetest.MustApply(t, neighbour, a)
		theirs, before := enginetest.MachineWith(a, "control-plane"), a.Inventory()
		enginetest.MustApply(t, m, a)
		time.Sleep(enginetest.Booting)
		setMarker(t, a, m.Name, func(v string) string { return regexp.MustCompile(`"i-[0-9a-f]+"`).ReplaceAllString(v, `"`+theirs+`"`) })
		for _, theCluster := range []*run.Cluster{enginetest.Open(m, a.Process()), enginetest.ByName(m.Name, a)} {
			_, err := theCluster.PlanDelete(t.Context(), cluster.Options{})
			require.NoError(t, err)
		}
		setMarker(t, a, m.Name, func(string) string { return "{}" })
		for _, theCluster := range []*run.Cluster{enginetest.Open(m, a.Process()), enginetest.ByName(m.Name, a)} {
			_, err := theCluster.PlanDelete(t.Context(), cluster.Options{})
			require.ErrorContains(
				t,
				err,
				"to delete the cluster, delete the parameter: aws ssm delete-parameter --region us-east-1 --name /clusterawsadm/quickstart/init",
			)
		}
		_, err := ssm.NewFromConfig(a.Config()).DeleteParameter(t.Context(), &ssm.DeleteParameterInput{Name: new("/clusterawsadm/quickstart/init")})
		require.NoError(t, err)
		enginetest.MustDelete(t, m, a)
		require.Equal(t, before, a.Inventory())
	})
}

// Two resources of a graph have the same cloud ID only if one of them declares that the ID is
// that of another object.
func TestBorrowedIDsAreDeclared(t *testing.T) {
	enginetest.EachOf(t, enginetest.SampleOfAll(t), awssim.Options{Lag: enginetest.Lag}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		borrowed, owners := map[string]bool{}, map[string]string{}
		for _, k := range aws.Kinds() {
			borrowed[k.Name] = borrowed[k.Name] || k.Borrowed
		}
		for _, s := range enginetest.MustPlan(t, m, a).Steps {
			if s.Action != plan.Keep || s.CloudID == "" || borrowed[s.Resource.Kind()] || !isAWS(s.Resource.Kind()) {
				continue
			}
			require.Empty(t, owners[s.CloudID], "%s and %s have the ID %s", owners[s.CloudID], s.Resource, s.CloudID)
			owners[s.CloudID] = string(s.Resource)
		}
	})
}

func isAWS(kind string) bool {
	for _, k := range aws.Kinds() {
		if k.Name == kind {
			return true
		}
	}
	return false
}
