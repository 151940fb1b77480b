package lab

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// controlPlanes are the instances that are to be control planes.
func (u *Laptop) controlPlanes(t *testing.T) (all []*Machine) {
	t.Helper()
	for _, m := range u.Machines(t) {
		if strings.Contains(m.Tag, "-control-plane-") {
			all = append(all, m)
		}
	}
	return all
}

func (u *Laptop) workers(t *testing.T) (all []*Machine) {
	t.Helper()
	for _, m := range u.Machines(t) {
		if !strings.Contains(m.Tag, "-control-plane-") {
			all = append(all, m)
		}
	}
	return all
}

func (u *Laptop) console(t *testing.T, m *Machine) string {
	t.Helper()
	text, err := os.ReadFile(m.Console())
	require.NoError(t, err)
	return string(text)
}
