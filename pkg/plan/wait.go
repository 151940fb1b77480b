package plan

// Wait is the state of a cluster that Apply waits for. The conditions of package cluster have the same words.
type Wait string

// The values of Wait. "" is Infrastructure.
const (
	Infrastructure Wait = "infrastructure" // AWS runs the machines
	APIServer      Wait = "api"            // the API server answers, and all machines of the control plane have joined
	NodesJoined    Wait = "joined"         // all machines are Nodes, ready or not
	NodesReady     Wait = "ready"          // all machines are Nodes, and ready, and the pods of kubeadm and of add-ons run
)
