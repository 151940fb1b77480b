// Package gcustom is empty.
package gcustom
