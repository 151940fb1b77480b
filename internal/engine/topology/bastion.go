package topology

import (
	_ "embed"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// BastionKind is the kind of the bastion, and its ID. BastionGroup is the ID of its security group.
const (
	BastionKind          = "bastion"
	BastionGroup plan.ID = "security-group/bastion"
)

//go:embed bastion.sh
var bastionScript []byte

// addBastion adds the bastion host, through which users reach the private machines. It
// reports whether the cluster has one: a bastion needs a public subnet, and a private
// subnet to reach.
func addBastion(g *graph.Graph, in inputs, net network, groups securityGroups) bool {
	public, ok := net.first(true, "")
	if _, private := net.first(false, ""); !in.spec.Bastion.Enabled || in.m.External || !ok || !private {
		return false
	}
	spec := infrav1.AWSMachineSpec{InstanceType: in.spec.Bastion.InstanceType}
	if spec.InstanceType == "" {
		spec.InstanceType = "t3.micro"
		if in.m.Region == "us-east-1" {
			spec.InstanceType = "t2.micro"
		}
	}
	i := &ec2.Instance{
		Spec: spec, Subnet: public.ref, Groups: []*graph.Ref[ec2.SecurityGroupState]{groups[infrav1.SecurityGroupBastion]},
		Key: in.keyName(nil), Tags: in.bastionTags(), Needed: public.egress(),
	}
	if !in.hasBastion() {
		image := ec2.UbuntuImage(in.m.Region)
		if id := in.spec.Bastion.AMI; id != "" {
			image = ec2.ImageByID(id)
		}
		i.Image = graph.Use(g, "image/bastion", image, in.infra("spec.bastion.ami"))
		i.Boot = &bootdata.Data{Plain: bastionScript}
		i.Typed = in.spec.Bastion.InstanceType != ""
		i.Needed = append(i.Needed, addKeyPair(g, in, group{specAt: in.m.InfraObject(), specPath: "spec"}, i.Key, nil)...)
	}
	graph.Add(g, BastionKind, i, in.infra("spec.bastion"))
	return true
}

func (in inputs) bastionTags() cloud.Tags {
	return in.tags("bastion", in.m.Name+"-bastion", RoleBastion)
}

// hasBastion reports whether the inventory has the bastion. A bastion that CAPA created
// has only the tag Name.
func (in inputs) hasBastion() bool {
	for _, m := range in.inv.Machines {
		tag := m.Tags[cloud.ResourceTag]
		if tag == "bastion" || tag == "" && m.Tags["Name"] == in.m.Name+"-bastion" {
			return true
		}
	}
	return false
}
