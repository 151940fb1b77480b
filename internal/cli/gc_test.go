package cli

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/golden"
)

const (
	capiGroup, infraGroup, eksGroup = "/apis/cluster.x-k8s.io", "/apis/infrastructure.cluster.x-k8s.io", "/apis/controlplane.cluster.x-k8s.io"
	awsClusterPath                  = infraGroup + "/v1beta2/namespaces/default/awsclusters/demo"
	managedClusterPath              = infraGroup + "/v1beta2/namespaces/default/awsmanagedclusters/managed"
	managedControlPlanePath         = eksGroup + "/v1beta2/namespaces/default/awsmanagedcontrolplanes/managed-cp"
)

// clusters are the clusters of a management cluster: one on EC2, one on EKS.
func clusters() map[string]string {
	return map[string]string{
		"/api/v1/namespaces/default": `{"apiVersion": "v1", "kind": "Namespace"}`,
		capiGroup:                    `{"kind": "APIGroup", "preferredVersion": {"version": "v1beta2"}, "versions": [{"version": "v1beta2"}, {"version": "v1beta1"}]}`,
		capiGroup + "/v1beta2":       `{"kind": "APIResourceList", "resources": [{"name": "clusters", "kind": "Cluster"}, {"name": "clusters/status", "kind": "Cluster"}]}`,
		infraGroup:                   `{"kind": "APIGroup", "preferredVersion": {"version": "v1beta3"}, "versions": [{"version": "v1beta3"}, {"version": "v1beta2"}]}`,
		infraGroup + "/v1beta3":      `{"kind": "APIResourceList", "resources": []}`,
		infraGroup + "/v1beta2":      `{"kind": "APIResourceList", "resources": [{"name": "awsclusters", "kind": "AWSCluster"}, {"name": "awsmanagedclusters", "kind": "AWSManagedCluster"}]}`,
		eksGroup:                     `{"kind": "APIGroup", "preferredVersion": {"version": "v1beta2"}, "versions": [{"version": "v1beta2"}]}`,
		eksGroup + "/v1beta2":        `{"kind": "APIResourceList", "resources": [{"name": "awsmanagedcontrolplanes", "kind": "AWSManagedControlPlane"}]}`,

		capiGroup + "/v1beta2/namespaces/default/clusters/demo": `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"},
			"spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "demo"}}}`,
		capiGroup + "/v1beta2/namespaces/default/clusters/managed": `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "managed"},
			"spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSManagedCluster", "name": "managed"},
			         "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "AWSManagedControlPlane", "name": "managed-cp"}}}`,
		capiGroup + "/v1beta2/namespaces/default/clusters/new": `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "new"}, "spec": {"topology": {}}}`,
		awsClusterPath:          `{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster", "metadata": {"name": "demo", "namespace": "default"}}`,
		managedClusterPath:      `{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSManagedCluster", "metadata": {"name": "managed", "namespace": "default"}}`,
		managedControlPlanePath: `{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "AWSManagedControlPlane", "metadata": {"name": "managed-cp", "namespace": "default"}}`,
	}
}

