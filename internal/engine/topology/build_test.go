package topology_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// load reads a manifest.
func load(t *testing.T, name, text string) *manifest.Cluster {
	t.Helper()
	m, err := loader.Load([]input.Source{{Name: name, Data: []byte(text)}}, input.LoadOptions{
		Lookup: func(string) (string, bool) { return "", false }, EKSEnableIAM: strings.HasSuffix(name, "-iam.yaml"),
	})
	require.NoError(t, err)
	return m
}

// examples returns every file of configs/, by name.
func examples(t *testing.T) map[string]*manifest.Cluster {
	t.Helper()
	files, err := filepath.Glob("../../../configs/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]*manifest.Cluster{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		out[strings.TrimSuffix(filepath.Base(file), ".yaml")] = load(t, filepath.Base(file), string(raw))
	}
	return out
}

// inventory is the inventory of the account before the cluster is created: three zones,
// and the existing resources that the manifest refers to.
func inventory(m *manifest.Cluster) topology.Inventory {
	inv := topology.Inventory{Account: "123456789012", Balancers: map[string]bool{}, Public: map[string]bool{}}
	for _, z := range "abc" {
		inv.Zones = append(inv.Zones, m.Region+string(z))
	}
	network := m.Infra.Spec.NetworkSpec
	if network.VPC.ID == "" {
		return inv
	}
	for _, s := range network.Subnets {
		inv.Subnets = append(
			inv.Subnets,
			ec2.SubnetState{Object: identity.Object{ID: s.ID}, VPC: network.VPC.ID, Zone: m.Region + s.ID[len(s.ID)-1:], MapPublicIP: s.IsPublic},
		)
		inv.Public[s.ID] = s.IsPublic
	}
	inv.NATAddresses = []string{"198.51.100.1"}
	if lb := m.Infra.Spec.ControlPlaneLoadBalancer; lb != nil && lb.Name != nil {
		inv.Balancers[*lb.Name] = true
	}
	return inv
}

func build(t *testing.T, m *manifest.Cluster, inv topology.Inventory) topology.Cluster {
	t.Helper()
	c, err := topology.Build(m, inv, topology.Options{})
	require.NoError(t, err)
	return c
}

// printed prints a graph: every resource with its origin, edges and desired fields.
func printed(g *graph.Graph) string {
	var out strings.Builder
	for _, n := range g.Resources() {
		fmt.Fprintf(&out, "%s (%s)\n", n.ID(), n.Role())
		if n.Origin() != "" {
			fmt.Fprintf(&out, "    from %s\n", n.Origin())
		}
		lines := map[string]bool{}
		for _, e := range n.Needs() {
			line := fmt.Sprintf("    %s %s\n", kindOf(e), e.Resource.ID())
			if !lines[line] {
				out.WriteString(line)
			}
			lines[line] = true
		}
		for _, c := range n.Wanted() {
			fmt.Fprintf(&out, "    %s = %s\n", c.Field, c.Want)
		}
	}
	return out.String()
}

func kindOf(e graph.Edge) string {
	switch {
	case e.Outlives:
		return "outlives"
	case e.Existing && e.Loose:
		return "reads"
	case e.Existing:
		return "needs, existing,"
	case e.Loose:
		return "awaits"
	}
	return "needs"
}

// The graph of every example is a golden file, so that a change to the topology shows its
// effect on each of them.
func TestExamples(t *testing.T) {
	for name, m := range examples(t) {
		t.Run(name, func(t *testing.T) {
			text := printed(build(t, m, inventory(m)).Graph)
			require.NotContains(t, text, "PRIVATE KEY")
			golden.Assert(t, name+".graph", text)
			require.Equal(t, text, printed(build(t, m, inventory(m)).Graph), "the same manifest makes the same graph")
		})
	}
}

