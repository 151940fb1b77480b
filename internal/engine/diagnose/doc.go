// Package diagnose finds out why a machine has not become a Node, or why the API
// server does not answer. It only reads.
package diagnose
