package cli

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/simulated"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

func to(a *awssim.AWS) cluster.Target {
	p := a.Process()
	return cluster.Target{
		Config: p.Config(), Owner: "a test", Wait: plan.NodesReady, AskCluster: true, Drain: true, Helm: simulated.Helm(),
		Transport: func(access cluster.Access) http.RoundTripper { return p.Kubernetes(kube.Access(access)) },
	}
}

// lives applies the manifest of a flavor to a simulated account, and then again.
func lives(t *testing.T, manifest string) (*awssim.AWS, *reconcile.Cluster) {
	t.Helper()
	m, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: []byte(manifest)}}, input.LoadOptions{})
	require.NoError(t, err)
	a := awssim.New(awssim.Options{})
	c := reconcile.Open(m, to(a))
	res, err := c.Apply(t.Context(), cluster.Options{})
	require.NoError(t, err)
	require.Positive(t, res.Nodes.Joined)
	require.Equal(t, res.Nodes.Joined, res.Nodes.Ready)
	res, err = c.Apply(t.Context(), cluster.Options{})
	require.NoError(t, err)
	require.True(t, res.Plan.Empty(), "the second run changes something")
	return a, c
}

// TestGeneratedNodesAreReady applies what generate prints.
func TestGeneratedNodesAreReady(t *testing.T) {
	for _, args := range []string{
		"quickstart", "clusterclass", "dual-stack", "ipv6", "machine-pool", "single-machines", "resource-sets",
		"quickstart --cni calico", "dual-stack --cni calico", "quickstart --cni cilium", "ipv6 --cni cilium", "clusterclass --cni cilium", "single-machines --cni cilium",
	} {
		t.Run(args, func(t *testing.T) {
			s := newShell(t)
			require.Equal(t, 0, s.run(append([]string{"cluster", "generate", "demo", "--flavor"}, strings.Fields(args)...)...), s.err.String())
			assert.Empty(t, s.err.String())
			synctest.Test(t, func(t *testing.T) { lives(t, s.out.String()) })
		})
	}
}

// TestGeneratedRunsPods has a database with a claim and a Service with a load balancer in a cluster of
// the default flavor, rolls its machines, and deletes it.
func TestGeneratedRunsPods(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "demo"), s.err.String())
	manifest := s.out.String()
	synctest.Test(t, func(t *testing.T) {
		a, _ := lives(t, manifest)
		in := kubesim.Object{"name": "db", "namespace": "default"}
		for _, o := range []kubesim.Object{
			{"apiVersion": "v1", "kind": "Service", "metadata": kubesim.Object{"name": "web", "namespace": "default"}, "spec": kubesim.Object{"type": "LoadBalancer"}},
			{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": in, "spec": kubesim.Object{
				"replicas": 1.0, "volumeClaimTemplates": []any{kubesim.Object{"metadata": kubesim.Object{"name": "data"}, "spec": kubesim.Object{}}},
			}},
		} {
			a.Edit(func(st *awssim.State) {
				for _, c := range st.Kubernetes {
					c.Put(time.Now(), o)
				}
			})
		}
		for range 6 {
			time.Sleep(10 * time.Second)
			a.Inventory() // a call, so that the simulation advances
		}
		a.Edit(func(st *awssim.State) {
			for _, c := range st.Kubernetes {
				claim := c.Get("/api/v1/namespaces/default/persistentvolumeclaims/data-db-0")
				assert.Equal(t, "Bound", kubesim.Value(claim, "status", "phase"), fmt.Sprint(claim))
				assert.Equal(t, "gp3", kubesim.Value(claim, "spec", "storageClassName"))
			}
		})
		assert.Contains(t, strings.Join(a.Inventory(), "\n"), "SecurityGroup k8s-elb-")

		m, err := reconcile.Load([]input.Source{{Name: "demo.yaml", Data: []byte(strings.ReplaceAll(manifest, "t3.large", "m6i.large"))}}, input.LoadOptions{})
		require.NoError(t, err)
		c := reconcile.Open(m, to(a))
		res, err := c.Apply(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, res.Nodes.Joined, res.Nodes.Ready)
		_, err = c.Delete(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Empty(t, a.Inventory())
	})
}

