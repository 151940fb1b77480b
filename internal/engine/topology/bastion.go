package topology

import (
	_ "embed"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

//go:embed bastion.sh
var bastionScript []byte

// bastion adds the host through which the cluster's private machines can be
// reached (facts B.11).
func (b *builder) bastion() {
	public, ok := b.net.first(true, "")
	if _, private := b.net.first(false, ""); !b.spec.Bastion.Enabled || !ok || !private {
		return
	}
	spec := infrav1.AWSMachineSpec{InstanceType: b.spec.Bastion.InstanceType}
	if spec.InstanceType == "" {
		spec.InstanceType = "t3.micro"
		if b.m.Region == "us-east-1" {
			spec.InstanceType = "t2.micro"
		}
	}
	i := &ec2.Instance{
		Spec: spec, Subnet: public.ref, Groups: []*graph.Ref[ec2.SecurityGroupState]{b.groups[infrav1.SecurityGroupBastion]},
		Key: b.keyOf(nil), Tags: b.tags("bastion", b.m.Name+"-bastion", roleBastion),
		Needed: append([]graph.Edge{}, b.net.egress[public.name]...),
	}
	if !b.exists("bastion", b.m.Name+"-bastion") {
		lookup := ec2.UbuntuImage(b.m.Region)
		if id := b.spec.Bastion.AMI; id != "" {
			lookup = ec2.ImageByID(id)
		}
		i.Image = graph.Use(b.Graph, "image/bastion", lookup, b.infra("spec.bastion.ami"))
		i.Boot = &bootdata.Data{Plain: bastionScript}
		i.Needed = append(i.Needed, b.keyPair(i.Key)...)
	}
	graph.Add(b.Graph, "bastion", i, b.infra("spec.bastion"))
}

// exists reports whether the inventory has a machine for the node, be it
// tagged with it or, made by Cluster API, only named so.
func (b *builder) exists(node, name string) bool {
	for _, m := range b.inv.Machines {
		tag := m.Tags[cloud.ResourceTag]
		if tag == node || tag == "" && m.Tags["Name"] == name {
			return !strings.EqualFold(m.Status, "shutting-down")
		}
	}
	return false
}
