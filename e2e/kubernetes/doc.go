// Package kubernetes runs the built binary against a real management cluster.
package kubernetes