func TestGenerateNetworks(t *testing.T) {
	s := newShell(t)
	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--cni", "none"))
	assert.NotContains(t, s.out.String(), "flannel")
	assert.NotContains(t, s.out.String(), "8472")
	assert.Contains(t, s.out.String(), "cloud-controller-manager:v1.34.0")
	assert.Equal(t, "The manifest installs no pod network (--cni none): Nodes become ready when you have installed one.\n", s.err.String())

	require.Equal(t, 0, s.run("cluster", "generate", "demo", "--flavor", "multi-tenancy", "--kubernetes-version", "v1.33.4", "--region", "eu-west-1"))
	assert.Contains(t, s.out.String(), "cloud-controller-manager:v1.33.0")
	assert.Contains(t, s.out.String(), "  name: demo-flannel\n  namespace: team-a\n")
	assert.Contains(t, s.out.String(), "{name: AWS_REGION, value: eu-west-1}")
	assert.NotRegexp(t, `<[a-z-]+>`, s.out.String(), "a word that stands for a value is left")

	for args, want := range map[string]string{
		"--cni weave":                       `invalid argument "weave" for "--cni" flag`,
		"--cni none --flavor eks":           "--cni: the flavor eks has the pod network of EKS, the Amazon VPC CNI",
		"--cni none --flavor resource-sets": "--cni: the flavor resource-sets has a pod network of its own",
	} {
		require.Equal(t, env.Wrong, s.run(append([]string{"cluster", "generate", "demo"}, strings.Fields(args)...)...), args)
		assert.Contains(t, s.err.String(), want)
		assert.Empty(t, s.out.String())
	}
}

// TestGenerateFromARegistry generates clusters whose images come from one registry. Their Nodes become ready, and it
// says which images the registry needs.
func TestGenerateFromARegistry(t *testing.T) {
	const registry = "registry.example.com:5000/mirror"
	s := newShell(t)
	for _, flavor := range flavors(t) {
		if strings.HasPrefix(flavor, "eks") {
			require.Equal(t, env.Wrong, s.run("cluster", "generate", "mine", "--flavor", flavor, "--image-registry", registry))
			assert.Contains(t, s.err.String(), "--image-registry: the flavor "+flavor+" has no machines with kubeadm")
			continue
		}
		require.Equal(t, 0, s.run("cluster", "generate", "mine", "--flavor", flavor, "--image-registry", registry), s.err.String())
		assert.Regexp(t, `\n +imageRepository: `+registry+`\n`, s.out.String(), flavor)
		for _, image := range regexp.MustCompile(`(?m)\bimage: (\S+)$`).FindAllStringSubmatch(s.out.String(), -1) {
			assert.True(t, strings.HasPrefix(image[1], registry+"/"), "%s: %s", flavor, image[1])
		}
	}

	s.simulated()
	file := s.generated(t, "--image-registry", registry, "--kubernetes-version", "v1.33.4")
	for _, want := range []string{
		registry + " needs the images of kubeadm:\n  kubeadm config images list --kubernetes-version v1.33.4 --image-repository " + registry + "\n",
		"\n  registry.k8s.io/provider-aws/cloud-controller-manager:v1.33.0 → " + registry + "/provider-aws/cloud-controller-manager:v1.33.0\n",
	} {
		assert.Contains(t, s.err.String(), want)
	}
	require.Equal(t, 0, s.run("cluster", "validate", "--strict", "-f", file), s.err.String())
	require.Equal(t, 0, s.run("cluster", "create", "-f", file, "--yes"), s.err.String())
	assert.Contains(t, s.err.String(), "All Nodes are ready")

	require.Equal(t, 0, s.run("cluster", "generate", "mine", "--cni", "cilium", "--image-registry", registry), s.err.String())
	assert.Contains(t, s.err.String(), "The images of the chart cilium stay: ")
	for _, wrong := range []string{"https://registry.example.com", "registry", "registry.example.com/a b", "registry.example.com/", "registry.example.com:v1"} {
		require.Equal(t, env.Wrong, s.run("cluster", "generate", "mine", "--image-registry", wrong))
		assert.Contains(t, s.err.String(), fmt.Sprintf("--image-registry: %q is not a registry for images, ", wrong))
	}
}
