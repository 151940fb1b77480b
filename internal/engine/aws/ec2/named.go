package ec2

// Named is the state of a resource that is identified by its name.
type Named string

// CloudID implements graph.State.
func (n Named) CloudID() string { return string(n) }
