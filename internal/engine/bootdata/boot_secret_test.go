package bootdata_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// bootData lists the names of stored boot data, in all backends.
func bootData(a *awssim.AWS) (names []string) {
	a.Edit(func(s *awssim.State) {
		for name, secret := range s.Secrets.Secrets {
			if secret.Asked.IsZero() {
				names = append(names, name)
			}
		}
		for name := range s.SSM.Parameters {
			if !strings.HasPrefix(name, "/clusterawsadm/") && !strings.HasPrefix(name, "/aws/") {
				names = append(names, name)
			}
		}
		for _, b := range s.S3.Buckets {
			names = slices.AppendSeq(names, maps.Keys(b.Objects))
		}
	})
	slices.Sort(names)
	return names
}

// backends are manifests whose machines fetch their boot data from each backend.
func backends(t *testing.T) map[string]*manifest.Cluster {
	t.Helper()
	parameters := enginetest.Load(t, enginetest.ThreeZones, nil)
	parameters.ControlPlane.Template.Spec.Template.Spec.CloudInit.SecureSecretsBackend = "ssm-parameter-store"
	parameters.Deployments[0].Template.Spec.Template.Spec.CloudInit.SecureSecretsBackend = "ssm-parameter-store"
	return map[string]*manifest.Cluster{
		"secrets":    enginetest.Load(t, enginetest.ThreeZones, nil),
		"parameters": parameters,
		"objects":    enginetest.Load(t, "flatcar.yaml", nil),
	}
}

// Boot data is deleted after its machines have joined. It may contain passwords.
func TestBootDataIsDeletedAfterTheJoin(t *testing.T) {
	for name, m := range backends(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Alive(t, m)
				assert.Empty(t, bootData(a))
				enginetest.RequireDone(t, m, a)
				grown := *m.Deployments[0].Object.Spec.Replicas + 1
				m.Deployments[0].Object.Spec.Replicas = &grown
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				assert.Empty(t, bootData(a))
				enginetest.RequireDone(t, m, a)
			})
		})
	}
}

// A run that dies before it deletes the boot data leaves the deletion to the next one,
// whose plan shows it.
func TestDeletionOfBootDataMayDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, enginetest.ThreeZones, nil)
		a := enginetest.Account(m, enginetest.Lag)
		_, err := enginetest.Waiting(m, a.Process(), plan.APIServer).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		enginetest.AddNetwork(a)
		require.Len(t, bootData(a), 1, "this run does not know whether the workers have joined")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := a.Process()
		p.Killed, p.Fault = cancel, func(_ int, _, op string) awssim.Fault {
			if op == "DeleteSecret" {
				return awssim.KillBefore
			}
			return awssim.None
		}
		_, err = enginetest.Rolling(m, p).Apply(ctx, cluster.Options{Observe: enginetest.Tell(t)})
		require.Error(t, err)
		require.Len(t, bootData(a), 1)
		plan, err := enginetest.Rolling(m, a.Process()).Plan(t.Context())
		require.NoError(t, err)
		require.Contains(t, enginetest.Steps(plan), "delete boot-data/three-zones-md-0 []")
		_, err = enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
		require.NoError(t, err)
		assert.Empty(t, bootData(a))
		enginetest.RequireDone(t, m, a)
	})
}

// Auto Scaling may launch a machine of a pool at any time, which needs the boot data.
func TestBootDataOfPoolsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Load(t, "machine-pool.yaml", nil)
		a := enginetest.Alive(t, m)
		assert.Len(t, bootData(a), 1)
		enginetest.RequireDone(t, m, a)
	})
}
