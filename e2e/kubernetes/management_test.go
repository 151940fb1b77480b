package kubernetes

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

const (
	awsClusters          = "awsclusters.infrastructure.cluster.x-k8s.io/v1beta2"
	awsManagedClusters   = "awsmanagedclusters.infrastructure.cluster.x-k8s.io/v1beta2"
	managedControlPlanes = "awsmanagedcontrolplanes.controlplane.cluster.x-k8s.io/v1beta2"
	gcAnnotation         = "aws.cluster.x-k8s.io/external-resource-gc"
	tasksAnnotation      = "aws.cluster.x-k8s.io/external-resource-tasks-gc"
)

// install installs the CustomResourceDefinitions of a management cluster.
func install(t *testing.T, c *controlplane.ControlPlane, editCluster func(crd *unstructured.Unstructured)) {
	t.Helper()
	c.InstallCRDs(t, "sigs.k8s.io/cluster-api", "core/config/crd/bases", editCluster, "cluster.x-k8s.io_clusters.yaml")
	c.InstallCRDs(t, "sigs.k8s.io/cluster-api-provider-aws/v2", "config/crd/bases", nil, "infrastructure.cluster.x-k8s.io_awsclusters.yaml",
		"infrastructure.cluster.x-k8s.io_awsmanagedclusters.yaml", "controlplane.cluster.x-k8s.io_awsmanagedcontrolplanes.yaml")
}

// infrastructure are the infrastructure objects of the clusters.
const infrastructure = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: demo, namespace: default}
spec: {region: us-east-1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSManagedCluster
metadata: {name: managed, namespace: default}
spec: {}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: AWSManagedControlPlane
metadata: {name: managed-control-plane, namespace: default}
spec: {region: us-east-1}
`

func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t)
	install(t, c, nil)
	c.Create(t, infrastructure+`
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: demo}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: managed, namespace: default}
spec:
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: AWSManagedControlPlane, name: managed-control-plane}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSManagedCluster, name: managed}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: dangling, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: nobody}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: elsewhere, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerCluster, name: elsewhere}
`)
	annotation := func(resource, name, key string) string {
		t.Helper()
		return c.Get(t, resource, "default", name).GetAnnotations()[key]
	}
	kubeconfig := c.Kubeconfig(t)
	s := newShell(t, "KUBECONFIG="+kubeconfig)

	s.run(0, "gc", "enable", "--cluster-name", "demo")
	assert.Equal(t, "Enabled garbage collection for cluster default/demo\n", s.out)
	assert.Equal(t, "annotated AWSCluster default/demo\n", s.err)
	assert.Equal(t, "true", annotation(awsClusters, "demo", gcAnnotation))
	managers := map[string]bool{}
	for _, m := range c.Get(t, awsClusters, "default", "demo").GetManagedFields() {
		managers[m.Manager] = true
	}
	assert.Contains(t, managers, "clusterawsadm", "the API server notes who it was")
	s.run(0, "gc", "enable", "--cluster-name", "demo")
	assert.Equal(t, "unchanged: AWSCluster default/demo\n", s.err)
	s.run(0, "gc", "disable", "--cluster-name", "demo", "-n", "default", "--kubeconfig", kubeconfig, "--kubeconfig-context", "test")
	assert.Equal(t, "Disabled garbage collection for cluster default/demo\n", s.out)
	assert.Equal(t, "false", annotation(awsClusters, "demo", gcAnnotation))

	s.run(0, "gc", "configure", "--cluster-name", "demo", "--gc-task", "target-group,load-balancer")
	assert.Equal(t, "Configuring garbage collection for cluster default/demo\n", s.out)
	assert.Equal(t, "target-group,load-balancer", annotation(awsClusters, "demo", tasksAnnotation))
	s.run(0, "gc", "configure", "--cluster-name", "demo")
	assert.NotContains(t, c.Get(t, awsClusters, "default", "demo").GetAnnotations(), tasksAnnotation)
	assert.Equal(t, "false", annotation(awsClusters, "demo", gcAnnotation), "the other annotation stays")

	s.run(0, "gc", "disable", "--cluster-name", "managed")
	assert.Equal(t, "annotated AWSManagedControlPlane default/managed-control-plane\nannotated AWSManagedCluster default/managed\n", s.err)
	assert.Equal(t, "false", annotation(managedControlPlanes, "managed-control-plane", gcAnnotation), "the controller goes by this one")
	assert.Equal(t, "false", annotation(awsManagedClusters, "managed", gcAnnotation))

	t.Run("failures", func(t *testing.T) { garbageFailures(t, c, kubeconfig) })
	t.Logf("proved: gc enable, disable and configure on AWSCluster and AWSManagedControlPlane, at kube-apiserver %s", controlplane.Version)
}

func garbageFailures(t *testing.T, c *controlplane.ControlPlane, kubeconfig string) {
	nobody := c.KubeconfigOf(t, "nobody")
	for _, f := range []struct {
		kubeconfig string
		args       []string
		want       string
	}{
		{kubeconfig, []string{"enable", "--cluster-name", "x"}, "there is no Cluster x in namespace default"},
		{kubeconfig, []string{"enable", "--cluster-name", "x", "-n", "nowhere"}, "no namespace nowhere"},
		{kubeconfig, []string{"enable", "--cluster-name", "dangling"}, "names the AWSCluster nobody, which does not exist"},
		{kubeconfig, []string{"enable", "--cluster-name", "elsewhere"}, "has no kind DockerCluster in the group infrastructure.cluster.x-k8s.io"},
		{kubeconfig, []string{"configure", "--cluster-name", "demo", "--gc-task", "foo"}, "unsupported gc task: foo"},
		{kubeconfig, []string{"enable", "--cluster-name", "demo", "--kubeconfig-context", "nope"}, `context "nope" does not exist; contexts: test`},
		{kubeconfig, []string{"enable", "--cluster-name", "demo", "--kubeconfig", "/nope"}, "there is no file /nope"},
		{kubeconfig, []string{"enable"}, `--cluster-name is missing`},
		{nobody, []string{"enable", "--cluster-name", "demo"}, `clusters.cluster.x-k8s.io "demo" is forbidden: User "nobody" cannot get resource`},
		{"", []string{"enable", "--cluster-name", "demo"}, "no kubeconfig of a management cluster"},
	} {
		s := newShell(t, "KUBECONFIG="+f.kubeconfig)
		s.run(1, append([]string{"gc"}, f.args...)...)
		assert.Contains(t, s.err, f.want)
		assert.Equal(t, 1, strings.Count(s.err, "error: "), "told once: %s", s.err)
		assert.Empty(t, s.out)
	}
}

// TestOldManagementCluster uses the Cluster kind of Cluster API before 1.11.
func TestOldManagementCluster(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t)
	s := newShell(t, "KUBECONFIG="+c.Kubeconfig(t))
	s.run(1, "gc", "enable", "--cluster-name", "demo")
	assert.Contains(t, s.err, "has no kinds of the group cluster.x-k8s.io: is Cluster API installed in it")

	install(t, c, func(crd *unstructured.Unstructured) {
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		require.Equal(t, "v1beta1", versions[0].(map[string]any)["name"])
		versions[0].(map[string]any)["storage"] = true
		require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions[:1], "spec", "versions"))
	})
	c.Create(t, infrastructure+`
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: managed, namespace: default}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: managed-control-plane}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSManagedCluster, name: managed}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: older, namespace: default}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: managed-control-plane}
  infrastructureRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: managed-control-plane}
