package eks

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Versions of an add-on are the newest first, also of builds with two digits.
func TestVersionsOfAddonsAreTheNewestFirst(t *testing.T) {
	names := func(versions ...string) (all []AddonVersion) {
		for _, v := range versions {
			all = append(all, AddonVersion{Name: v})
		}
		return all
	}
	mixed := names("v1.9.3-eksbuild.2", "v1.11.4-eksbuild.2", "v1.11.4-eksbuild.24", "v1.12.3-eksbuild.1")
	newestFirst(mixed)
	assert.Equal(t, names("v1.12.3-eksbuild.1", "v1.11.4-eksbuild.24", "v1.11.4-eksbuild.2", "v1.9.3-eksbuild.2"), mixed)
	other := names("one", "v1.2.3")
	newestFirst(other)
	assert.Equal(t, names("one", "v1.2.3"), other)
}
