// Package embedded is empty.
package embedded
