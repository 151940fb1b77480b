package enginetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Rolling returns the cluster for a new process that waits for Nodes and drains them.
func Rolling(m *manifest.Cluster, p *awssim.Process) *run.Cluster {
	return run.Open(m, RollingTarget(p))
}

// RollingTarget is the target of a run that drains Nodes and waits for the API server.
func RollingTarget(p *awssim.Process) cluster.Target {
	return cluster.Target{Config: p.Config(), Owner: "test", Transport: Transport(p), Wait: plan.NodesReady, Drain: true}
}

// RequireDone requires that another run has no changes.
func RequireDone(t *testing.T, m *manifest.Cluster, a *awssim.AWS) {
	t.Helper()
	p, err := Rolling(m, a.Process()).Plan(t.Context())
	require.NoError(t, err)
	require.True(t, p.Empty(), "%v", Steps(p))
}

// Alive creates the cluster of a manifest with a pod network.
func Alive(t *testing.T, m *manifest.Cluster) *awssim.AWS {
	t.Helper()
	a := Account(m, Lag)
	_, err := Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: Tell(t)})
	require.NoError(t, err)
	AddNetwork(a)
	_, err = Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: Tell(t)})
	require.NoError(t, err)
	AddPods(a)
	return a
}

// RequireVersion requires that everything has this version.
func RequireVersion(t *testing.T, a *awssim.AWS, version string) {
	t.Helper()
	Inside(a, func(c *kubesim.Cluster) {
		for path, o := range c.Objects {
			if strings.HasPrefix(path, "/api/v1/nodes/") {
				info, _ := o["status"].(kubesim.Object)["nodeInfo"].(kubesim.Object)
				require.Equal(t, version, info["kubeletVersion"], path)
			}
		}
		require.Contains(t, fmt.Sprint(c.Get("/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy")), "kube-proxy:"+version)
		require.Contains(t, fmt.Sprint(c.Get("/api/v1/namespaces/kube-system/configmaps/kubeadm-config")), "kubernetesVersion: "+version)
	})
}

// Lose terminates a machine outside of a run, a minute ago.
func Lose(a *awssim.AWS, node string) {
	a.Edit(func(s *awssim.State) {
		for _, i := range s.EC2.Instances {
			if i.Tags["clusterawsadm/resource"] == node {
				i.Terminating, i.Terminated = time.Now(), time.Now()
			}
		}
	})
	time.Sleep(time.Minute)
}

// Version changes the version of all machines of a manifest.
func Version(m *manifest.Cluster, v string) *manifest.Cluster {
	m.Version, m.ControlPlane.Object.Spec.Version = v, v
	for _, d := range m.Deployments {
		d.Object.Spec.Template.Spec.Version = v
	}
	return m
}

// Steps prints the steps of a plan.
func Steps(p plan.Plan) (out []string) {
	for _, s := range p.Steps {
		if s.Does() {
			out = append(out, fmt.Sprintf("%s %s %v", s.Action, s.Resource, s.Diff))
		}
	}
	return out
}
