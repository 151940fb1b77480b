package topology_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// lot draws names as Cluster API does: five characters, others every time.
type lot struct{ drawn int }

func (l *lot) draw() string {
	l.drawn++
	return fmt.Sprintf("x%04d", l.drawn)
}

// asClusterAPI turns an account in which we have made the cluster into one in
// which Cluster API has: nothing carries our tag, no secret of ours is there,
// and machines and target groups have random names.
func asClusterAPI(m *manifest.Cluster, s *awssim.State) {
	var names lot
	set := names.draw()
	for _, i := range s.EC2.Instances {
		name := ""
		switch node := i.Tags[cloud.ResourceTag]; {
		case strings.HasPrefix(node, "machine/"+m.ControlPlane.Object.Name+"/"):
			name = m.ControlPlane.Object.Name + "-" + names.draw()
		case strings.HasPrefix(node, "machine/"):
			name = strings.Split(node, "/")[1] + "-" + set + "-" + names.draw()
		}
		if name != "" {
			i.Tags["Name"], i.Tags["MachineName"] = name, m.Namespace+"/"+name
		}
	}
	for _, g := range s.ELB.TargetGroups {
		if g.Tags[cloud.ResourceTag] != "" {
			g.Name = g.Name[:strings.LastIndex(g.Name, "-")+1] + names.draw()
		}
	}
	for _, tags := range tagsOf(s) {
		delete(tags, cloud.ResourceTag)
	}
	maps.DeleteFunc(s.SSM.Parameters, func(name string, _ *awssim.Parameter) bool { return strings.HasPrefix(name, "/clusterawsadm/") })
}

// tagsOf returns the tags of all that an account holds.
func tagsOf(s *awssim.State) (all []map[string]string) {
	e, b := s.EC2, s.ELB
	all = append(all, tagsIn(e.VPCs, func(x *awssim.VPC) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.Subnets, func(x *awssim.Subnet) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.InternetGateways, func(x *awssim.InternetGateway) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.EgressOnlyGateways, func(x *awssim.EgressOnlyGateway) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.NATGateways, func(x *awssim.NATGateway) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.Addresses, func(x *awssim.Address) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.RouteTables, func(x *awssim.RouteTable) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.SecurityGroups, func(x *awssim.SecurityGroup) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.Endpoints, func(x *awssim.Endpoint) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.Interfaces, func(x *awssim.Interface) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.Instances, func(x *awssim.Instance) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(e.Volumes, func(x *awssim.Volume) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(b.LoadBalancers, func(x *awssim.LoadBalancer) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(b.TargetGroups, func(x *awssim.TargetGroup) map[string]string { return x.Tags })...)
	all = append(all, tagsIn(b.Listeners, func(x *awssim.Listener) map[string]string { return x.Tags })...)
	return append(all, tagsIn(b.Classic, func(x *awssim.ClassicLoadBalancer) map[string]string { return x.Tags })...)
}

func tagsIn[T any](m map[string]T, tags func(T) map[string]string) (all []map[string]string) {
	for _, x := range m {
		all = append(all, tags(x))
	}
	return all
}

// open returns the cluster as a new process sees it.
func open(m *manifest.Cluster, a *awssim.AWS) *reconcile.Cluster {
	return reconcile.Open(m, reconcile.Target{Config: a.Process().Config(), Who: "test"})
}

// A cluster that Cluster API made is taken over as it is: all that is wanted
// is found under its tags and names, and gets our tag. Nothing is made but the
// note that its control plane has begun.
func TestTakesOverWhatClusterAPIMade(t *testing.T) {
	for _, example := range []string{"quickstart", "three-zones", "classic-elb", "node-groups", "bastion"} {
		t.Run(example, func(t *testing.T) {
			m := examples(t)[example]
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region})
				_, err := open(m, a).Apply(t.Context(), reconcile.Options{})
				require.NoError(t, err)
				a.Edit(func(s *awssim.State) { asClusterAPI(m, s) })
				p, err := open(m, a).Plan(t.Context())
				require.NoError(t, err)
				for _, s := range p.Steps {
					switch {
					case s.Resource == "init-marker":
						require.Equal(t, graph.Create, s.Action)
					case s.Does():
						require.Equal(t, graph.Update, s.Action, "%s: %v", s.Resource, s.Diff)
						require.Equal(t, graph.Diff{{Field: "tag " + cloud.ResourceTag, Want: string(s.Resource), Remedy: graph.InPlace}}, s.Diff, s.Resource)
					}
				}
				before := len(a.Calls())
				_, err = open(m, a).Apply(t.Context(), reconcile.Options{})
				require.NoError(t, err)
				for _, c := range a.Calls()[before:] {
					write := !cloud.Reads(c.Operation) && c.Service != "SSM"
					require.True(t, !write || slices.Contains([]string{"CreateTags", "AddTags"}, c.Operation), c.Operation)
				}
				p, err = open(m, a).Plan(t.Context())
				require.NoError(t, err)
				require.True(t, p.Empty())

				// Without its keys, no machine can be added: that is said, and nothing broken.
				m.Deployments[0].Object.Spec.Replicas = new(*m.Deployments[0].Object.Spec.Replicas + 1)
				machines := strings.Count(strings.Join(a.Inventory(), "\n"), "Instance ")
				_, err = open(m, a).Apply(t.Context(), reconcile.Options{})
				require.ErrorContains(t, err, "the keys that the cluster was made with are not in this account: add its Secrets "+m.Name+"-ca")
				require.Equal(t, machines, strings.Count(strings.Join(a.Inventory(), "\n"), "Instance "))
				_, err = open(m, a).Delete(t.Context(), reconcile.Options{})
				require.NoError(t, err)
			})
		})
	}
}
