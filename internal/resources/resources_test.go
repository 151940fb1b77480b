package resources

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

func TestList(t *testing.T) {
	const capa, ccm = "sigs.k8s.io/cluster-api-provider-aws/cluster/demo", "kubernetes.io/cluster/demo"
	a := awssim.New(awssim.Options{Page: 7})
	a.Edit(func(s *awssim.State) {
		volume := func(n int, tags map[string]string) {
			id := fmt.Sprintf("vol-0%016x", n)
			s.EC2.Volumes[id] = &awssim.Volume{Thing: awssim.Thing{ID: id, Tags: tags}}
		}
		for n := range 20 {
			volume(n, map[string]string{ccm: "shared"})
			volume(100+n, map[string]string{ccm: "owned"})
			volume(200+n, map[string]string{ccm: "owned", capa: "owned"})
			volume(300+n, map[string]string{capa: "owned"})
			volume(400+n, map[string]string{capa: "shared", "x": "y"})
		}
	})
	all, err := List(t.Context(), a.Config(), Options{Cluster: "demo"})
	require.NoError(t, err)
	require.Len(t, all, 40, "in pages of seven")
	for _, r := range all {
		assert.Empty(t, r.Ownership)
	}
	assert.Equal(
		t,
		Resource{"aws", "ec2", "us-east-1", "123456789012", "volume/vol-000000000000000c8", "arn:aws:ec2:us-east-1:123456789012:volume/vol-000000000000000c8", ""},
		all[0],
	)

	all, err = List(t.Context(), a.Config(), Options{Cluster: "demo", All: true})
	require.NoError(t, err)
	require.Len(t, all, 80, "without duplicates")
	for i, r := range all {
		want := OwnedByCAPA
		if i >= 40 {
			want = Owned
		}
		if i >= 60 {
			want = Shared
		}
		assert.Equal(t, want, r.Ownership)
	}

	p := a.Process()
	p.Fault = func(n int, _, _ string) awssim.Fault {
		if n == 3 {
			return awssim.Denied
		}
		return awssim.None
	}
	_, err = List(t.Context(), p.Config(), Options{Cluster: "demo"})
	require.ErrorContains(t, err, "list resources with the tag "+capa)
}
