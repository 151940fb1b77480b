package reconcile_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// noAnswer is a network without a way to the API server.
type noAnswer struct{}

func (noAnswer) RoundTrip(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

// requireSealed requires that what AWS stores of commands is encrypted.
func requireSealed(t *testing.T, a *awssim.AWS) {
	t.Helper()
	a.Edit(func(s *awssim.State) {
		require.NotEmpty(t, s.SSM.Commands)
		for _, c := range s.SSM.Commands {
			require.NotContains(t, c.Script, "PRIVATE")
			for _, r := range c.Results {
				lines := strings.Split(r.Out, "\n")
				require.Len(t, lines, 4)
				password, err := base64.StdEncoding.DecodeString(lines[0])
				require.NoError(t, err)
				require.Len(t, password, 3072/8)
				data, err := base64.StdEncoding.DecodeString(lines[1])
				require.NoError(t, err)
				require.Equal(t, "Salted__", string(data[:8]))
				require.Equal(t, "end of output", lines[2])
			}
		}
	})
}

// A cluster that Cluster API has made is imported from AWS and its keys alone. It is adopted,
// gets another worker, and is deleted: nothing is left. Without its keys, the network of its
// pods is not known, and it is not adopted.
func TestImportOfClusterAPI(t *testing.T) {
	for _, example := range []string{"quickstart", "three-zones", "classic-elb", "bastion"} {
		t.Run(example, func(t *testing.T) {
			m := load(t, "../../configs/"+example+".yaml", nil)
			synctest.Test(t, func(t *testing.T) {
				a := awssim.New(awssim.Options{Region: m.Region})
				before := a.Detailed()
				mustApply(t, m, a)
				time.Sleep(6 * time.Minute) // until the machines have joined, and ListSecrets lists the secrets
				keys := map[string][]byte{}
				a.Edit(func(s *awssim.State) {
					for name, p := range s.SSM.Parameters {
						if file := path.Base(name); strings.Contains(name, "/pki/") && file != "token" {
							keys[strings.Replace(file, "etcd-ca", "etcd/ca", 1)] = []byte(p.Value)
						}
					}
					asClusterAPI(m, s)
				})
				p := a.Process()
				target := cluster.Target{Config: p.Config(), Owner: "test", Transport: transport(p)}

				i, err := reconcile.Import(t.Context(), m.Name, target, cluster.ImportOptions{})
				require.NoError(t, err)
				require.Empty(t, i.Differences, "%s", i.Manifest)
				require.NotEmpty(t, i.Unknown)
				_, err = i.Adopt(t.Context(), cluster.Options{})
				require.ErrorAs(t, err, new(*plan.RefusedError))

				fromMachine := cluster.ImportOptions{KeysFromMachine: true}
				i, err = reconcile.Import(t.Context(), m.Name, target, fromMachine)
				require.NoError(t, err)
				require.Regexp(t, `the keys of the cluster could not be read on its machines: i-\w+.*: the SSM agent has never reported: `, strings.Join(i.Unknown, "\n"))
				require.Empty(t, i.KeysFrom)
				reachable(a, "control-plane", "nodes")
				manifests := map[string]bool{}
				for _, o := range []cluster.ImportOptions{fromMachine, {Keys: keys}} {
					i, err = reconcile.Import(t.Context(), m.Name, target, o)
					require.NoError(t, err)
					require.Equal(t, o.KeysFromMachine, i.KeysFrom != "")
					manifests[string(i.Manifest)] = true
				}
				require.Len(t, manifests, 1)
				requireSealed(t, a)
				deaf := target
				deaf.Transport = func(cluster.Access) http.RoundTripper { return noAnswer{} }
				i, err = reconcile.Import(t.Context(), m.Name, deaf, fromMachine)
				require.NoError(t, err, "the keys are those of the cluster, whether its API server answers or not")
				require.NotEmpty(t, i.Unknown)
				_, err = reconcile.Import(t.Context(), m.Name, deaf, cluster.ImportOptions{Keys: keys})
				require.ErrorAs(t, err, new(*plan.RefusedError))
				i, err = reconcile.Import(t.Context(), m.Name, target, fromMachine)
				require.NoError(t, err)
				require.Empty(t, i.Differences, "%s", i.Manifest)
				require.Empty(t, i.Unknown)
				require.Empty(t, i.Templates, "machines of Cluster API do not say what their template was")
				require.Contains(t, string(i.Manifest), "# Not known: whether the machines have other files, commands, users")
				require.NotContains(t, string(i.Manifest), "PRIVATE KEY")
				machines := strings.Count(strings.Join(a.Inventory(), "\n"), "Instance ")
				_, err = i.Adopt(t.Context(), cluster.Options{})
				require.NoError(t, err)

				manifest := string(i.Manifest)
				again := func() *reconcile.Cluster {
					m, err := reconcile.Load([]input.Source{{Name: "imported.yaml", Data: []byte(manifest)}}, input.LoadOptions{})
					require.NoError(t, err)
					p := a.Process()
					return reconcile.Open(m, cluster.Target{Config: p.Config(), Owner: "test", Transport: transport(p), Wait: plan.APIServer, Drain: true})
				}
				plan, err := again().Plan(t.Context())
				require.NoError(t, err)
				require.True(t, plan.Empty(), "%v", plan.Steps)
				workers := m.Deployments[0].Replicas()
				at := strings.Index(manifest, "kind: MachineDeployment")
				manifest = manifest[:at] + strings.Replace(manifest[at:], fmt.Sprintf("replicas: %d", workers), fmt.Sprintf("replicas: %d", workers+1), 1)
				_, err = again().Apply(t.Context(), cluster.Options{Observe: tell(t)})
				require.NoError(t, err)
				require.Greater(t, strings.Count(strings.Join(a.Inventory(), "\n"), "Instance "), machines)
				_, err = again().Delete(t.Context(), cluster.Options{})
				require.NoError(t, err)
				require.Equal(t, before, a.Detailed())
			})
		})
	}
}
