// Package teardown finds what carries the tags of a cluster and is not in its
// manifest, and deletes it in an order that works.
package teardown
