package manifest

// AutoMode is EKS Auto Mode, as the annotations of an AWSManagedControlPlane set it.
type AutoMode struct {
	Enabled   bool
	NodePools []string // of EKS, sorted; empty: only those that are made in the cluster
	Role      string   // name of the role of nodes; "" without node pools of EKS
}

// DefaultAutoModeRole is the name of the role of nodes for which the console of EKS has a template ("Amazon EKS Auto Mode node IAM
// role", EKS user guide).
const DefaultAutoModeRole = "AmazonEKSAutoNodeRole"

// HasAutoMode reports whether the manifest turns EKS Auto Mode on.
func (e *EKS) HasAutoMode() bool { return e != nil && e.AutoMode != nil && e.AutoMode.Enabled }
