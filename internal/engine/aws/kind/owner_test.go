package kind_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
)

// The tags decide what is deleted with a cluster, so that each row of this table is a resource that somebody loses, or keeps.
func TestOwner(t *testing.T) {
	const capa = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	plain := kind.Owner{Cluster: "demo", Kubernetes: "demo"}
	eks := kind.Owner{Cluster: "demo", Kubernetes: "team_demo", EKS: true}
	shared := kind.Owner{Cluster: "demo", Kubernetes: "demo", Shared: true}
	unknown := kind.Owner{Cluster: "demo"}
	for name, c := range map[string]struct {
		of                      kind.Owner
		tags                    cloud.Tags
		owns, created, contains bool
	}{
		"no tags":                               {plain, nil, false, false, false},
		"a run's":                               {plain, cloud.Tags{capa + "demo": "owned"}, true, false, true},
		"a run's, with that of the provider":    {plain, cloud.Tags{capa + "demo": "owned", "kubernetes.io/cluster/demo": "owned"}, true, false, true},
		"the user's, for the cluster":           {plain, cloud.Tags{capa + "demo": "shared"}, false, false, false},
		"another cluster's":                     {plain, cloud.Tags{capa + "demo-2": "owned"}, false, false, false},
		"a controller's":                        {plain, cloud.Tags{"kubernetes.io/cluster/demo": "owned"}, false, true, true},
		"the user's, for a controller":          {plain, cloud.Tags{"kubernetes.io/cluster/demo": "shared"}, false, false, false},
		"another cluster's controller's":        {plain, cloud.Tags{"kubernetes.io/cluster/demo-2": "owned"}, false, false, false},
		"another cluster's, named as this one":  {plain, cloud.Tags{capa + "demo-2": "owned", "kubernetes.io/cluster/demo": "owned"}, false, false, false},
		"a load balancer controller's":          {plain, cloud.Tags{"elbv2.k8s.aws/cluster": "demo"}, false, true, true},
		"another load balancer controller's":    {plain, cloud.Tags{"elbv2.k8s.aws/cluster": "demo-2"}, false, false, false},
		"an interface of the CNI":               {plain, cloud.Tags{"cluster.k8s.amazonaws.com/name": "demo"}, false, false, true},
		"two clusters, a run's":                 {shared, cloud.Tags{capa + "demo": "owned"}, true, false, true},
		"two clusters, a controller's":          {shared, cloud.Tags{"kubernetes.io/cluster/demo": "owned"}, false, false, false},
		"two clusters, a balancer's":            {shared, cloud.Tags{"elbv2.k8s.aws/cluster": "demo"}, false, false, false},
		"two clusters, an interface":            {shared, cloud.Tags{"cluster.k8s.amazonaws.com/name": "demo"}, false, false, false},
		"EKS, a run's":                          {eks, cloud.Tags{capa + "demo": "owned"}, true, false, true},
		"EKS, a controller's":                   {eks, cloud.Tags{"kubernetes.io/cluster/team_demo": "owned"}, false, true, true},
		"EKS, of a cluster named as the object": {eks, cloud.Tags{"kubernetes.io/cluster/demo": "owned"}, false, false, false},
		"EKS, its security group": {
			eks, cloud.Tags{"aws:eks:cluster-name": "team_demo", "kubernetes.io/cluster/team_demo": "owned"}, false, false, true,
		},
		"EKS, a machine of a node group":     {eks, cloud.Tags{"eks:cluster-name": "team_demo"}, false, false, true},
		"EKS, a machine of another cluster":  {eks, cloud.Tags{"eks:cluster-name": "demo"}, false, false, false},
		"self-managed, a machine of EKS":     {plain, cloud.Tags{"eks:cluster-name": "demo"}, false, false, false},
		"name unknown, a run's":              {unknown, cloud.Tags{capa + "demo": "owned"}, true, false, true},
		"name unknown, a tag without a name": {unknown, cloud.Tags{"kubernetes.io/cluster/": "owned", "elbv2.k8s.aws/cluster": ""}, false, false, false},
		"name unknown, an interface":         {unknown, cloud.Tags{"cluster.k8s.amazonaws.com/name": ""}, false, false, false},
	} {
		require.Equal(t, c.owns, c.of.Owns(c.tags), "%s: owns", name)
		require.Equal(t, c.created, c.of.Created(c.tags), "%s: created", name)
		require.Equal(t, c.owns || c.created, c.of.Has(c.tags), "%s: has", name)
		require.Equal(t, c.contains, c.of.Contains(c.tags), "%s: contains", name)
	}
}

// A resource may have lost its tags if none is left, or if one is left that only a run sets, and nobody else owns it.
func TestMayHaveLost(t *testing.T) {
	for name, c := range map[string]struct {
		tags cloud.Tags
		may  bool
	}{
		"none":                     {nil, true},
		"the role":                 {cloud.Tags{cloud.RoleTag: "node", "team": "x"}, true},
		"the identity":             {cloud.Tags{cloud.ResourceTag: "machine/md/0"}, true},
		"the template":             {cloud.Tags{cloud.TemplateTag: "abc"}, true},
		"the user's only":          {cloud.Tags{"Name": "mine"}, false},
		"of a group":               {cloud.Tags{cloud.RoleTag: "node", "aws:autoscaling:groupName": "g"}, false},
		"of a stack":               {cloud.Tags{"aws:cloudformation:stack-name": "s"}, false},
		"of another cluster":       {cloud.Tags{cloud.ResourceTag: "vpc", cloud.ClusterTagPrefix + "demo-2": "owned"}, false},
		"shared with this cluster": {cloud.Tags{cloud.ClusterTagPrefix + "demo": "shared"}, false},
	} {
		require.Equal(t, c.may, kind.Owner{Cluster: "demo"}.MayHaveLost(c.tags), name)
	}
}

// The EKS cluster may be gone: then only a name that differs from that of the Cluster object shows that there was one.
func TestEKSName(t *testing.T) {
	for want, of := range map[string]kind.Owner{
		"same":  {Cluster: "same", Kubernetes: "same", EKS: true},
		"other": {Cluster: "demo", Kubernetes: "other"},
		"":      {Cluster: "demo", Kubernetes: "demo"},
	} {
		require.Equal(t, want, of.EKSName())
	}
	require.Empty(t, kind.Owner{Cluster: "demo", Kubernetes: "other", EKS: true, Shared: true}.EKSName())
	require.Empty(t, kind.Owner{Cluster: "demo"}.EKSName())
}
