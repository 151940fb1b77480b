package reconcile

import (
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// OpenModel is Open for a test that changes the loaded manifest.
func OpenModel(m *manifest.Cluster, t Target) *Cluster { return Open(&Manifest{cluster: m}, t) }

// EngineGraph is Graph with the types of the engine.
func (c *Cluster) EngineGraph() (*graph.Graph, error) { return c.graph() }
