package lives_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
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
// stops after a few rounds, with the states that it has seen. Each field of each kind is tried once;
// those of EKS, which changes them after its answer, in TestEKSUpdatesThatDoNotConverge.
func TestUpdatesThatDoNotConverge(t *testing.T) {
	table := enginetest.Tampers()
	for _, file := range enginetest.Sample([]string{"quickstart.yaml", enginetest.MachinePool, "three-zones.yaml"}) {
		t.Run(enginetest.Name(file), func(t *testing.T) {
			t.Parallel()
			tried := map[string]bool{}
			for more := true; more; {
				synctest.Test(t, func(t *testing.T) {
					m := enginetest.LoadQuick(t, file)
					a := enginetest.Prepared(t, m)
					enginetest.MustApply(t, m, a)
					time.Sleep(enginetest.Booting)
					more = false
					for _, v := range enginetest.TamperingOf(t, m, a).Victims {
						for _, field := range v.Fields {
							k := enginetest.KeyOf(v.Resource, field)
							if tried[k] || table[k] == nil || more {
								continue
							}
							tried[k], more = true, true
							requireStops(t, a, k, func() error {
								p, written := a.Process(), false
								again := func() {
									a.Edit(func(s *awssim.State) {
										addVersion(s, v, field)
										table[k](s, v.ID, field)
									})
								}
								again()
								p.Fault = func(_ int, service, op string) awssim.Fault {
									if written {
										again()
									}
									written = isWrite(service, op) && (v.Resource.Kind() != "launch-template" || strings.HasPrefix(field, "tag ") || op == "CreateLaunchTemplateVersion")
									return awssim.None
								}
								_, err := enginetest.Open(m, p).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
								return err
							})
						}
					}
				})
			}
		})
	}
}

// addVersion adds a version to a launch template, in which a field is changed then: versions that exist do
// not change. It has the content of the latest one.
func addVersion(s *awssim.State, v enginetest.Victim, field string) {
	if v.Resource.Kind() != "launch-template" || strings.HasPrefix(field, "tag ") {
		return
	}
	t := s.EC2.LaunchTemplates[v.ID]
	raw, err := json.Marshal(t.Versions[fmt.Sprint(t.Last)])
	if err != nil {
		panic(err)
	}
	next := *t.Versions[fmt.Sprint(t.Last)]
	next.Data = types.RequestLaunchTemplateData{}
	if err := json.Unmarshal(raw, &next); err != nil {
		panic(err)
	}
	t.Last++
	next.Number = t.Last
	t.Versions[fmt.Sprint(t.Last)] = &next
}

// requireStops requires that a run ends because an update does not converge, after a few of them.
func requireStops(t *testing.T, a *awssim.AWS, what string, run func() error) {
	t.Helper()
	before := len(a.Calls())
	err := run()
	n := 0
	for _, c := range enginetest.Since(a, before) {
		if isWrite(c.Service, c.Operation) {
			n++
		}
	}
	assert.LessOrEqual(t, n, 30, what)
	require.Error(t, err, what)
	switch {
	case (what == "launch-template imageId" || what == "launch-template iamInstanceProfile") && strings.Contains(err.Error(), "AWS reports Failed: "):
		assert.Regexp(t, "-tampered|ami-00000000000000000", err.Error(), what) // the group launches no machine with the other version
	default:
		assert.Contains(t, err.Error(), "does not converge: AWS accepted", what)
		assert.Contains(t, err.Error(), "instead of", what)
	}
}
