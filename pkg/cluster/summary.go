package cluster

import "time"

// Summary is one cluster of an account, found by its tags.
type Summary struct {
	Name   string         `json:"name"`
	Region string         `json:"region"`
	Kinds  map[string]int `json:"resources"` // number of resources of each kind

	EKS          bool       `json:"eks"`                  // EKS runs the control plane
	Version      string     `json:"kubernetes,omitempty"` // of Kubernetes; "" if it is not known
	ControlPlane Machines   `json:"controlPlane"`         // none in EKS
	Workers      Machines   `json:"workers"`
	Status       string     `json:"status"`          // "running", "pending", "stopped", "no control plane"; of EKS: "active", "creating"…
	Since        *time.Time `json:"since,omitempty"` // creation of the EKS cluster, or of the oldest machine of the control plane

	LastRun *LastRun `json:"lastRun,omitempty"` // as in Status
}

// Machines are numbers of machines. For a managed node group of EKS, All is the number of nodes that
// it wants.
type Machines struct {
	Running int `json:"running"`
	All     int `json:"all"`
}
