// Package gexec is empty.
package gexec
