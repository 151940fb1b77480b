// Package reconcile is empty.
package reconcile
