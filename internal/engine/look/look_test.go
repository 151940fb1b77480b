package look_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// TestReadingChangesNothing plans every example: after it was applied, with machines that
// a rollout replaces, and with machines and parts that are not desired any more. Find and
// Diff change neither the desired resources nor the clients.
func TestReadingChangesNothing(t *testing.T) {
	kinds := map[string]bool{}
	t.Cleanup(func() {
		for _, kind := range []string{
			"*incluster.Drain", "*incluster.EtcdMember", "*incluster.EtcdMembers", "*incluster.NodeObjects", "*incluster.JoinToken", "*incluster.Node",
			"*incluster.APIServer", "*incluster.KubeadmConfig", "*incluster.SystemImage", "*ec2.Instance", "*autoscaling.Group",
		} {
			assert.True(t, kinds[kind], "no graph had a %s: %v", kind, slices.Sorted(maps.Keys(kinds)))
		}
	})
	for _, file := range enginetest.Examples(t) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.LoadQuick(t, file)
				a := enginetest.Prepared(t, m)
				wait := plan.APIServer
				if lb := m.Infra.Spec.ControlPlaneLoadBalancer; lb != nil && aws.ToString((*string)(lb.Scheme)) == "internal" {
					wait = plan.Infrastructure // its API server is reachable only in the VPC
				}
				_, err := enginetest.Waiting(m, a.Process(), wait).Apply(t.Context(), cluster.Options{})
				require.NoError(t, err)
				time.Sleep(3 * time.Hour) // the join token expires
				p := a.Process()
				c := cloud.New(p.Config(), m.Name, cloud.Options{Kubernetes: p.Kubernetes})
				inv := inventoryOf(t, c, m)
				requirePlanChangesNothing(t, c, m, inv, kinds)
				requirePlanChangesNothing(t, c, m, outdated(inv), kinds)
				m.Deployments, m.Pools = nil, nil
				requirePlanChangesNothing(t, c, m, inv, kinds)
			})
		})
	}
}

// inventoryOf observes the inventory.
func inventoryOf(t *testing.T, c *cloud.Clients, m *manifest.Cluster) (inv topology.Inventory) {
	t.Helper()
	ctx := t.Context()
	var err error
	inv.Now, inv.Account, inv.Initialized = time.Now(), "123456789012", true
	inv.Zones, err = ec2.Zones(ctx, c, zonesWithout(m)...)
	require.NoError(t, err)
	inv.Machines, err = ec2.Instances(ctx, c)
	require.NoError(t, err)
	inv.Templates, err = ec2.LaunchTemplatesIfAllowed(ctx, c)
	require.NoError(t, err)
	if id := m.Infra.Spec.NetworkSpec.VPC.ID; id != "" {
		inv.Subnets, err = ec2.SubnetsOf(ctx, c, id)
		require.NoError(t, err)
		inv.Public, err = ec2.PublicSubnets(ctx, c, id, inv.Subnets)
	} else {
		inv.Subnets, err = ec2.Subnets(ctx, c)
	}
	require.NoError(t, err)
	if lb := m.Infra.Spec.ControlPlaneLoadBalancer; lb != nil && lb.Name != nil && m.Infra.Spec.NetworkSpec.VPC.ID != "" {
		inv.Balancers = map[string]bool{*lb.Name: true}
	}
	if m.EKS != nil {
		inv.EKS, err = eks.PartsOf(ctx, c, m.EKS.ControlPlane.Spec.EKSClusterName)
		require.NoError(t, err)
	}
	return inv
}

// outdated returns the inventory with machines that have another template tag.
func outdated(inv topology.Inventory) topology.Inventory {
	inv.Machines = slices.Clone(inv.Machines)
	for i, m := range inv.Machines {
		inv.Machines[i].Tags = m.Tags.With(cloud.Tags{cloud.TemplateTag: "another"})
	}
	return inv
}

