// Package gleak is empty.
package gleak
