// Package server is empty.
package server
