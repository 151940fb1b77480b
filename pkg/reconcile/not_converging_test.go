package reconcile_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// isWrite reports whether a call may be the update of a resource.
func isWrite(service, op string) bool {
	for _, prefix := range []string{"Describe", "Get", "List", "Head", "Simulate", "Lookup"} {
		if strings.HasPrefix(op, prefix) {
			return false
		}
	}
	return service != "SSM" && service != "Kubernetes"
}

// AWS accepts each update of a field, and the field has its other value again right after it: the run
// stops after a few rounds, with the states that it has seen. Each field of each kind is tried once, except
// for those of EKS, which changes them after its answer.
func TestUpdatesThatDoNotConverge(t *testing.T) {
	table := tampers()
	for _, file := range sample([]string{"../../configs/quickstart.yaml", machinePool, "../../configs/three-zones.yaml"}) {
		t.Run(name(file), func(t *testing.T) {
			t.Parallel()
			tried := map[string]bool{}
			for more := true; more; {
				synctest.Test(t, func(t *testing.T) {
					m := loadQuick(t, file)
					a := prepared(t, file, m)
					mustApply(t, m, a)
					time.Sleep(booting)
					more = false
					for _, v := range tamperingOf(t, m, a).victims {
						for _, field := range v.fields {
							k := key(v.node, field)
							if tried[k] || table[k] == nil || more || strings.HasPrefix(k, "launch-template ") { // the Auto Scaling group fails first
								continue
							}
							tried[k], more = true, true
							requireStops(t, a, k, func() error {
								p, written := a.Process(), false
								again := func() { a.Edit(func(s *awssim.State) { table[k](s, v.id, field) }) }
								again()
								p.Fault = func(_ int, service, op string) awssim.Fault {
									if written {
										again()
									}
									written = isWrite(service, op)
									return awssim.None
								}
								_, err := open(m, p).Apply(t.Context(), reconcile.Options{Observe: tell(t)})
								return err
							})
						}
					}
				})
			}
		})
	}
}

// requireStops requires that a run ends because an update does not converge, after a few of them.
func requireStops(t *testing.T, a *awssim.AWS, what string, run func() error) {
	t.Helper()
	before := len(a.Calls())
	err := run()
	n := 0
	for _, c := range since(a, before) {
		if isWrite(c.Service, c.Operation) {
			n++
		}
	}
	if assert.Error(t, err, what) {
		assert.Contains(t, err.Error(), "does not converge: AWS accepted", what)
		assert.Contains(t, err.Error(), "instead of", what)
	}
	assert.LessOrEqual(t, n, 30, what)
}