`)
	s.run(0, "gc", "enable", "--cluster-name", "managed")
	assert.Equal(t, "true", c.Get(t, managedControlPlanes, "default", "managed-control-plane").GetAnnotations()[gcAnnotation])
	assert.Equal(t, "true", c.Get(t, awsManagedClusters, "default", "managed").GetAnnotations()[gcAnnotation])
	s.run(0, "gc", "disable", "--cluster-name", "older")
	assert.Equal(t, "annotated AWSManagedControlPlane default/managed-control-plane\n", s.err, "one object in two roles is annotated once")
	t.Logf("proved: gc where Cluster is served as v1beta1 alone, and where Cluster API is not installed")
}

const provider = `
apiVersion: v1
kind: Namespace
metadata: {name: capa-system}
---
apiVersion: v1
kind: Secret
metadata: {name: capa-manager-bootstrap-credentials, namespace: capa-system}
data: {credentials: W2RlZmF1bHRdCmF3c19hY2Nlc3Nfa2V5X2lkID0gT0xEVVNFUgphd3Nfc2VjcmV0X2FjY2Vzc19rZXkgPSBPTERTRUNSRVQKCg==}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: capa-controller-manager, namespace: capa-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: capa}}
  template:
    metadata: {labels: {app: capa}}
    spec: {containers: [{name: manager, image: capa}]}
