// Package matchers is empty.
package matchers
