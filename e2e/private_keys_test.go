//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoPrivateKeys checks that nobody has committed a private key: only tests and their data have some, which are used nowhere else.
func TestNoPrivateKeys(t *testing.T) {
	key := regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b`)
	for _, name := range treeFiles(t) {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		assert.Empty(t, key.FindAll(data, -1), name)
	}
}
