package topology

import (
	"fmt"
	"slices"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// addPodNetwork adds the add-on with the VPC CNI, and what the manifest says about the
// DaemonSets that EKS installs: disabled ones are removed. It returns what has to be settled
// before nodes start: a node takes the number of its pods and their subnets from the settings
// that it finds ("Assign more IP addresses to Amazon EKS nodes with prefixes", "Deploy Pods in
// alternate subnets with custom networking", EKS user guide).
func addPodNetwork(
	g *graph.Graph,
	in inputs,
	net network,
	cluster *graph.Ref[eks.ClusterState],
	plane *ekscontrolplanev1.AWSManagedControlPlaneSpec,
	k kubernetes,
) (before []graph.Edge) {
	addon := addVPCCNI(g, in, cluster, plane)
	settings := addEKSDaemonSets(g, in, net, cluster, k, graph.Awaits(addon))
	if settings == nil && !needsAddon(plane, in.m.EKS.AddonIdentities) {
		return nil
	}
	return append(graph.Awaits(addon), graph.Awaits(settings)...)
}

// addVPCCNI adds the add-on with the VPC CNI, if the manifest has it. Its DaemonSet needs no
// node to be active.
func addVPCCNI(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState], plane *ekscontrolplanev1.AWSManagedControlPlaneSpec) graph.Resource {
	if plane.Addons == nil {
		return nil
	}
	for i, a := range *plane.Addons {
		if a.Name == vpcCNI {
			return addEKSAddon(g, in, cluster, i, a, false, nil)
		}
	}
	return nil
}

// needsAddon reports whether nodes need the add-on with the VPC CNI before they start. If EKS
// installs the VPC CNI by itself, and the add-on has neither settings nor a role, the first one
// is enough.
func needsAddon(plane *ekscontrolplanev1.AWSManagedControlPlaneSpec, identities map[string][]manifest.AddonIdentity) bool {
	if !plane.BootstrapSelfManagedAddons || plane.Addons == nil {
		return true
	}
	return slices.ContainsFunc(*plane.Addons, func(a ekscontrolplanev1.Addon) bool {
		return a.Name == vpcCNI && (a.Configuration != "" || text(a.ServiceAccountRoleArn) != "" || len(identities[vpcCNI]) > 0)
	})
}

// addEKSDaemonSets adds the settings of the VPC CNI, and removes the DaemonSets that the
// manifest disables, if the run uses the API server.
func addEKSDaemonSets(g *graph.Graph, in inputs, net network, cluster *graph.Ref[eks.ClusterState], k kubernetes, after []graph.Edge) graph.Resource {
	if k.server == nil {
		return nil
	}
	spec := &in.m.EKS.ControlPlane.Spec
	if spec.KubeProxy.Disable {
		graph.Retire(g, "self-managed-addon/kube-proxy", &incluster.SelfManagedAddon{API: k.api, Server: k.server, Objects: incluster.KubeProxyObjects()},
			in.infra("spec.kubeProxy.disable"))
	}
	if spec.VpcCni.Disable {
		graph.Retire(g, "self-managed-addon/vpc-cni", &incluster.SelfManagedAddon{API: k.api, Server: k.server, Objects: incluster.VPCCNIObjects()},
			in.infra("spec.vpcCni.disable"))
		return nil
	}
	subnets := net.secondary()
	if !in.m.HasVPCCNI() || len(spec.VpcCni.Env) == 0 && len(subnets) == 0 && in.inv.EKS.Cluster == nil { // an existing cluster may have former settings
		return nil
	}
	return graph.Expect(g, "vpc-cni", &incluster.VPCCNI{
		API: k.api, Server: k.server, Cluster: cluster, Name: in.m.Name, Env: spec.VpcCni.Env, Subnets: subnets,
	}, in.infra("spec.vpcCni"), graph.With(after))
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
