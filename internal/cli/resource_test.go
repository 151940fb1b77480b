package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

// tagged creates resources with the tags of clusters.
func tagged(_ *testing.T, a *awssim.AWS) {
	const capa, ccm = "sigs.k8s.io/cluster-api-provider-aws/cluster/", "kubernetes.io/cluster/"
	a.Edit(func(s *awssim.State) {
		volume := func(n int, tags map[string]string) {
			id := fmt.Sprintf("vol-0%016x", n)
			s.EC2.Volumes[id] = &awssim.Volume{Thing: awssim.Thing{ID: id, Tags: tags}}
		}
		for n := range 120 {
			volume(n, map[string]string{capa + "large": "owned"})
		}
		volume(200, map[string]string{capa + "demo": "owned", ccm + "demo": "owned"})
		volume(201, map[string]string{ccm + "demo": "owned"})
		volume(202, map[string]string{ccm + "demo": "shared"})
		volume(203, map[string]string{ccm + "demo": ""})
		volume(204, map[string]string{ccm + "demolition": "owned", capa + "demolition": "owned"})
		volume(205, map[string]string{capa + "demo": "common"})
		s.S3.Buckets["demo-state"] = &awssim.Bucket{Name: "demo-state", Tags: map[string]string{capa + "demo": "owned"}}
	})
}

func TestResourceList(t *testing.T) {
	s := newSession(t)
	s.simulates(tagged)
	s.types(0, "resource", "list", "-n", "demo")
	s.types(0, "resource", "list", "-n", "demo", "-o", "json")
	s.types(0, "resource", "list", "-n", "demo", "-o", "yaml")
	s.types(0, "resource", "list", "-n", "demo", "--all")
	s.types(0, "resource", "list", "-n", "demo", "--all", "-o", "json")
	s.types(0, "resource", "list", "-n", "nobody")
	s.types(0, "resource", "list", "-n", "nobody", "--all")
	s.types(0, "resource", "list", "-n", "nobody", "-o", "json")
	s.types(1, "resource", "list", "-n", "demo", "-o", "xml")
	assert.Empty(t, s.out.String(), "a wrong format is told before anything is asked")
	s.types(1, "resource", "list")
	s.types(1, "resource", "list", "-n", "demo", "extra")
	s.terminal("")
	s.types(0, "resource", "list", "-n", "demo")
	s.types(1, "resource", "list", "-n", "demo", "--nope")
	golden.Assert(t, "resource.txt", s.transcript())

	require.Equal(t, 0, s.run("resource", "list", "-n", "large", "-o", "json"))
	var answer struct {
		Resources []struct{ ARN string } `json:"aws_resources"`
	}
	require.NoError(t, json.Unmarshal(s.out.Bytes(), &answer), "stdout is the answer, and nothing else")
	seen := map[string]bool{}
	for _, r := range answer.Resources {
		seen[r.ARN] = true
	}
	assert.Len(t, seen, 120, "all pages")
	require.Equal(t, 0, s.run("resource", "list", "-n", "large"))
	assert.Equal(t, 120, strings.Count(s.out.String(), "arn:aws:ec2:"))
}

func TestResourceListNeedsARegion(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 1, s.run("resource", "list", "-n", "demo"))
	assert.Contains(t, s.err.String(), "error: no AWS region: use --region")
}
