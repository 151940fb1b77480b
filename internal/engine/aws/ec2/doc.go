// Package ec2 contains the kinds of Amazon EC2 resources, one file for each kind: the
// desired resource, and how it is found, created, updated and deleted. A kind does not
// depend on other parts of the cluster, and its methods do not wait or retry: the
// executor of package graph does.
//
// All files have the same order: the desired resource, its state, Needs, Find, Diff,
// Create, Update, Delete, the list of all resources of the kind, and lookups of existing
// resources.
package ec2
