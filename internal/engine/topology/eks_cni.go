package topology

import (
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// addEKSDaemonSets adds what the manifest says about the VPC CNI and kube-proxy, which EKS
// installs: disabled ones are removed.
func addEKSDaemonSets(g *graph.Graph, p platform, k kubernetes) {
	if p.m.EKS == nil {
		return
	}
	spec := &p.m.EKS.ControlPlane.Spec
	if spec.KubeProxy.Disable {
		graph.Retire(g, "self-managed-addon/kube-proxy", &incluster.SelfManagedAddon{API: k.api, Server: k.server, Objects: incluster.KubeProxyObjects()},
			p.infra("spec.kubeProxy.disable"))
	}
	if spec.VpcCni.Disable {
		graph.Retire(g, "self-managed-addon/vpc-cni", &incluster.SelfManagedAddon{API: k.api, Server: k.server, Objects: incluster.VPCCNIObjects()},
			p.infra("spec.vpcCni.disable"))
		return
	}
	subnets := p.net.secondary()
	if p.m.HasVPCCNI() && (len(spec.VpcCni.Env) > 0 || len(subnets) > 0) {
		graph.Expect(g, "vpc-cni", &incluster.VPCCNI{
			API: k.api, Server: k.server, Cluster: p.eks, Name: p.m.Name, Env: spec.VpcCni.Env, Subnets: subnets,
		}, p.infra("spec.vpcCni"))
	}
}

// secondary returns the subnets for pods, by zone.
func (n network) secondary() map[string]*graph.Ref[ec2.SubnetState] {
	out := map[string]*graph.Ref[ec2.SubnetState]{}
	for _, s := range n.subnets {
		if s.secondary {
			out[s.zone] = s.ref
		}
	}
	return out
}

// hasDaemonSetSettings reports whether addEKSDaemonSets adds something.
func (in inputs) hasDaemonSetSettings() bool {
	if in.m.EKS == nil {
		return false
	}
	spec := &in.m.EKS.ControlPlane.Spec
	return spec.KubeProxy.Disable || spec.VpcCni.Disable || len(spec.VpcCni.Env) > 0 || spec.SecondaryCidrBlock != nil
}

// podSubnetPath is the field of the manifest from which subnets for pods come.
const podSubnetPath = "spec.secondaryCidrBlock"

// podSubnets lists the subnets for pods of an EKS cluster: as in CAPA, its secondary block is
// divided into equal parts, one for each zone that a cluster may use.
func (in inputs) podSubnets(zones []string) (out []subnet, err error) {
	if in.m.EKS == nil || in.m.EKS.ControlPlane.Spec.SecondaryCidrBlock == nil {
		return nil, nil
	}
	limit := ZoneLimit(&in.spec.NetworkSpec.VPC)
	parts, err := equalParts(*in.m.EKS.ControlPlane.Spec.SecondaryCidrBlock, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.m.Origin(in.m.InfraObject(), podSubnetPath), err)
	}
	for i, zone := range zones[:min(limit, len(zones))] {
		out = append(out, subnet{
			name: in.m.Name + "-subnet-secondary-" + zone, zone: zone, secondary: true, cidr: parts[i], path: podSubnetPath, tags: cloud.Tags{association: "secondary"},
		})
	}
	return out, nil
}
