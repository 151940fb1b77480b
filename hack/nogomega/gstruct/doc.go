// Package gstruct is empty.
package gstruct
