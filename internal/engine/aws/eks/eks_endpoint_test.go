package eks_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

const (
	office       = "198.51.100.0/24"
	addAddresses = "  annotations: {clusterawsadm/nat-addresses-in-public-cidrs: 'true'}\n"
)

// restricted returns an example whose API server has a public endpoint for one block only.
func restricted(t *testing.T, file, annotations string) *manifest.Cluster {
	t.Helper()
	return enginetest.Rewritten(t, file, planeHead, planeHead+annotations,
		"  sshKeyName: \"\"\n", "  sshKeyName: \"\"\n  endpointAccess: {public: true, publicCIDRs: ["+office+"]}\n")
}

// natBlocks returns the addresses of the NAT gateways as blocks, and the blocks that may use the endpoint, both sorted.
func natBlocks(t *testing.T, a *awssim.AWS) (addresses, permitted []string) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		for _, n := range s.EC2.NATGateways {
			if n.Deleted.IsZero() {
				addresses = append(addresses, s.EC2.Addresses[n.Address].PublicIP+"/32")
			}
		}
		permitted = slices.Sorted(slices.Values(onlyCluster(t, s).PublicCIDRs))
	})
	slices.Sort(addresses)
	return addresses, permitted
}

// blocksOf returns the changes of the blocks in a plan.
func blocksOf(t *testing.T, p plan.Plan) (out []string) {
	t.Helper()
	for _, c := range enginetest.StepOf(t, p, "eks-cluster").Diff {
		if c.Field == "endpointAccess.publicCIDRs" {
			out = append(out, strings.TrimSpace(c.Have+" → "+c.Want))
		}
	}
	return out
}

// Nodes call a public endpoint from the addresses of the NAT gateways. Without them in its list, no node joins; with the
// annotation, the cluster is created with them, which takes no call and no time more.
func TestNATAddressesMayUseTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := restricted(t, "eks.yaml", "")
		a := enginetest.Prepared(t, closed)
		_, err := enginetest.Open(closed, a.Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "node-group/default_eks-pool-0")
	})
	var open time.Duration
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "eks.yaml", nil)
		a, start := enginetest.Prepared(t, m), time.Now()
		enginetest.MustApply(t, m, a)
		open = time.Since(start)
	})
	synctest.Test(t, func(t *testing.T) {
		m := restricted(t, "eks.yaml", addAddresses)
		a, start := enginetest.Prepared(t, m), time.Now()
		require.Equal(t, []string{"→ (known after apply)", "→ " + office}, blocksOf(t, enginetest.MustPlan(t, m, a)))
		start = start.Add(time.Since(start))
		enginetest.MustApply(t, m, a)
		assert.Less(t, time.Since(start), open+5*time.Second)
		addresses, permitted := natBlocks(t, a)
		require.Len(t, addresses, 3)
		require.Equal(t, slices.Sorted(slices.Values(append(addresses, office))), permitted)
		for _, c := range a.Calls() {
			require.NotEqual(t, "UpdateClusterConfig", c.Operation, "the cluster is created with them")
		}
		enginetest.RequireNoChange(t, m, a)

		a.Edit(func(s *awssim.State) { onlyCluster(t, s).PublicCIDRs = []string{office} })
		enginetest.MustApply(t, m, a)
		_, permitted = natBlocks(t, a)
		require.Subset(t, permitted, addresses)

		enginetest.MustApply(t, restricted(t, "eks.yaml", ""), a)
		_, permitted = natBlocks(t, a)
		require.Equal(t, []string{office}, permitted, "without the annotation, the addresses go")
		enginetest.RequireNoChange(t, restricted(t, "eks.yaml", ""), a)
		enginetest.MustDelete(t, m, a)
	})
}

// Somebody deletes a NAT gateway and its address: the new address may use the endpoint, and the old one may not.
func TestNATAddressIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := restricted(t, "eks.yaml", addAddresses)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		lost := ""
		a.Edit(func(s *awssim.State) {
			for id, n := range s.EC2.NATGateways {
				lost = s.EC2.Addresses[n.Address].PublicIP + "/32"
				delete(s.EC2.Addresses, n.Address)
				delete(s.EC2.NATGateways, id)
				break
			}
		})
		require.Equal(t, []string{lost + " →", "→ (known after apply)"}, blocksOf(t, enginetest.MustPlan(t, m, a)))
		enginetest.MustApply(t, m, a)
		addresses, permitted := natBlocks(t, a)
		require.NotContains(t, permitted, lost)
		require.Equal(t, slices.Sorted(slices.Values(append(addresses, office))), permitted)
		enginetest.RequireNoChange(t, m, a)
	})
}

