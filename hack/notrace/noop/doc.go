// Package noop is empty.
package noop
