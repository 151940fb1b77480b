// Package teardown finds resources with the tags of a cluster that are not in its
// manifest, and deletes them in the right order.
package teardown
