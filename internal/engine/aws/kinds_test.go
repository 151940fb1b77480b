package aws_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
)

// The name of a kind is the first word of the IDs of its resources, by which a plan, a policy and
// a deletion find the declaration.
func TestNamesOfKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range aws.Kinds() {
		assert.NotEmpty(t, k.Name)
		assert.False(t, seen[k.Name], "two kinds have the name %s", k.Name)
		seen[k.Name] = true
	}
}
