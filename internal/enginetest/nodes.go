package enginetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Labelled returns the example with labels on its machines, some of which are for Nodes.
func Labelled(t *testing.T, control, workers int32) *manifest.Cluster {
	t.Helper()
	m := Sized(t, control, workers)
	m.ControlPlane.Object.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"node.cluster.x-k8s.io/rack": "7", "team": "a"}
	m.Deployments[0].Object.Spec.Template.Labels = map[string]string{
		"node-role.kubernetes.io/worker": "", "x.node-restriction.kubernetes.io/zone": "safe", "node-restriction.kubernetes.io/tier": "web",
		"sub.node-role.kubernetes.io/x": "y", "team": "a",
	}
	return m
}

// LabelsOf lists the labels of Nodes, without default ones.
func LabelsOf(a *awssim.AWS) (out []string) {
	Inside(a, func(c *kubesim.Cluster) {
		for _, o := range c.All("Node") {
			meta, _ := o["metadata"].(kubesim.Object)
			labels, _ := meta["labels"].(kubesim.Object)
			if labels["kubernetes.io/hostname"] == nil {
				out = append(out, "no hostname")
			}
			has := kubesim.Object{}
			for k, v := range labels {
				domain, _, _ := strings.Cut(k, "/")
				if domain != "kubernetes.io" && domain != "topology.kubernetes.io" && k != "node-role.kubernetes.io/control-plane" {
					has[k] = v
				}
			}
			out = append(out, fmt.Sprint(has))
		}
	})
	return out
}

// OfControl is the label of the Nodes of a control plane.
const OfControl = "map[node.cluster.x-k8s.io/rack:7]"

// Sized returns the example with other numbers of machines.
func Sized(t *testing.T, control, workers int32) *manifest.Cluster {
	t.Helper()
	m := LoadQuick(t, "three-zones.yaml")
	m.ControlPlane.Object.Spec.Replicas, m.Deployments[0].Object.Spec.Replicas = &control, &workers
	return m
}

// Inside edits the only Kubernetes cluster of the account.
func Inside(a *awssim.AWS, edit func(c *kubesim.Cluster)) {
	a.Edit(func(s *awssim.State) {
		for _, c := range s.Kubernetes {
			edit(c)
		}
	})
}

// AddPods adds the pods of a Deployment to the workers.
func AddPods(a *awssim.AWS) {
	Inside(a, func(c *kubesim.Cluster) {
		now := time.Now()
		c.Put(now, kubesim.Object{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": kubesim.Object{"name": "web", "namespace": "default"},
			"spec": kubesim.Object{"replicas": 6.0, "template": kubesim.Object{"metadata": kubesim.Object{"labels": kubesim.Object{"app": "web"}}}},
		})
		for range 4 {
			c.Settle(now)
			now = now.Add(10 * time.Second)
		}
	})
	time.Sleep(time.Minute)
}

// Witness watches a run: etcd must always have a quorum.
type Witness struct {
	T      *testing.T
	A      *awssim.AWS
	Events []string
}

func (w *Witness) Observe(e plan.Event) {
	if tell := Tell(w.T); tell != nil {
		tell(e)
	}
	w.Events = append(w.Events, fmt.Sprintf("%s %s %s", e.What, e.Resource, e.Detail))
	Inside(w.A, func(c *kubesim.Cluster) {
		assert.True(w.T, c.Quorate(), "after %s %s", e.What, e.Resource)
	})
}

// NodeNames lists the Nodes.
func NodeNames(a *awssim.AWS) (names []string) {
	Inside(a, func(c *kubesim.Cluster) {
		for path := range c.Objects {
			if name, ok := strings.CutPrefix(path, "/api/v1/nodes/"); ok {
				names = append(names, name)
			}
		}
	})
	return names
}

// RequireHealthy requires that number of Nodes, exactly the members of the control plane
// in etcd, that all pods run, and that no pod of this program is left.
func RequireHealthy(t *testing.T, a *awssim.AWS, control, workers int) {
	t.Helper()
	require.Len(t, NodeNames(a), control+workers)
	Inside(a, func(c *kubesim.Cluster) {
		require.Len(t, c.Members, control)
		require.True(t, c.Quorate())
		running := 0
		for path, o := range c.Objects {
			require.NotContains(t, path, "pods/clusterawsadm-etcd")
			if strings.HasPrefix(path, "/api/v1/namespaces/default/pods/web") {
				running++
				require.NotNil(t, c.Objects["/api/v1/nodes/"+fmt.Sprint(o["spec"].(kubesim.Object)["nodeName"])])
			}
		}
		require.Equal(t, 6, running)
	})
}
