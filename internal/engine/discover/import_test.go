package discover_test

import (
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
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
		"resource-sets": {"Neither AWS nor Kubernetes knows\n# MachineHealthChecks, ClusterResourceSets, repositories and values of Helm charts,"},
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
		require.Equal(t, lossy()[example], enginetest.GraphDifferences(want, have), "%s", i.Manifest)
		want, err = enginetest.Open(m, a.Process()).Graph()
		require.NoError(t, err)
		have, err = run.Open(again, target).Graph()
		require.NoError(t, err)
		require.Equal(t, lossyOffline()[example], enginetest.GraphDifferences(want, have), "%s", i.Manifest)
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
			enginetest.Prepare(t, a, m)
			enginetest.MustApply(t, m, a)
			p := a.Process()
			target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}
			i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
			require.NoError(t, err)
			require.True(t, i.Plan.Empty(), "%v\n%s", i.Plan.Steps, i.Manifest)
		})
	}
}
