// Package gbytes is empty.
package gbytes
