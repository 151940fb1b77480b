package topology

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// fargateProfile is a Fargate profile of the graph.
type fargateProfile struct {
	resource *graph.Ref[eks.FargateProfileState]
	spec     expinfrav1.FargateProfileSpec
}

// addFargateProfiles adds the Fargate profiles, one after the other: EKS creates and deletes
// one at a time. Those for kube-system are the first: pods that are created before their
// profile stay pending ("How do I resolve Fargate pods that are stuck in Pending status?",
// AWS re:Post).
func addFargateProfiles(g *graph.Graph, in inputs, net network, cluster *graph.Ref[eks.ClusterState]) (added []fargateProfile, err error) {
	var before *graph.Ref[eks.FargateProfileState]
	for _, x := range slices.SortedStableFunc(slices.Values(in.m.EKS.Fargate), systemFirst) {
		id := plan.ID("fargate-profile/" + x.Spec.ProfileName)
		origin := in.originOfFargate(x)
		f := &eks.FargateProfile{
			Cluster: cluster, Name: x.Spec.ProfileName, Role: addRole(g, in, fargateRole(&x.Spec)),
			Adopt: in.o.Adopt, Tags: in.nodeTags(in.m.Name, x.Spec.AdditionalTags),
		}
		at := in.m.Origin("AWSFargateProfile/"+x.Name, "spec.subnetIDs")
		if f.Subnets, err = in.subnets(net, at, x.Spec.SubnetIDs, nil, expinfrav1.AZSubnetTypePrivate, ""); err != nil {
			return nil, err
		}
		if s, public := firstPublic(net, f.Subnets); public {
			return nil, fmt.Errorf(
				"%s: the subnet %s is public, and EKS starts pods on Fargate in private subnets only: name private subnets, or none for all private ones",
				at,
				s.name,
			)
		}
		for _, s := range x.Spec.Selectors {
			f.Selectors = append(f.Selectors, eks.Selector{Namespace: s.Namespace, Labels: s.Labels})
		}
		before = graph.Add(g, id, f, graph.With(graph.On(before)), graph.From(origin))
		added = append(added, fargateProfile{before, x.Spec})
	}
	return added, nil
}

// firstPublic returns the first public subnet in a list ("subnets" of CreateFargateProfile, EKS API reference).
func firstPublic(net network, refs []*graph.Ref[ec2.SubnetState]) (s subnet, found bool) {
	for _, ref := range refs {
		if s = net.of(ref); s.public {
			return s, true
		}
	}
	return s, false
}

// originOfFargate is where a Fargate profile comes from.
func (in inputs) originOfFargate(x *expinfrav1.AWSFargateProfile) string {
	return in.m.Origin("AWSFargateProfile/"+x.Name, "spec")
}

// fargateRole is the role with which pods on Fargate are started.
func fargateRole(spec *expinfrav1.FargateProfileSpec) roleSpec {
	return roleSpec{
		name: spec.RoleName, path: spec.RolePath, boundary: spec.RolePermissionsBoundary, services: []string{iam.ServiceFargate},
		policies: []string{"AmazonEKSFargatePodExecutionRolePolicy"}, at: "spec",
	}
}

// systemFirst orders profiles: those that select pods of kube-system are the first.
func systemFirst(x, y *expinfrav1.AWSFargateProfile) int {
	rank := func(f *expinfrav1.AWSFargateProfile) int {
		if selectsNamespace(f.Spec, metav1.NamespaceSystem) {
			return 0
		}
		return 1
	}
	return cmp.Compare(rank(x), rank(y))
}

// selectsNamespace reports whether a profile selects pods of a namespace. A selector may
// contain the wildcards * and ? ("Define which Pods use AWS Fargate when launched", EKS user
// guide).
func selectsNamespace(f expinfrav1.FargateProfileSpec, namespace string) bool {
	return slices.ContainsFunc(f.Selectors, func(s expinfrav1.FargateSelector) bool {
		matches, err := path.Match(s.Namespace, namespace)
		return err == nil && matches
	})
}

// profilesOf returns the profiles that have to be active before an add-on is installed, and
// whether one of them selects the namespace of its pods. The add-ons of EKS itself run in
// kube-system, and those with a DaemonSet alone run on nodes.
func profilesOf(addon string, profiles []fargateProfile) (after []graph.Edge, selected bool) {
	if slices.Contains([]string{vpcCNI, "kube-proxy", "eks-pod-identity-agent", "eks-node-monitoring-agent"}, addon) {
		return nil, false
	}
	system := slices.Contains(
		[]string{"coredns", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-fsx-csi-driver", "metrics-server", "snapshot-controller"},
		addon,
	)
	for _, f := range profiles {
		if !system || selectsNamespace(f.spec, metav1.NamespaceSystem) {
			after, selected = append(after, graph.Awaits(f.resource)...), selected || system
		}
	}
	return after, selected
}
