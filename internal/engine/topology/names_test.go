package topology_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// The names of load balancers are the same as in Cluster API. The hashes were computed
// with another program: BLAKE2b of 28 bytes of the name without its suffix, each byte
// modulo 36 as a digit of 0-9a-z.
func TestLoadBalancerNames(t *testing.T) {
	m := examples(t)["quickstart"]
	lb := m.Infra.Spec.ControlPlaneLoadBalancer
	for name, want := range map[string][2]string{ // network, classic
		"demo":                                  {"default-demo-apiserver", "demo-apiserver"},
		"my.cluster":                            {"default-my-cluster-apiserver", "my-cluster-apiserver"},
		strings.Repeat("a", 22):                 {"", strings.Repeat("a", 22) + "-apiserver"},
		strings.Repeat("a", 23):                 {"", "szd6efp4kl6b1dz5r0exswc00cfu-k8s"},
		"a-cluster-with-a-rather-long-name":     {"laou5z1n62q4yzcqruv139m4jixr-k8s", "i7e0l66uxape4bse38e8mdc37yal-k8s"},
		"with.dots.and-a-long-name.example.org": {"", "lbcllgjv7wmubeovbbldd2yl0tkl-k8s"},
	} {
		m.Name = name
		lb.LoadBalancerType = infrav1.LoadBalancerTypeNLB
		n := build(t, m, inventory(m)).Resource("load-balancer/network").(*graph.Ref[elb.LoadBalancerState])
		if got := n.Desired().(*elb.LoadBalancer).Name; want[0] != "" {
			require.Equal(t, want[0], got)
		} else {
			require.LessOrEqual(t, len(got), 32)
		}
		lb.LoadBalancerType = infrav1.LoadBalancerTypeClassic
		c := build(t, m, inventory(m)).Resource("classic-load-balancer").(*graph.Ref[elb.ClassicLoadBalancerState])
		require.Equal(t, want[1], c.Desired().(*elb.ClassicLoadBalancer).Name)
	}
	lb.Name = new("mine")
	classic := build(t, m, inventory(m)).Resource("classic-load-balancer")
	require.Equal(t, "mine", classic.(*graph.Ref[elb.ClassicLoadBalancerState]).Desired().(*elb.ClassicLoadBalancer).Name)
}

// instances returns the desired machines of a graph, by resource ID.
func instances(c topology.Cluster) map[plan.ID]*ec2.Instance {
	out := map[plan.ID]*ec2.Instance{}
	for _, n := range c.Resources() {
		if ref, ok := n.(*graph.Ref[ec2.InstanceState]); ok {
			if i, ok := ref.Desired().(*ec2.Instance); ok {
				out[n.ID()] = i
			}
		}
	}
	return out
}

// Machines have the names of Cluster API, with a suffix that is the same in every run and
// different for each machine.
func TestMachineNames(t *testing.T) {
	m := examples(t)["three-zones"]
	control, workers := m.ControlPlane.Object.Name, m.Deployments[0].Object.Name
	likeControl := regexp.MustCompile(`^` + control + `-[a-z0-9]{5}$`)
	likeWorker := regexp.MustCompile(`^` + workers + `-[a-z0-9]{5}-[a-z0-9]{5}$`)
	seen := map[string]bool{}
	for id, i := range instances(build(t, m, inventory(m))) {
		name := i.Tags["Name"]
		require.False(t, seen[name], name)
		seen[name] = true
		switch strings.Split(string(id), "/")[1] {
		case control:
			require.Regexp(t, likeControl, name)
			require.Equal(t, "control-plane", i.Tags[cloud.RoleTag])
		case workers:
			require.Regexp(t, likeWorker, name)
			require.Equal(t, "node", i.Tags[cloud.RoleTag])
		}
		require.Equal(t, m.Namespace+"/"+name, i.Tags["MachineName"])
		require.Equal(t, cloud.Owned, i.Tags["kubernetes.io/cluster/"+m.Name])
		require.Equal(t, string(id), i.Tags[cloud.ResourceTag])
	}
	m.Namespace = "other"
	for _, i := range instances(build(t, m, inventory(m))) {
		require.False(t, seen[i.Tags["Name"]], "another namespace, other names")
	}
	long := strings.Repeat("a", 63)
	m.ControlPlane.Object.Name = long
	require.Len(t, instances(build(t, m, inventory(m)))[plan.ID("machine/"+long+"/0")].Tags["Name"], 63)
}

// rolesOf returns the kubeadm roles of the machines of the control plane to create.
func rolesOf(_ *manifest.Cluster, c topology.Cluster) (out []boot.Role) {
	for _, machine := range c.Machines {
		if i, ok := machine.Instance.Desired().(*ec2.Instance); ok && machine.ControlPlane && i.Boot != nil {
			data, ok := i.Boot.(*bootdata.Data)
			if !ok {
				continue
			}
			out = append(out, data.Machine.Role)
		}
	}
	return out
}

// machineOf returns a machine of the inventory.
func machineOf(m *manifest.Cluster, node, id, zone string) ec2.InstanceState {
	return ec2.InstanceState{
		Object: identity.Object{ID: id, Tags: cloud.Tags{cloud.ResourceTag: node, cloud.RoleTag: "control-plane"}},
		Zone:   m.Region + zone,
		Status: "running",
	}
}

