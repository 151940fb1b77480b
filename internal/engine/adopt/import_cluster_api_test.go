package adopt_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/adopt"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// noAnswer is a network without a way to the API server.
type noAnswer struct{}

func (noAnswer) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

// A cluster that Cluster API has made is imported from AWS and its keys alone. It is adopted,
// gets another worker, and is deleted: nothing is left. Without its keys, the network of its
// pods is not known, and it is not adopted.
func TestImportOfClusterAPI(t *testing.T) {
	for _, example := range []string{"quickstart", "three-zones", "classic-elb", "bastion"} {
		t.Run(example, func(t *testing.T) {
			m := enginetest.Load(t, ""+example+".yaml", nil)
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region})
				before := a.Detailed()
				enginetest.MustApply(t, m, a)
				time.Sleep(6 * time.Minute) // until the machines have joined, and ListSecrets lists the secrets
				keys := map[string][]byte{}
				a.Edit(func(s *awssim.State) {
					enginetest.EditKeys(s, m.Name, func(stored map[string]string) {
						for file, key := range stored {
							keys[strings.Replace(file, "etcd-ca", "etcd/ca", 1)] = []byte(key)
						}
					})
					enginetest.AsClusterAPI(m, s)
				})
				p := a.Process()
				target := cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p)}

				i, err := adopt.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
				require.NoError(t, err)
				require.Empty(t, i.Differences, "%s", i.Manifest)
				require.NotEmpty(t, i.Unknown)
				_, err = i.Adopt(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))

				fromMachine := cluster.ImportOptions{KeysFromMachine: true}
				i, err = adopt.Import(t.Context(), m.Name, target, fromMachine)
				require.NoError(t, err)
				require.Regexp(t, `the keys of the cluster could not be read on its machines: i-\w+.*: the SSM agent has never reported: `, strings.Join(i.Unknown, "\n"))
				require.Empty(t, i.KeysFrom)
				enginetest.Reachable(a, "control-plane", "nodes")
				manifests := map[string]bool{}
				for _, o := range []cluster.ImportOptions{fromMachine, {Keys: keys}} {
					i, err = adopt.Import(t.Context(), m.Name, target, o)
					require.NoError(t, err)
					require.Equal(t, o.KeysFromMachine, i.KeysFrom != "")
					manifests[string(i.Manifest)] = true
				}
				require.Len(t, manifests, 1)
				enginetest.RequireSealed(t, a)
				deaf := target
				deaf.Transport = func(cluster.Access) http.RoundTripper { return noAnswer{} }
				i, err = adopt.Import(t.Context(), m.Name, deaf, fromMachine)
				require.NoError(t, err, "the keys are those of the cluster, whether its API server answers or not")
				require.NotEmpty(t, i.Unknown)
				_, err = adopt.Import(t.Context(), m.Name, deaf, cluster.ImportOptions{Keys: keys})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				i, err = adopt.Import(t.Context(), m.Name, target, fromMachine)
				require.NoError(t, err)
				require.Empty(t, i.Differences, "%s", i.Manifest)
				require.Empty(t, i.Unknown)
				require.Empty(t, i.Templates, "machines of Cluster API do not say what their template was")
				require.Contains(t, string(i.Manifest), "# Not known: whether the machines have other files, commands, users")
				require.NotContains(t, string(i.Manifest), "PRIVATE KEY")
				machines := strings.Count(strings.Join(a.Inventory(), "\n"), "Instance ")
				_, err = i.Adopt(t.Context(), cluster.Options{})
				require.NoError(t, err)

				written := string(i.Manifest)
				again := func() *run.Cluster {
					m, err := loader.Load([]input.Source{{Name: "imported.yaml", Data: []byte(written)}}, input.LoadOptions{})
					require.NoError(t, err)
					p := a.Process()
					return run.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Wait: plan.APIServer, Drain: true})
				}
				plan, err := again().Plan(t.Context())
				require.NoError(t, err)
				require.True(t, plan.Empty(), "%v", plan.Steps)
				workers := m.Deployments[0].Replicas()
				at := strings.Index(written, "kind: MachineDeployment")
				written = written[:at] + strings.Replace(written[at:], fmt.Sprintf("replicas: %d", workers), fmt.Sprintf("replicas: %d", workers+1), 1)
				_, err = again().Apply(t.Context(), cluster.Options{Observe: enginetest.Tell(t)})
				require.NoError(t, err)
				require.Greater(t, strings.Count(strings.Join(a.Inventory(), "\n"), "Instance "), machines)
				_, err = again().Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				require.Equal(t, before, a.Detailed())
			})
		})
	}
}