// In an existing VPC, the addresses are those of the gateways to which the routes of the private subnets lead, wherever
// these gateways are.
func TestNATAddressesOfAnExistingVPC(t *testing.T) {
	const file = "eks-byo-vpc.yaml"
	synctest.Test(t, func(t *testing.T) {
		m := restricted(t, file, addAddresses)
		a := enginetest.Prepared(t, m)
		a.Edit(func(s *awssim.State) { // the gateways are in public subnets that the manifest does not list
			vpc := ""
			for _, n := range s.EC2.NATGateways {
				n.Subnet, vpc = "subnet-0000000000000009f", n.VPC
			}
			for id, g := range s.EC2.InternetGateways {
				for _, table := range s.EC2.RouteTables {
					if g.VPC == vpc && table.VPC == vpc && table.Main != "" {
						table.Routes = []awssim.Route{{Destination: "0.0.0.0/0", Target: id}}
					}
				}
			}
		})
		enginetest.MustApply(t, m, a)
		addresses, permitted := natBlocks(t, a)
		require.Len(t, addresses, 2)
		require.Equal(t, slices.Sorted(slices.Values(append(addresses, office))), permitted)
		enginetest.RequireNoChange(t, m, a)
		enginetest.MustDelete(t, m, a)
	})
	synctest.Test(t, func(t *testing.T) {
		m := restricted(t, file, addAddresses)
		a := enginetest.Prepared(t, m)
		a.Edit(func(s *awssim.State) {
			for _, table := range s.EC2.RouteTables {
				for i, r := range table.Routes {
					if strings.HasPrefix(r.Target, "nat-") {
						table.Routes[i].Target = "tgw-0123456789abcdef0"
					}
				}
			}
		})
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorContains(t, err, "no private subnet of the cluster has a route to a NAT gateway with a public address")
	})
}

// EKS takes 40 blocks, and the plan counts the addresses that do not exist yet.
func TestNATAddressesAreTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := restricted(t, "eks.yaml", addAddresses)
		access := &m.EKS.ControlPlane.Spec.EndpointAccess
		for i := range 37 {
			access.PublicCIDRs = append(access.PublicCIDRs, new("203.0.113."+string(rune('0'+i/10))+string(rune('0'+i%10))+"/32"))
		}
		_, err := enginetest.Open(m, enginetest.Prepared(t, m).Process()).Apply(t.Context(), cluster.Options{})
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "with the addresses of the NAT gateways, 41 blocks may use the public endpoint, and EKS takes 40")
	})
}

// A controller of CAPA writes the blocks of its object: the objects of a handover have the addresses.
func TestNATAddressesAreHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := restricted(t, "eks.yaml", addAddresses)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		all, err := adopt.Objects(t.Context(), enginetest.Open(m, a.Process()))
		require.NoError(t, err)
		_, permitted := natBlocks(t, a)
		i := slices.IndexFunc(all.Items, func(o cluster.Object) bool { return o.Content["kind"] == "AWSManagedControlPlane" })
		require.GreaterOrEqual(t, i, 0)
		blocks, _ := manifest.ValueAt(all.Items[i].Content, "spec.endpointAccess.publicCIDRs").([]any)
		var texts []string
		for _, b := range blocks {
			texts = append(texts, b.(string))
		}
		require.Equal(t, permitted, texts)
		m.EKS.ControlPlane.Spec.EndpointAccess.PublicCIDRs = nil
		for _, b := range texts { // taken back, the manifest has both
			m.EKS.ControlPlane.Spec.EndpointAccess.PublicCIDRs = append(m.EKS.ControlPlane.Spec.EndpointAccess.PublicCIDRs, &b)
		}
		enginetest.RequireNoChange(t, m, a)
	})
}