// Only one machine runs kubeadm init, and only once: if it is lost, its replacement joins
// the others; if all are lost, one runs it again.
func TestRoles(t *testing.T) {
	m := examples(t)["three-zones"]
	name := "machine/" + m.ControlPlane.Object.Name + "/"
	inv := inventory(m)
	require.Equal(t, []boot.Role{boot.Init, boot.JoinControlPlane, boot.JoinControlPlane}, rolesOf(m, build(t, m, inv)))
	inv.Machines = []ec2.InstanceState{machineOf(m, name+"0", "i-0", "a")}
	require.Equal(t, []boot.Role{boot.JoinControlPlane, boot.JoinControlPlane}, rolesOf(m, build(t, m, inv)))
	inv.Machines, inv.Initialized = []ec2.InstanceState{machineOf(m, name+"1", "i-1", "b")}, true
	require.Equal(t, []boot.Role{boot.JoinControlPlane, boot.JoinControlPlane}, rolesOf(m, build(t, m, inv)))
	inv.Machines, inv.Terminating = nil, inv.Machines // a run refuses this plan, unless a new etcd is permitted
	require.Equal(t, []boot.Role{boot.Init, boot.JoinControlPlane, boot.JoinControlPlane}, rolesOf(m, build(t, m, inv)))
}

// Machines of the control plane are spread over the zones, and existing ones keep their
// zone.
func TestSpread(t *testing.T) {
	m := examples(t)["three-zones"]
	zone := func(c topology.Cluster, i string) string {
		id := plan.ID("machine/" + m.ControlPlane.Object.Name + "/" + i)
		return strings.TrimPrefix(string(instances(c)[id].Subnet.ID()), "subnet/private/"+m.Region)
	}
	inv := inventory(m)
	c := build(t, m, inv)
	require.Equal(t, "a b c", zone(c, "0")+" "+zone(c, "1")+" "+zone(c, "2"))
	inv.Machines = []ec2.InstanceState{machineOf(m, "machine/"+m.ControlPlane.Object.Name+"/0", "i-0", "c")}
	require.Equal(t, "c", zone(build(t, m, inv), "0"))
	inv = inventory(m)
	inv.Types = map[string]ec2.InstanceType{m.ControlPlane.Template.Spec.Template.Spec.InstanceType: {Zones: []string{m.Region + "b", m.Region + "c"}}}
	c = build(t, m, inv)
	require.Equal(t, "b c b", zone(c, "0")+" "+zone(c, "1")+" "+zone(c, "2"))
}

// Existing machines get their places: by resource tag, launched together and unnamed, or
// created by Cluster API. A group whose name is the beginning of another's takes none of
// its machines. Surplus machines are retired.
func TestMachinesTakeTheirPlaces(t *testing.T) {
	m := examples(t)["quickstart"]
	md := &m.Deployments[0]
	md.Object.Name, md.Object.Spec.Replicas = "pool", new(int32(2))
	other := *md
	object := *md.Object
	other.Object = &object
	other.Object.Name, other.Object.Spec.Replicas = "pool-small", new(int32(1))
	m.Deployments = append(m.Deployments, other)
	capi := func(id, machine string) ec2.InstanceState {
		return ec2.InstanceState{
			Object: identity.Object{ID: id, Tags: cloud.Tags{"Name": machine, "MachineName": m.Namespace + "/" + machine, cloud.RoleTag: "node"}},
			Zone:   m.Region + "a",
			Status: "running",
		}
	}
	inv := inventory(m)
	inv.Machines = []ec2.InstanceState{
		capi("i-1", "pool-small-abcde-fghij"), capi("i-2", "pool-xyz12-fghij"), machineOf(m, "machine/pool", "i-3", "b"), machineOf(m, "machine/pool/7", "i-4", "b"),
	}
	c := build(t, m, inv)
	made := instances(c)
	require.Equal(t, "pool-small-abcde-fghij", made["machine/pool-small/0"].Tags["Name"])
	require.Equal(t, m.Namespace+"/pool-small-abcde-fghij", made["machine/pool-small/0"].Tags["MachineName"])
	require.Equal(t, "pool-xyz12-fghij", made["machine/pool/0"].Tags["Name"])
	require.Equal(t, "i-3", made["machine/pool/1"].Claimed)
	for _, id := range []plan.ID{"machine/pool-small/0", "machine/pool/0", "machine/pool/1"} {
		require.Nil(t, made[id].Boot, id)
	}
	retired := made["retired/machine/pool/7/i-4"]
	require.NotNil(t, retired)
	require.Equal(t, "i-4", retired.Claimed)
	inv.Machines = []ec2.InstanceState{capi("i-1", "pool-small-x1y2z")}
	require.NotNil(t, instances(build(t, m, inv))["machine/pool-small/0"].Boot, "it is no machine of a set")
	inv.Machines[0].Tags["MachineName"] = "elsewhere/pool-0"
	_, err := topology.Build(m, inv, topology.Options{})
	require.ErrorContains(t, err, "in the namespace elsewhere")
}

// Image lookup formats are expanded without a template engine.
func TestImageNames(t *testing.T) {
	m := examples(t)["quickstart"]
	for format, want := range map[string]string{
		"": "image/ubuntu-24.04/1.34.2/x86_64", "x-{{.BaseOS}}-{{ .K8sVersion }}": "", "{{- .K8sVersion -}}": "",
	} {
		m.Infra.Spec.ImageLookupFormat = format
		c := build(t, m, inventory(m))
		if want != "" {
			require.NotNil(t, c.Resource(plan.ID(want)))
		}
	}
	for _, format := range []string{"{{.Other}}", "{{if .BaseOS}}x{{end}}", "{{.BaseOS", "{{.BaseOS | upper}}"} {
		m.Infra.Spec.ImageLookupFormat = format
		_, err := topology.Build(m, inventory(m), topology.Options{})
		require.ErrorContains(t, err, "is not understood", format)
	}
}
