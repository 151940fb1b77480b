package lab

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFamilies creates clusters with IPv6 and with both families. kube-apiserver and etcd
// take addresses of the right family, and the load balancer reaches the API servers.
func TestFamilies(t *testing.T) {
	l := Start(t)
	l.NewLaptop(t, "", "").Bootstrap(t)
	t.Run("IPv6", func(t *testing.T) {
		text := strings.Replace(Example(t, "ipv6"), "  replicas: 1\n  version", "  replicas: 3\n  version", 1)
		u := l.NewLaptop(t, "ipv6", text)
		u.bring(t, 3, 1)
		u.familyIs(t, "IPv6", "fd02::1", "fd01:")
		u.NothingToDo(t)

		all := u.controlPlanes(t)
		u.lose(t, all[0])
		u.speed = lifelike
		u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
		u.settled(t, 3, 1)
		members, err := u.Members(t.Context(), all[1])
		require.NoError(t, err)
		require.Len(t, Voting(members), 3)
		for _, m := range members {
			assert.Contains(t, m.PeerURLs[0], "https://[fd00::")
		}
		t.Log("proved: with IPv6, three control planes are one etcd, and a lost one is replaced")
		u.speed = speed
		u.gone(t)
	})
	t.Run("dual-stack", func(t *testing.T) {
		u := l.NewLaptop(t, "dual-stack", Example(t, "dual-stack"))
		u.bring(t, 1, 1)
		u.familyIs(t, "IPv4", "172.30.0.1", "192.168.")
		pods := u.Kubectl(t, "get", "nodes", "-o", "jsonpath={.items[*].spec.podCIDRs}")
		assert.Contains(t, pods, "fd01:", "Nodes have a block of each family")
		u.NothingToDo(t)
		t.Log("proved: a dual-stack cluster starts with IPv4 first")
		u.gone(t)
	})
}

// familyIs checks the addresses of the API server's Service and endpoints, of Nodes and their
// blocks of pods.
func (u *Laptop) familyIs(t *testing.T, family, service, pods string) {
	t.Helper()
	assert.Equal(t, family+" "+service, u.Kubectl(t, "get", "service", "kubernetes", "-o", "jsonpath={.spec.ipFamilies[0]} {.spec.clusterIP}"))
	assert.Equal(t, family, u.Kubectl(t, "get", "endpointslices", "-l", "kubernetes.io/service-name=kubernetes", "-o", "jsonpath={.items[0].addressType}"))
	for _, block := range strings.Fields(u.Kubectl(t, "get", "nodes", "-o", "jsonpath={.items[*].spec.podCIDR}")) {
		assert.True(t, strings.HasPrefix(block, pods), block)
	}
	for _, address := range strings.Fields(u.Kubectl(t, "get", "nodes", "-o", `jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}`)) {
		assert.Equal(t, family == "IPv6", strings.Contains(address, ":"), address)
	}
}