// requirePlanChangesNothing plans the graph of a manifest, and also reads the resources
// that a plan does not read.
func requirePlanChangesNothing(t *testing.T, c *cloud.Clients, m *manifest.Cluster, inv topology.Inventory, kinds map[string]bool) {
	t.Helper()
	built, err := topology.Build(m, inv, topology.Options{Wait: plan.NodesReady, Drain: true})
	require.NoError(t, err)
	wanted := map[plan.ID]any{}
	before := map[plan.ID]string{"the clients": settings(c)}
	for _, r := range built.Resources() {
		want := r.(interface{ Desired() any }).Desired()
		wanted[r.ID()], before[r.ID()] = want, written(want)
		kinds[fmt.Sprintf("%T", want)] = true
	}
	c.Snapshot()
	_, err = (&graph.Executor{Cloud: c}).Plan(t.Context(), built.Graph)
	require.NoError(t, err)
	for _, r := range built.Resources() {
		if r.Role() == graph.RoleSwept {
			found := reflect.ValueOf(wanted[r.ID()]).MethodByName("Find").Call([]reflect.Value{reflect.ValueOf(cloud.ReadOnly(t.Context())), reflect.ValueOf(c)})
			require.Nil(t, found[1].Interface(), r.ID())
		}
	}
	assert.Equal(t, before["the clients"], settings(c), "a look has changed the clients")
	for _, r := range built.Resources() {
		assert.Equal(t, before[r.ID()], written(wanted[r.ID()]), "a look has changed %s", r.ID())
	}
}

// settings prints the fields of the clients that are plain values.
func settings(c *cloud.Clients) string {
	var out strings.Builder
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if k := v.Field(i).Kind(); k == reflect.String || k == reflect.Bool {
			fmt.Fprintf(&out, "%s: %v\n", v.Type().Field(i).Name, v.Field(i))
		}
	}
	return out.String()
}

// written prints a desired resource, with all its fields and what they point to, except
// for other resources of the graph.
func written(want any) string {
	w := &writer{seen: map[reflect.Value]bool{}}
	w.write("", reflect.ValueOf(want))
	return w.out.String()
}

type writer struct {
	out  strings.Builder
	seen map[reflect.Value]bool // pointers
}

func (w *writer) write(path string, v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the rest are plain values
	case reflect.Invalid, reflect.Func, reflect.Chan, reflect.UnsafePointer: // the last is of an atomic.Pointer: what was computed, and may be again
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || w.seen[v] || v.Type().Implements(reflect.TypeFor[graph.Resource]()) {
			return
		}
		w.seen[v] = v.Kind() == reflect.Pointer
		w.write(path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			w.write(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.write(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Map:
		lines := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			lines[fmt.Sprint(k)] = v.MapIndex(k)
		}
		for _, k := range slices.Sorted(maps.Keys(lines)) {
			w.write(path+"["+k+"]", lines[k])
		}
	default:
		fmt.Fprintf(&w.out, "%s = %v\n", path, v)
	}
}

// Every difference in a value changes the printed text.
func TestWrittenShowsChanges(t *testing.T) {
	type inner struct {
		list []string
		set  map[string]int
	}
	type outer struct {
		name  string
		inner *inner
		any   any
	}
	value := func() *outer { return &outer{"a", &inner{[]string{"b"}, map[string]int{"c": 1}}, &inner{}} }
	for _, change := range []func(o *outer){
		func(o *outer) { o.name = "b" }, func(o *outer) { o.inner.list[0] = "c" }, func(o *outer) { o.inner.set["c"] = 2 },
		func(o *outer) { o.inner = nil }, func(o *outer) { o.any.(*inner).list = []string{"d"} },
	} {
		o := value()
		change(o)
		require.NotEqual(t, written(value()), written(o))
	}
	again := value()
	require.Equal(t, written(value()), written(again))
}

// zonesWithout lists the zones that a cluster avoids.
func zonesWithout(m *manifest.Cluster) []string {
	if m.EKS == nil {
		return nil
	}
	return eks.ZonesWithout()
}
