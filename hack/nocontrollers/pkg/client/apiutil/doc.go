// Package apiutil is empty.
package apiutil
