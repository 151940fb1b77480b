package adopt_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// lossy are the examples that an import does not give back as they are: how the graph of the
// import differs, and why. The plan of all is empty.
func lossy() map[string][]string {
	return map[string][]string{
		"byo-vpc": { // security groups that filters have found are in the import by their IDs
			"- machine/byo-vpc-md-0/0 needs security-group/of/byo-vpc-md-0/1 true false",
			"- machine/byo-vpc-md-0/1 needs security-group/of/byo-vpc-md-0/1 true false",
			"- security-group/of/byo-vpc-md-0/1",
			"- security-group/of/byo-vpc-md-0/1 needs vpc false false",
		},
	}
}

// lossyOffline is lossy for the graph that is built without asking AWS: an import sets the zones of
// subnets, and two examples do not. A run looks them up.
func lossyOffline() map[string][]string {
	out := lossy()
	out["byo-load-balancer"] = []string{
		"- machine/byo-load-balancer-control-plane/1 needs subnet/private/subnet-0000000000000002a true false",
		"+ load-balancer/network needs subnet/public/subnet-0000000000000001b true false",
		"+ machine/byo-load-balancer-control-plane/1 needs subnet/private/subnet-0000000000000002b true false",
	}
	out["external"] = []string{
		"- machine/external-control-plane/1 needs subnet/private/subnet-0000000000000002a true false",
		"+ machine/external-control-plane/1 needs subnet/private/subnet-0000000000000002b true false",
	}
	return out
}

// silent are fields of the examples that AWS does not tell and that are not in the graph, and the
// comment that says so in the manifest.
func silent() map[string][]string {
	return map[string][]string{
		"machine-pool":  {"# Not known: refreshPreferences, how many machines are replaced at a time.\nspec:\n  awsLaunchTemplate:"},
		"multi-tenancy": {"# Not known: identityRef, with which identity the cluster was made. Runs use the\n# credentials of the caller.\nspec:\n  region:"},
		"self-healing": {
			"# Not known: how machines are replaced (rollout, deletion, remediation), MachineHealthChecks.\nspec:\n  clusterName: self-healing",
			"remediation), MachineHealthChecks.\nspec:\n  version:",
		},
		"byo-vpc": {
			"      # Security groups of somebody else, by their IDs. Not known: whether filters have found them.\n      additionalSecurityGroups:\n      - id: sg-",
		},
		"resource-sets": {"Neither AWS nor Kubernetes knows\n# MachineHealthChecks, ClusterResourceSets, HelmChartProxies, annotations of"},
	}
}

// A cluster that was made from a manifest is imported as a manifest with the same graph, of
// which the plan is empty. What AWS does not tell is said in a comment.
func TestImport(t *testing.T) {
	enginetest.EachOf(t, enginetest.Examples(t), awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		example := path.Base(t.Name())
		enginetest.MustApply(t, m, a)
		time.Sleep(6 * time.Minute) // until all machines have joined
		before, p := a.Detailed(), a.Process()
		target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
		i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
		require.Equal(t, before, a.Detailed(), "an import changes nothing")
		require.NoError(t, err)
		require.Equal(t, m.Name, i.Name)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Templates)
		require.Empty(t, i.Later)
		require.Empty(t, i.Differences, "%s", i.Manifest)
		require.True(t, i.Plan.Empty(), "%v", i.Plan.Steps)
		again, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{EKSEnableIAM: m.EKS != nil && m.EKS.EnableIAM})
		require.NoError(t, err)
		want, err := enginetest.AccountGraph(t.Context(), enginetest.Open(m, a.Process()))
		require.NoError(t, err)
		have, err := enginetest.AccountGraph(t.Context(), run.Open(again, target))
		require.NoError(t, err)
		require.Equal(t, lossy()[example], graphDifferences(want, have), "%s", i.Manifest)
		want, err = enginetest.Open(m, a.Process()).Graph()
		require.NoError(t, err)
		have, err = run.Open(again, target).Graph()
		require.NoError(t, err)
		require.Equal(t, lossyOffline()[example], graphDifferences(want, have), "%s", i.Manifest)
		for _, comment := range silent()[example] {
			require.Contains(t, string(i.Manifest), comment)
		}
		plan, err := run.Open(again, target).Plan(t.Context())
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%v", plan.Steps)
	})
}

// An import writes the annotation if the cluster is protected from deletion in the account.
func TestImportOfDeletionProtection(t *testing.T) {
	const infra = "kind: AWSCluster\nmetadata:\n"
	m := enginetest.Rewritten(t, enginetest.Quickstart, infra, infra+"  annotations: {clusterawsadm/deletion-protection: 'true'}\n")
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		time.Sleep(6 * time.Minute) // until all machines have joined
		p := a.Process()
		i, err := adopt.Import(t.Context(), m.Name, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Contains(t, string(i.Manifest), "  annotations:\n    clusterawsadm/deletion-protection: \"true\"\n")
		require.True(t, i.Plan.Empty(), "%v", i.Plan.Steps)
	})
}

