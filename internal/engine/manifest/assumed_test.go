package manifest_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// What a manifest takes for granted in the account, and which field says so.
func TestAssumed(t *testing.T) {
	var out strings.Builder
	list := func(name string, m *manifest.Cluster) {
		fmt.Fprintf(&out, "%s\n", name)
		for _, x := range m.Assumed() {
			fmt.Fprintf(&out, "  %s:\n   ", x.Origin)
			x.Origin = ""
			for field, v := range reflect.ValueOf(x).Fields() {
				if !v.IsZero() {
					fmt.Fprintf(&out, " %s=%v", field.Name, v)
				}
			}
			fmt.Fprintln(&out)
		}
	}
	data, err := os.ReadFile("loader/testdata/good/assumed.yaml")
	require.NoError(t, err)
	list("assumed.yaml", manifests.MustLoad(t, string(data), input.LoadOptions{}))
	for _, file := range []string{
		"eks-iam.yaml", "eks-fargate.yaml", "eks-byo-vpc.yaml", "eks-templates.yaml", "eks-karpenter.yaml", "eks-auto.yaml", "byo-vpc.yaml", "byo-load-balancer.yaml",
		"machine-pool.yaml", "multi-tenancy.yaml", "spot-volumes-placement.yaml", "external.yaml",
	} {
		list(file, enginetest.Load(t, file, nil))
	}
	golden.Assert(t, "assumed.golden", out.String())
}

// A subnet that says "isPublic: false" stays private, whatever the others are taken for.
func TestAssumedSubnetsAsWritten(t *testing.T) {
	public := func(oldnew ...string) (ids []string) {
		for _, x := range enginetest.Rewritten(t, "byo-vpc.yaml", oldnew...).Assumed() {
			if x.Kind == cluster.AssumedSubnet && x.Public {
				ids = append(ids, x.ID)
			}
		}
		return ids
	}
	const first, second = "subnet-0000000000000001a", "subnet-0000000000000001b"
	require.Equal(t, []string{first, second}, public())
	require.Equal(t, []string{first, second}, public("      isPublic: true\n", ""))
	require.Empty(t, public("isPublic: true", "isPublic: false"))
	require.Equal(t, []string{second}, public(
		first+" # public, in us-east-1a\n      availabilityZone: us-east-1a\n      isPublic: true",
		first+"\n      availabilityZone: us-east-1a\n      isPublic: false",
		second+" # public, in us-east-1b\n      availabilityZone: us-east-1b\n      isPublic: true", second+"\n      availabilityZone: us-east-1b",
	))
}

// An exported manifest has the IDs of its subnets in resourceID. The machines of a control plane that filters place are spread over three zones.
func TestAssumedSubnetsOfExported(t *testing.T) {
	data, err := os.ReadFile("loader/testdata/exported/eks.yaml")
	require.NoError(t, err)
	subnets := func(m *manifest.Cluster) (all []string) {
		for _, x := range m.Assumed() {
			if x.Kind == cluster.AssumedSubnet {
				all = append(all, x.ID+" "+x.Zone)
			}
		}
		return all
	}
	require.Equal(t, []string{
		"subnet-0aaaaaaaaaaaaaaaa us-east-1a", "subnet-0bbbbbbbbbbbbbbbb us-east-1a", "subnet-0cccccccccccccccc us-east-1b", "subnet-0dddddddddddddddd us-east-1b",
	}, subnets(manifests.MustLoad(t, string(data), input.LoadOptions{})))

	m := enginetest.Load(t, "byo-vpc.yaml", nil)
	m.Infra.Spec.NetworkSpec.Subnets = m.Infra.Spec.NetworkSpec.Subnets[:1]
	spec := &m.ControlPlane.Template.Spec.Template.Spec
	spec.Subnet = &infrav1.AWSResourceReference{Filters: []infrav1.Filter{{Name: "tag:Name", Values: []string{"nodes"}}}}
	m.ControlPlane.Object.Spec.Replicas = new(int32(3))
	require.Equal(t, []string{"subnet-0000000000000001a us-east-1a", " us-east-1a", " us-east-1b", " us-east-1c"}, subnets(m))
}
