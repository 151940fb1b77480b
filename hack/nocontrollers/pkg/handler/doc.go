// Package handler is empty.
package handler