// The manifest that an import of an EKS cluster writes has what CAPA adds to the network: a bastion, rules of the additional security group of
// nodes, and the setting that empties the default security group.
func TestImportOfEKSNetwork(t *testing.T) {
	const plane = "  sshKeyName: \"\"\n"
	rules := "[{description: Metrics, protocol: tcp, fromPort: 9100, toPort: 9100, cidrBlocks: [10.0.0.0/8]}, {description: Ping, protocol: icmp, fromPort: -1, toPort: -1, sourceSecurityGroupRoles: [node-eks-additional]}]"
	for _, spec := range []string{
		"  bastion: {enabled: true}\n",
		"  bastion: {enabled: true, instanceType: t3.small, allowedCIDRBlocks: [192.0.2.0/24]}\n  network: {additionalControlPlaneIngressRules: " + rules + "}\n",
		"  network: {vpc: {emptyRoutesDefaultVPCSecurityGroup: true}, additionalControlPlaneIngressRules: " + rules + "}\n",
		"  network: {additionalControlPlaneIngressRules: [{description: Pods, protocol: '-1', fromPort: -1, toPort: -1, natGatewaysIPsSource: true}]}\n",
	} {
		m := enginetest.Rewritten(t, enginetest.EKSSmall, plane, plane+spec)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, enginetest.Lag)
			enginetest.Prepare(t, "eks", a, m)
			enginetest.MustApply(t, m, a)
			p := a.Process()
			target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
			i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
			require.NoError(t, err)
			require.True(t, i.Plan.Empty(), "%v\n%s", i.Plan.Steps, i.Manifest)
		})
	}
}

// graphDifferences lists the resources and edges that only one of two graphs has, and the
// desired fields of the first one that the second one lacks. The second one may have more:
// values that AWS has chosen. The tags with the template are not compared.
func graphDifferences(want, have *graph.Graph) (out []string) {
	w, h := edges(want), edges(have)
	for _, e := range w {
		if !slices.Contains(h, e) {
			out = append(out, "- "+e)
		}
	}
	for _, e := range h {
		if !slices.Contains(w, e) {
			out = append(out, "+ "+e)
		}
	}
	for _, r := range want.Resources() {
		other := have.Resource(r.ID())
		if other == nil {
			continue
		}
		fields := other.Wanted()
		for _, c := range r.Wanted() {
			if !slices.Contains(fields, c) && !strings.HasPrefix(c.Field, "tag clusterawsadm/template") && c.Field != "template" {
				out = append(out, fmt.Sprintf("%s: %s %s", r.ID(), c.Field, c.Want))
			}
		}
	}
	return out
}

// edges prints the edges of a graph.
func edges(g *graph.Graph) (out []string) {
	for _, r := range g.Resources() {
		out = append(out, string(r.ID()))
		for _, e := range r.Needs() {
			out = append(out, fmt.Sprintf("%s needs %s %t %t", r.ID(), e.Resource.ID(), e.Existing, e.Loose))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// strangers removes all tags of Cluster API and of this program from an account, as if
// another tool had made its resources.
func strangers(a *awssim.AWS) {
	a.Edit(func(s *awssim.State) {
		for _, tags := range allTags(s) {
			maps.DeleteFunc(tags, func(key, _ string) bool {
				return strings.HasPrefix(key, "sigs.k8s.io/") || strings.HasPrefix(key, "clusterawsadm/") || strings.HasPrefix(key, "kubernetes.io/cluster/")
			})
		}
	})
}

// A cluster that another tool has made in its own VPC is imported, and adopted: it gets tags
// and no other change. From then on it lives like any other cluster; a deletion leaves the
// VPC.
func TestImportStranger(t *testing.T) {
	enginetest.EachOf(t, []string{"eks-byo-vpc.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		strangers(a)
		kind := ""
		a.Edit(func(s *awssim.State) { // a node group that no manifest can describe
			for _, g := range enginetest.Plane(s).NodeGroups {
				kind, g.Kind = g.Kind, "WINDOWS_FULL_2025_x86_64"
			}
		})
		target := cluster.Target{Config: a.Process().Config(), Owner: "test"}
		i, err := adopt.Import(t.Context(), m.KubernetesName(), target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"node-group/default_eks-byo-vpc-pool-0: an AWSManagedMachinePool cannot have the amiType WINDOWS_FULL_2025_x86_64"}, i.LeftOut)
		require.Contains(t, string(i.Manifest), "# - node-group/default_eks-byo-vpc-pool-0: an AWSManagedMachinePool cannot have")

		a.Edit(func(s *awssim.State) {
			for _, g := range enginetest.Plane(s).NodeGroups {
				g.Kind = kind
			}
		})
		i, err = adopt.Import(t.Context(), m.KubernetesName(), target, cluster.ImportOptions{})
		require.NoError(t, err)
		require.Empty(t, i.LeftOut)
		require.Empty(t, i.Differences)
		require.False(t, i.Plan.Empty(), "tags are missing")
		res, err := i.Adopt(t.Context(), cluster.Options{})
		require.NoError(t, err)
		require.NotZero(t, res.Writes)

		again, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: i.Manifest}}, input.LoadOptions{})
		require.NoError(t, err)
		c := run.Open(again, target)
		p, err := c.Plan(t.Context())
		require.NoError(t, err)
		require.True(t, p.Empty(), "%v", p.Steps)
		_, err = c.Delete(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		a.Edit(func(s *awssim.State) { require.Empty(t, s.EKS.Clusters) })
	})
}

// A cluster that does not exist is told.
func TestImportOfNothing(t *testing.T) {
	enginetest.EachOf(t, []string{"quickstart.yaml"}, awssim.Options{}, func(t *testing.T, a *awssim.AWS, m *manifest.Cluster) {
		enginetest.MustApply(t, m, a)
		target := cluster.Target{Config: a.Process().Config(), Owner: "test"}
		_, err := adopt.Import(t.Context(), "nobody", target, cluster.ImportOptions{})
		require.ErrorIs(t, err, cluster.ErrNotFound)
	})
}
