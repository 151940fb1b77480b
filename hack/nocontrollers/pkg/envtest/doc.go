// Package envtest is empty.
package envtest
