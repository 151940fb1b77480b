package plan

import "fmt"

// Manager is a management cluster.
type Manager struct {
	ID   string `json:"id"`   // the UID of its namespace kube-system
	Name string `json:"name"` // "https://10.0.0.1:6443 (context prod)"
}

// ManagedError says that a management cluster manages the cluster. It is the reason of a
// RefusedError.
type ManagedError struct {
	Cluster string
	Manager Manager
}

func (e *ManagedError) Error() string {
	return fmt.Sprintf(
		"%s manages cluster %s: change it there, or take it back with 'clusterawsadm cluster takeback %[2]s --from KUBECONFIG'; if that management cluster does not exist any more, with --lost instead of --from",
		e.Manager.Name,
		e.Cluster,
	)
}
