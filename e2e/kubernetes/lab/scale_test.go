package lab

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scaledDown removes two of three control planes from the manifest.
func scaledDown(t *testing.T, u *Laptop) {
	text, err := os.ReadFile(u.manifest)
	require.NoError(t, err)
	require.Contains(t, string(text), "  replicas: 3\n  version")
	require.NoError(t, os.WriteFile(u.manifest, []byte(strings.Replace(string(text), "  replicas: 3\n  version", "  replicas: 1\n  version", 1)), 0o600))
	u.speed = lifelike
	defer func() { u.speed = speed }()
	began := time.Now()
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "ready")
	took := time.Since(began)
	u.Until(t, "two instances", patience, func() bool { return len(u.Machines(t)) == 2 })
	left := u.controlPlanes(t)
	require.Len(t, left, 1)
	members, err := u.Members(t.Context(), left[0])
	require.NoError(t, err)
	assert.Len(t, members, 1, "%+v", members)
	assert.Len(t, u.Objects(t.Context(), "nodes"), 2)
	u.write(t, "one control plane is left")
	t.Logf("proved: three control planes become one by the manifest: drained, out of etcd, terminated, their nodes deleted, in %s", took.Round(time.Second))
}
