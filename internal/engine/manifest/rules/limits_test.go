package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Limits of lists, and dates of releases that EKS cannot have.
func TestLimitsOfPools(t *testing.T) {
	types := func(n int, form string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(form, i))
		}
		return strings.Join(all, ", ")
	}
	const (
		group = "metadata:\n  name: eks-pool-0\nspec:\n  amiType: AL2023_x86_64_STANDARD\n  instanceType: t3.large\n"
		mixed = "    overrides:\n    - instanceType: m6i.large\n    - instanceType: m5.large\n    - instanceType: m5.xlarge\n"
	)
	several := func(n int) []string {
		return []string{
			group,
			"metadata:\n  name: eks-pool-0\n  annotations: {clusterawsadm/instance-types: '" + types(n, "m%d.large") + "'}\nspec:\n  amiType: AL2023_x86_64_STANDARD\n",
		}
	}
	overrides := func(n int) []string {
		return []string{mixed, "    overrides: [" + types(n, "{instanceType: x%d.large}") + "]\n"}
	}
	release := func(version string) []string {
		return []string{"  instanceType: t3.large\n", "  instanceType: t3.large\n  amiVersion: " + version + "\n"}
	}
	for name, tt := range map[string]struct {
		file string
		edit []string
		want string
	}{
		"20 types":          {"eks", several(20), ""},
		"21 types":          {"eks", several(21), "a node group has at most 20 instance types, this one has 21"},
		"40 overrides":      {"machine-pool", overrides(40), ""},
		"41 overrides":      {"machine-pool", overrides(41), "spec.mixedInstancesPolicy.overrides: a group has at most 40 instance types, this one has 41"},
		"release":           {"eks", release("1.34.2-20251023"), ""},
		"release of 1999":   {"eks", release("1.34.0-19990101"), "1.34.0-19990101 has no date on which EKS can have published it"},
		"release of no day": {"eks", release("1.34.0-20251345"), "has no date on which EKS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifests.Load(t, manifests.Edit(t, manifests.Read(t, "../../../../configs/"+tt.file+".yaml"), tt.edit...), input.LoadOptions{})
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// CAPA reads some fields for network load balancers only.
func TestFieldsOfClassicLoadBalancers(t *testing.T) {
	const balancer = "    loadBalancerType: nlb\n"
	yaml := manifests.Edit(t, manifests.Read(t, "../../../../configs/quickstart.yaml"), balancer,
		"    loadBalancerType: classic\n    healthCheckProtocol: TCP\n    healthCheck: {intervalSeconds: 5}\n    preserveClientIP: true\n")
	all := strings.Join(manifests.Warnings(manifests.MustLoad(t, yaml, input.LoadOptions{})), "\n")
	assert.Contains(t, all, "spec.controlPlaneLoadBalancer: healthCheck, preserveClientIP have no effect on a classic load balancer")
	assert.Equal(t, 1, strings.Count(all, "no effect on a classic load balancer"))
}
