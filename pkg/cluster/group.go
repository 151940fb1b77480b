package cluster

// Group is a control plane, a MachineDeployment or a MachinePool: machines whose number is a field of the manifest.
type Group struct {
	// Name is the name of its object, or in a topology the name there: "demo-md-0", "md-0".
	Name    string
	Aliases []string // other names, such as the one without the name of the cluster
	Title   string   // "control plane", "MachineDeployment", "MachinePool"
	// Object and Path are the field with the number: "MachineDeployment/demo-md-0", "spec.replicas".
	Object, Path string
	Machines     int
	// Limits are the fields with the smallest and largest size of a pool; nil if it has none.
	Limits *GroupLimits
	// Refused says why the number is not set in the manifest; "" if it is.
	Refused string
}

// GroupLimits are the fields with the sizes that an autoscaler may choose between.
type GroupLimits struct {
	Object           string
	MinPath, MaxPath string
	Min, Max         *int32 // nil: not set
}
