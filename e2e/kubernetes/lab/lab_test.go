package lab

import (
	"testing"
	"time"
)

func TestOneControlPlane(t *testing.T) {
	l := Start(t)
	u := l.NewLaptop(t, "quickstart", Example(t, "quickstart"))
	u.Bootstrap(t)
	began := time.Now()
	u.Create(t)
	t.Logf("infrastructure: %s", time.Since(began).Round(time.Second))
	u.Until(t, "two nodes", 5*time.Minute, func() bool { return len(u.Objects(t.Context(), "nodes")) == 2 })
	t.Logf("two nodes after %s\n%s", time.Since(began).Round(time.Second), u.Kubectl(t, "get", "nodes", "-o", "wide"))
	t.Log(u.Kubectl(t, "get", "pods", "-A", "-o", "wide"))
}
