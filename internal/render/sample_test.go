package render

import (
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// zones of the sample cluster.
func zones() []string { return []string{"us-east-1a", "us-east-1b", "us-east-1c"} }

// sample is the plan of a new cluster.
func sample(workers int) plan.Plan {
	var p plan.Plan
	add := func(id, origin string, fields ...string) {
		s := plan.Step{Resource: plan.ID(id), Action: plan.Create, Origin: origin}
		for i := 0; i < len(fields); i += 2 {
			s.Diff = append(s.Diff, plan.Change{Field: fields[i], Want: fields[i+1], Remedy: plan.InPlace})
		}
		p.Steps = append(p.Steps, s)
		r := plan.GraphResource{ID: s.Resource, Origin: origin}
		if id != "vpc" {
			r.Needs = []plan.Need{{Resource: "vpc", Existing: true}}
		}
		p.Graph = append(p.Graph, r)
	}
	const network, owned = "cluster.yaml:31 AWSCluster/demo spec.network", "tag sigs.k8s.io/cluster-api-provider-aws/cluster/demo"
	add("vpc", network+".vpc", "cidr", "10.0.0.0/16", "tag Name", "demo-vpc", owned, "owned", "tag sigs.k8s.io/cluster-api-provider-aws/role", "common")
	add("internet-gateway", network+".vpc", "vpc", plan.Unknown, "tag Name", "demo-igw", owned, "owned")
	for i, z := range zones() {
		add("subnet/public/"+z, network+".subnets", "cidr", fmt.Sprintf("10.0.%d.0/20", i*16), "zone", z, "tag Name", "demo-subnet-public-"+z)
		add("subnet/private/"+z, network+".subnets", "cidr", fmt.Sprintf("10.0.%d.0/18", 64*(i+1)), "zone", z, "tag Name", "demo-subnet-private-"+z)
		add("elastic-ip/"+z, "")
		add("nat-gateway/"+z, network+".subnets", "subnet", plan.Unknown)
	}
	add("security-group/control-plane", network, "vpc", plan.Unknown, "rule", "tcp 6443 from 0.0.0.0/0", "rule", "tcp 2379-2380 from security-group/control-plane")
	add("load-balancer/network", "cluster.yaml:40 AWSCluster/demo spec.controlPlaneLoadBalancer", "scheme", "internet-facing")
	for i := range 3 {
		add(
			fmt.Sprintf("machine/demo-control-plane/%d", i),
			"cluster.yaml:60 KubeadmControlPlane/demo-control-plane",
			"type",
			"m5.large",
			"subnet",
			plan.Unknown,
			"tag Name",
			fmt.Sprintf("demo-control-plane-%d", i),
		)
	}
	for i := range workers {
		name := fmt.Sprintf("demo-md-0-%d", i)
		add(
			fmt.Sprintf("machine/demo-md-0/%d", i),
			"cluster.yaml:95 MachineDeployment/demo-md-0",
			"type",
			"m5.large",
			"subnet",
			"subnet-"+zones()[i%3],
			"tag Name",
			name,
		)
	}
	return completed(p)
}

// changes is the plan of a cluster that somebody has changed.
func changes(conflict bool) plan.Plan {
	p := sample(1)
	for i := range p.Steps {
		p.Steps[i].Action, p.Steps[i].Diff, p.Steps[i].CloudID = plan.Keep, nil, fmt.Sprintf("id-%04d", i)
	}
	set := func(id plan.ID, a plan.Action, d ...plan.Change) {
		for i := range p.Steps {
			if p.Steps[i].Resource == id {
				p.Steps[i].Action, p.Steps[i].Diff = a, d
			}
		}
	}
	set("vpc", plan.Existing)
	set("security-group/control-plane", plan.Update,
		plan.Change{Field: "rule", Have: "tcp 22 from 0.0.0.0/0", Remedy: plan.InPlace},
		plan.Change{Field: "rule", Want: "tcp 6443 from 0.0.0.0/0", Remedy: plan.InPlace},
		plan.Change{Field: "tag Name", Have: "played with", Want: "demo-apiserver", Remedy: plan.InPlace})
	set("nat-gateway/us-east-1b", plan.Settle, plan.Change{Field: "state", Have: "pending", Want: "available", Remedy: plan.ByItself})
	set("machine/demo-md-0/0", plan.Remove)
	if conflict {
		set("subnet/public/us-east-1a", plan.Conflict, plan.Change{Field: "cidr", Have: "10.0.0.0/24", Want: "10.0.0.0/20", Remedy: plan.Replace})
	}
	return p
}

func status() cluster.Status {
	s := cluster.Status{Name: "demo", Region: "us-east-1", Version: "v1.34.2", Endpoint: "demo-apiserver-0a1b2c.elb.us-east-1.amazonaws.com:6443"}
	for i, k := range sample(40).Steps {
		n := cluster.ResourceStatus{Resource: k.Resource, State: "ok", CloudID: fmt.Sprintf("%s-%05x", k.Resource.Kind()[:3], i), Origin: k.Origin}
		switch k.Resource {
		case "vpc":
			n.State, n.Detail = "existing", "10.0.0.0/16"
		case "nat-gateway/us-east-1a":
			n.Detail = "203.0.113.7"
		case "nat-gateway/us-east-1b":
			n.State = "pending"
		case "load-balancer/network":
			n.Detail = "demo-apiserver-0a1b2c.elb.us-east-1.amazonaws.com"
		case "security-group/control-plane":
			n.State, n.Changes = "differs", plan.Diff{{Field: "rule", Want: "tcp 6443 from 0.0.0.0/0", Remedy: plan.InPlace}}
		case "machine/demo-control-plane/1":
			n.State, n.CloudID = "missing", ""
		}
		s.Resources = append(s.Resources, n)
	}
	return s
}

// picture is the picture of the sample cluster.
func picture() Picture {
	p := Picture{Title: "demo in us-east-1"}
	box := func(id string, needs ...string) {
		b := Box{ID: id, Area: reconcile.AreaOf(plan.ID(id), ""), Count: 1}
		for _, n := range needs {
			b.Needs = append(b.Needs, Arrow{ID: n})
		}
		p.Resources = append(p.Resources, b)
	}
	box("vpc")
	box("internet-gateway", "vpc")
	for _, z := range zones() {
		box("subnet/public/"+z, "vpc")
		box("subnet/private/"+z, "vpc")
		box("route-table/public/"+z, "internet-gateway", "subnet/public/"+z)
		box("elastic-ip/"+z, "internet-gateway")
		box("nat-gateway/"+z, "elastic-ip/"+z, "route-table/public/"+z)
		box("route-table/private/"+z, "nat-gateway/"+z, "subnet/private/"+z)
	}
	for _, g := range []string{"control-plane", "node", "apiserver-lb", "lb"} {
		box("security-group/"+g, "vpc")
		box("security-group-rules/"+g, "security-group/"+g)
	}
	box("load-balancer/network", "subnet/public/us-east-1a", "subnet/public/us-east-1b", "subnet/public/us-east-1c", "security-group/apiserver-lb")
	box("target-group/api-server", "vpc")
	box("listener/api-server", "load-balancer/network", "target-group/api-server")
	control := []string{"target-group/api-server"}
	for i := range 3 {
		id := fmt.Sprintf("machine/demo-control-plane/%d", i)
		box(id, "subnet/private/"+zones()[i], "security-group-rules/control-plane")
		p.Resources[len(p.Resources)-1].Needs = append(p.Resources[len(p.Resources)-1].Needs, Arrow{ID: "load-balancer/network", Existing: true, Loose: true})
		control = append(control, id)
	}
	box("targets/api-server", control...)
	box("machine/demo-md-0/…", "security-group-rules/node", "route-table/private/us-east-1a", "targets/api-server")
	p.Resources[len(p.Resources)-1].Count = 40
	return p
}
