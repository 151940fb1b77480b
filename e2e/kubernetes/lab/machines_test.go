package lab

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// controlPlanes returns the instances of the control plane.
func (u *Laptop) controlPlanes(t *testing.T) (all []*Machine) {
	t.Helper()
	for _, m := range u.Machines(t) {
		if m.isControlPlane() {
			all = append(all, m)
		}
	}
	return all
}

func (m *Machine) isControlPlane() bool { return strings.Contains(m.Tag, "-control-plane-") }

// isControlPlane reports whether a Node is on a control plane.
func (l *Lab) isControlPlane(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.machines {
		if m.Name == name {
			return m.isControlPlane()
		}
	}
	return false
}

func (u *Laptop) workers(t *testing.T) (all []*Machine) {
	t.Helper()
	for _, m := range u.Machines(t) {
		if !m.isControlPlane() {
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
