package lab

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// TestReady creates what "cluster generate" prints, on instances with the real containerd, runc
// and kubelet. Its add-ons are real, too, but for the EBS CSI driver: flannel, kube-proxy,
// CoreDNS, and AWS's cloud controller manager, which talks to moto.
func TestReady(t *testing.T) {
	root, err := controlplane.Root()
	require.NoError(t, err)
	text, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "clusterawsadm"), "cluster", "generate", "demo").Output()
	require.NoError(t, err)
	l := Start(t)
	l.realRuntimes(t, string(text))
	l.NewLaptop(t, "", "").Bootstrap(t)
	u := l.NewLaptop(t, "demo", string(text))
	u.speed = lifelike
	began := time.Now()
	u.Create(t)
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
	t.Logf(
		"Ready after %s\n%s%s",
		time.Since(began).Round(time.Second),
		u.Kubectl(t, "get", "nodes", "-o", "wide"),
		u.Kubectl(t, "get", "pods", "-A", "-o", "wide"),
	)
	for _, p := range u.Objects(t.Context(), "pods", "-A") {
		assert.True(t, p.Is("Ready"), "%s was not Ready when create ended", p.Metadata.Name)
	}
	u.NothingToDo(t)
	t.Log("proved: with the real kubelet and add-ons, create --wait ready ends when all of them run; another plan has no changes")

	for _, n := range u.Objects(t.Context(), "nodes") {
		assert.True(t, strings.HasPrefix(n.Spec.ProviderID, "aws:///"+region), "the cloud controller manager has set %q", n.Spec.ProviderID)
		assert.Contains(t, n.Metadata.Labels, "topology.kubernetes.io/zone")
	}
	u.Kubectl(t, "apply", "-f", "testdata/web.yaml")
	u.Kubectl(t, "rollout", "status", "daemonset/web", "deployment/get", "--timeout=90s")
	answers := map[string]bool{}
	u.Until(t, "pods of both nodes answer", patience, func() bool {
		out, err := u.TryKubectl(t.Context(), "exec", "deployment/get", "--", "/get", "http://web.default.svc.cluster.local:8080")
		if err == nil {
			answers[out] = true
		}
		return len(answers) == 2
	})
	t.Log("proved: a pod finds a Service by its name, and reaches pods of its own node and of another one")

	balancer := func() string {
		return u.Kubectl(t, "get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].hostname}")
	}
	u.Until(t, "the Service has a load balancer", patience, func() bool { return balancer() != "" })
	classic := func() (names []string) {
		var answer struct {
			Names []string `xml:"DescribeLoadBalancersResult>LoadBalancerDescriptions>member>DNSName"`
		}
		require.NoError(t, u.account.Ask(t.Context(), "elasticloadbalancing", "2012-06-01", "DescribeLoadBalancers", &answer))
		return answer.Names
	}
	assert.Equal(t, []string{balancer()}, classic(), "the cloud controller manager has made it")
	u.charts(t, string(text))
	u.gone(t)
	assert.Empty(t, classic())
	t.Log("proved: a Service of type LoadBalancer gets a load balancer, and delete removes it")
}
