// Package ec2 holds the kinds of resources of Amazon EC2 that a cluster consists
// of, one file a kind: what a resource should be, and how it is found, created,
// updated and deleted. A kind does not know which cluster it is in, and no method
// waits or retries: the executor of package graph does.
//
// Every file has the same order: the desired resource, its state, Needs, Find,
// Diff, Create, Update, Delete, the listing that all resources of the kind share,
// and lookups of existing resources.
package ec2
