// Package format is empty.
package format