`

const (
	oldProfile = "[default]\naws_access_key_id = OLDUSER\naws_secret_access_key = OLDSECRET\n\n"
	newProfile = "[default]\naws_access_key_id = NEWUSER\naws_secret_access_key = NEWSECRET\nregion = us-east-1\n\n"
)

func TestControllerCredentials(t *testing.T) {
	t.Parallel()
	c := controlplane.Start(t)
	kubeconfig := c.Kubeconfig(t)
	encoded := base64.StdEncoding.EncodeToString([]byte(newProfile))
	s := newShell(t, "KUBECONFIG="+kubeconfig, "AWS_B64ENCODED_CREDENTIALS="+encoded)
	for _, command := range []string{"print-credentials", "update-credentials", "zero-credentials", "rollout-controller"} {
		s.run(1, "controller", command)
		assert.Contains(t, s.err, "no namespace capa-system")
		assert.Contains(t, s.err, "is Cluster API Provider AWS installed")
		assert.Equal(t, 1, strings.Count(s.err, "error: "))
	}
	c.Create(t, provider)

	s.run(0, "controller", "print-credentials")
	assert.Equal(t, oldProfile, s.out)
	assert.Empty(t, s.err)

	s.run(0, "controller", "update-credentials", "--kubeconfig-context", "test")
	assert.Empty(t, s.out, "the secret is not told")
	assert.NotContains(t, s.err, "NEW")
	assert.Contains(t, s.err, "clusterawsadm controller rollout-controller --kubeconfig-context test\n")
	s.run(0, "controller", "print-credentials")
	assert.Equal(t, newProfile, s.out)
	s.run(0, "controller", "update-credentials", "--show")
	assert.Equal(t, newProfile, s.out)

	s.run(0, "controller", "zero-credentials")
	assert.Equal(t, "Credentials are zeroed\n", s.out)
	assert.Equal(t, "Cg==", c.Get(t, "secrets/v1", "capa-system", "capa-manager-bootstrap-credentials").Object["data"].(map[string]any)["credentials"])
	s.stdin = encoded + "\n"
	s.run(0, "controller", "update-credentials", "--from-file", "-")
	s.run(0, "controller", "print-credentials")
	assert.Equal(t, newProfile, s.out)

	t.Run("what is refused", func(t *testing.T) { credentialFailures(t, c, kubeconfig) })
	t.Run("rollout", func(t *testing.T) { rollout(t, c, kubeconfig) })
	t.Logf("proved: controller credentials and rollout at kube-apiserver %s; no secret was told unasked", controlplane.Version)
}

func credentialFailures(t *testing.T, c *controlplane.ControlPlane, kubeconfig string) {
	before := c.Get(t, "secrets/v1", "capa-system", "capa-manager-bootstrap-credentials").GetResourceVersion()
	for value, want := range map[string]string{
		"SECRET!!":       "AWS_B64ENCODED_CREDENTIALS: the value is not base64",
		newProfile:       "AWS_B64ENCODED_CREDENTIALS: the profile is plain text",
		"U0VDUkVU":       "has no [profile]",
		"W2RlZmF1bHRdCg": "the value is not base64",
	} {
		s := newShell(t, "KUBECONFIG="+kubeconfig, "AWS_B64ENCODED_CREDENTIALS="+value)
		s.run(1, "controller", "update-credentials")
		assert.Contains(t, s.err, want)
		assert.NotContains(t, s.err, "SECRET")
		assert.Empty(t, s.out)
	}
	s := newShell(t, "KUBECONFIG="+kubeconfig)
	s.run(1, "controller", "update-credentials")
	assert.Contains(t, s.err, `environment variable "AWS_B64ENCODED_CREDENTIALS" not found`)
	assert.Equal(t, before, c.Get(t, "secrets/v1", "capa-system", "capa-manager-bootstrap-credentials").GetResourceVersion(), "nothing was sent")

	s = newShell(t, "KUBECONFIG="+c.KubeconfigOf(t, "nobody"))
	s.run(1, "controller", "print-credentials")
	assert.Contains(t, s.err, `the user of the kubeconfig lacks a permission`)
	assert.Contains(t, s.err, `secrets "capa-manager-bootstrap-credentials" is forbidden: User "nobody" cannot get resource`)
	s.run(1, "controller", "zero-credentials", "--namespace", "default", "--kubeconfig", kubeconfig)
	assert.Contains(t, s.err, "there is no secret capa-manager-bootstrap-credentials in namespace default")
	s.run(1, "controller", "print-credentials", "--kubeconfig-context", "nope")
	assert.Contains(t, s.err, `context "nope" does not exist`)

	dead := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dead, []byte(strings.ReplaceAll(string(text), c.URL, "https://127.0.0.1:1")), 0o600))
	s.run(1, "controller", "print-credentials", "--kubeconfig", dead)
	assert.Contains(t, s.err, "the management cluster at https://127.0.0.1:1 (context test) cannot be reached")
}

// rollout simulates the rollout of a Deployment, because there is no controller for
// Deployments here. Pods have no annotations.
func rollout(t *testing.T, c *controlplane.ControlPlane, kubeconfig string) {
	const deployments, restarted = "deployments.apps/v1", "kubectl.kubernetes.io/restartedAt"
	s := newShell(t, "KUBECONFIG="+kubeconfig)
	s.run(0, "controller", "rollout-controller")
	assert.Empty(t, s.out)
	d := c.Get(t, deployments, "capa-system", "capa-controller-manager")
	at, _, err := unstructured.NestedString(d.Object, "spec", "template", "metadata", "annotations", restarted)
	require.NoError(t, err)
	when, err := time.Parse(time.RFC3339, at)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), when, time.Minute)
	assert.EqualValues(t, 2, d.GetGeneration(), "the deployment is to be rolled out")

	go func() {
		for t.Context().Err() == nil { // the next generation is complete immediately
			status := []byte(`{"status":{"observedGeneration":9,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1}}`)
			_, _ = c.Objects.Resource(controlplane.Resource(deployments)).Namespace("capa-system").
				Patch(t.Context(), "capa-controller-manager", types.MergePatchType, status, metav1.PatchOptions{}, "status") // cancelled at the end of the test
			time.Sleep(200 * time.Millisecond)
		}
	}()
	s.run(0, "controller", "rollout-controller", "--wait")
	assert.Contains(t, s.err, "all pods are updated and available\n")
}
