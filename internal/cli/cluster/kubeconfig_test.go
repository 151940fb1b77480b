package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/tools/clientcmd/api"
)

// The context of a real cluster becomes the current one; that of a simulated cluster does not.
func TestMergedContext(t *testing.T) {
	added := api.NewConfig()
	added.CurrentContext = "new"
	for used, want := range map[bool]string{true: "new", false: "old"} {
		old := api.NewConfig()
		old.CurrentContext = "old"
		assert.Equal(t, want, merged(old, added, used).CurrentContext)
	}
}
