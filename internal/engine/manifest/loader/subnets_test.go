package loader_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Subnets of v1beta2 without id get the names that CAPA gives to them; a warning says that an API server takes only one.
func TestSubnetsWithoutID(t *testing.T) {
	listed := func(subnets ...string) string {
		return manifests.Edit(
			t,
			quickstart(t),
			"  region: us-east-1",
			"  region: us-east-1\n  network:\n    subnets:\n    - {"+strings.Join(subnets, "}\n    - {")+"}",
		)
	}
	const a, b, c = "cidrBlock: 10.0.0.0/24, availabilityZone: us-east-1a, isPublic: true", "cidrBlock: 10.0.1.0/24, availabilityZone: us-east-1a",
		"cidrBlock: 10.0.2.0/24, availabilityZone: us-east-1a"
	const warning = "cluster.yaml:44: AWSCluster/quickstart spec.network.subnets[1]: the second subnet without an id, which a management cluster refuses"
	for _, tt := range []struct {
		name, yaml string
		want       []string
		warns      bool
	}{
		{"several", listed(a, b, c), []string{"quickstart-subnet-public-us-east-1a", "quickstart-subnet-private-us-east-1a-10-0-1-0-24", "quickstart-subnet-private-us-east-1a-10-0-2-0-24"}, true},
		{"one", listed("id: a, "+a, b), []string{"a", "quickstart-subnet-private-us-east-1a"}, false},
		{
			"v1beta1", manifests.Edit(t, listed(a, b), "  controlPlaneLoadBalancer:\n    loadBalancerType: nlb\n", "", "infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\n", "infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSCluster\n"),
			[]string{"quickstart-subnet-public-us-east-1a", "quickstart-subnet-private-us-east-1a"},
			false,
		},
		{
			"of an existing VPC", manifests.Edit(t, listed(a, b), "  network:\n", "  network:\n    vpc: {id: vpc-0123456789abcdef0}\n"),
			[]string{"", ""},
			true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := manifests.MustLoad(t, tt.yaml, input.LoadOptions{})
			names := []string{}
			for _, s := range m.Infra.Spec.NetworkSpec.Subnets {
				names = append(names, s.ID)
			}
			assert.Equal(t, tt.want, names)
			all := strings.Join(manifests.Warnings(m), "\n")
			assert.Equal(t, tt.warns, strings.Contains(all, "the second subnet without an id"), all)
			if tt.name == "several" {
				assert.Contains(t, all, warning)
			}
		})
	}
}