// Every resource that another refers to is among its edges: without the edge, it would be
// read before it exists.
func TestEveryReferenceIsANeed(t *testing.T) {
	for name, m := range examples(t) {
		for _, n := range build(t, m, inventory(m)).Resources() {
			needed := map[graph.Resource]bool{}
			for _, e := range n.Needs() {
				needed[e.Resource] = true
			}
			holder, ok := n.(interface{ Desired() any })
			require.True(t, ok)
			if holder.Desired() == nil {
				continue
			}
			for path, ref := range references(reflect.ValueOf(holder.Desired()), "") {
				if strings.HasPrefix(path, ".Content.") {
					continue // of the launch template, which is itself an edge
				}
				require.True(t, needed[ref], "%s: %s%s refers to %s, which is not among its needs", name, n.ID(), path, ref.ID())
			}
		}
	}
}

// references finds every resource that a value refers to, by field path.
func references(v reflect.Value, path string) map[string]graph.Resource {
	out := map[string]graph.Resource{}
	into := func(v reflect.Value, at string) {
		for p, n := range references(v, at) {
			out[p] = n
		}
	}
	if v.IsValid() && v.CanInterface() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil() {
		if n, ok := v.Interface().(graph.Resource); ok {
			if p := reflect.ValueOf(n); !p.IsNil() {
				out[path] = n
			}
			return out
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			into(v.Elem(), path)
		}
	case reflect.Struct:
		if !strings.HasPrefix(v.Type().PkgPath(), "github.com/clusterawsadm/clusterawsadm/") {
			return out // upstream's types contain no resources
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				into(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			into(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			into(v.MapIndex(k), fmt.Sprintf("%s[%v]", path, k))
		}
	}
	return out
}

// The examples contain every kind of reference; otherwise the test above would prove
// nothing.
func TestReferencesAreFound(t *testing.T) {
	found := map[string]bool{}
	for _, m := range examples(t) {
		for _, n := range build(t, m, inventory(m)).Resources() {
			r := n.(interface{ Desired() any }).Desired()
			if r == nil {
				continue
			}
			for path := range references(reflect.ValueOf(r), "") {
				parts := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]0123456789", r) })
				found[fmt.Sprintf("%T %s", r, strings.Join(parts, "."))] = true
			}
		}
	}
	for _, want := range []string{
		"*ec2.RouteTable Routes.Via", "*ec2.SecurityGroupRules Rules.From", "*ec2.SecurityGroupRules Rules.Address", "*ec2.SecurityGroupRules Rules.VPC",
		"*ec2.Instance Boot.PKI", "*ec2.Instance Boot.Endpoint.Network", "*ec2.Instance Boot.Endpoint.Classic", "*ec2.Instance Boot.Bucket",
		"*ec2.Instance Groups", "*ec2.Instance Image", "*elb.LoadBalancer Subnets", "*elb.Targets Instances", "*elb.ClassicTargets Instances",
		"*ec2.GatewayEndpoint RouteTables", "*ec2.NATGateway Address", "*secrets.InitMarker Machine",
		"*autoscaling.Group Template", "*autoscaling.Group Subnets", "*ec2.LaunchTemplate Boot.PKI", "*ec2.LaunchTemplate Boot.EKS.Cluster",
		"*ec2.LaunchTemplate EKS", "*ec2.Instance EKS", "*ec2.LaunchTemplate Groups", "*ec2.LaunchTemplate Image",
	} {
		require.True(t, found[want], "%s: %v", want, found)
	}
}

// rulesOf returns the ingress rules of a role's group, one line for each: "tcp 6443 from
// node: Kubernetes API".
func rulesOf(t *testing.T, c topology.Cluster, role infrav1.SecurityGroupRole) (out []string) {
	t.Helper()
	n := c.Resource(plan.ID("security-group-rules/" + string(role)))
	require.NotNil(t, n, role)
	for _, r := range n.(*graph.Ref[ec2.SecurityGroupRulesState]).Desired().(*ec2.SecurityGroupRules).Rules {
		from := r.CIDR + r.FromID
		switch {
		case r.From != nil:
			from = strings.TrimPrefix(string(r.From.ID()), "security-group/")
		case r.Address != nil:
			from = string(r.Address.ID())
		case r.VPC != nil && r.IPv6:
			from = "VPC (IPv6)"
		case r.VPC != nil:
			from = "VPC"
		}
		out = append(out, fmt.Sprintf("%s %d-%d from %s: %s", r.Protocol, r.First, r.Last, from, r.Description))
	}
	slices.Sort(out)
	return out
}
