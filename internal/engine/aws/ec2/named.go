package ec2

// Named is the state of a resource that is identified by its name.
type Named struct {
	Name string
	Lost string // why no machine starts with it; "" if one does
}

// CloudID implements graph.State.
func (n Named) CloudID() string { return n.Name }

// Absent implements Absentee.
func (n Named) Absent() string { return n.Lost }
