// Package types is empty.
package types
