// Package manager is empty.
package manager
