package plan

// Graph lists the resources of a cluster, each after those that it needs.
type Graph []GraphResource

// GraphResource is a resource of a cluster and its dependencies.
type GraphResource struct {
	ID     ID
	Origin string // the part of the manifest it comes from; "" for none
	Needs  []Need
}

// Need says that a resource needs another one.
type Need struct {
	Resource ID
	Existing bool // it is enough that the other one exists: it need not be ready
	Loose    bool // either may be deleted first
	Outlives bool // the resource is deleted after the other one
}