func TestGC(t *testing.T) {
	server := newAPIServer(t, clusters())
	s := newSession(t)
	server.kubeconfig(t, filepath.Join(s.HomeDir, ".kube", "config"))
	const gc, tasks = "aws.cluster.x-k8s.io/external-resource-gc", "aws.cluster.x-k8s.io/external-resource-tasks-gc"

	s.types(0, "gc", "enable", "--cluster-name", "demo")
	assert.Equal(t, "true", server.at(awsClusterPath, "metadata", "annotations", gc))
	s.types(0, "gc", "enable", "--cluster-name", "demo")
	s.types(0, "gc", "disable", "--cluster-name", "managed", "-n", "default")
	assert.Equal(t, "false", server.at(managedClusterPath, "metadata", "annotations", gc))
	assert.Equal(t, "false", server.at(managedControlPlanePath, "metadata", "annotations", gc), "its controller goes by this one")
	s.types(0, "gc", "configure", "--cluster-name", "managed", "--gc-task", "security-group", "--gc-task", "load-balancer,load-balancer")
	assert.Equal(t, "security-group,load-balancer,load-balancer", server.at(managedControlPlanePath, "metadata", "annotations", tasks))
	s.types(0, "gc", "configure", "--cluster-name", "managed")
	assert.Nil(t, server.at(managedControlPlanePath, "metadata", "annotations", tasks))
	assert.Equal(t, []string{
		awsClusterPath, managedControlPlanePath, managedClusterPath, managedControlPlanePath, managedClusterPath, managedControlPlanePath, managedClusterPath,
	}, server.patched, "what is as wanted is left alone")

	s.types(1, "gc", "configure", "--cluster-name", "demo", "--gc-task", "everything")
	s.types(1, "gc", "enable", "--cluster-name", "nope")
	s.types(1, "gc", "enable", "--cluster-name", "demo", "-n", "nowhere")
	s.types(1, "gc", "enable", "--cluster-name", "new")
	s.types(1, "gc", "enable", "--cluster-name", "demo", "--kubeconfig-context", "nope")
	s.types(1, "gc", "enable", "--cluster-name", "demo", "--kubeconfig", "/nope/config")
	s.types(1, "gc", "enable")
	s.types(1, "gc", "enabel", "--cluster-name", "demo")
	server.denied = infraGroup + "/v1beta2/namespaces"
	s.types(1, "gc", "enable", "--cluster-name", "managed")
	assert.Equal(t, "false", server.at(managedControlPlanePath, "metadata", "annotations", gc), "nothing is half done")
	server.denied = capiGroup
	s.types(1, "gc", "enable", "--cluster-name", "demo")
	server.denied = ""
	s.terminal("")
	s.types(0, "gc", "disable", "--cluster-name", "demo")
	s.types(1, "gc", "disable", "--cluster-name", "nope")
	golden.Assert(t, "gc.txt", s.transcript(server.URL, "http://SERVER"))
}

func TestGCFindsTheManagementCluster(t *testing.T) {
	server, other := newAPIServer(t, clusters()), newAPIServer(t, map[string]string{})
	s := newSession(t)
	s.types(1, "gc", "enable", "--cluster-name", "demo")
	assert.Contains(
		t,
		s.err.String(),
		"error: no kubeconfig of a management cluster (searched: "+filepath.Join(s.HomeDir, ".kube", "config")+"): use --kubeconfig FILE, or set KUBECONFIG",
	)

	other.kubeconfig(t, filepath.Join(s.HomeDir, ".kube", "config"))
	s.types(1, "gc", "enable", "--cluster-name", "demo")
	assert.Contains(t, s.err.String(), "has no kinds of the group cluster.x-k8s.io: is Cluster API installed in it")

	file := filepath.Join(t.TempDir(), "config")
	server.kubeconfig(t, file)
	s.variables["KUBECONFIG"] = "/nope" + string(filepath.ListSeparator) + file
	s.types(0, "gc", "enable", "--cluster-name", "demo")
	s.types(1, "gc", "enable", "--cluster-name", "demo", "--kubeconfig", filepath.Join(s.HomeDir, ".kube", "config"))
	assert.Contains(t, s.err.String(), "has no kinds", "the flag goes before the variable, also when it names the default")
	delete(s.variables, "KUBECONFIG")
	s.types(0, "gc", "enable", "--cluster-name", "demo", "--kubeconfig", file)
	s.variables["CLUSTERAWSADM_KUBECONFIG"] = file
	s.types(0, "gc", "enable", "--cluster-name", "demo")
	delete(s.variables, "CLUSTERAWSADM_KUBECONFIG")
	s.types(1, "gc", "enable", "--cluster-name", "demo", "--kubeconfig", file, "--kubeconfig-context", "other")
	assert.Contains(t, s.err.String(), "the management cluster at http://127.0.0.1:1 (context other) cannot be reached")
	assert.NotContains(t, s.err.String(), "secret-token")
}
