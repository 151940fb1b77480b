package reconcile_test

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

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
				target := reconcile.Target{Config: p.Config(), Owner: "test", Transport: transport(p)}

				i, err := reconcile.Import(t.Context(), m.Name, target, reconcile.ImportOptions{})
				require.NoError(t, err)
				require.Empty(t, i.Differences, "%s", i.Manifest)
				require.NotEmpty(t, i.Unknown)
				_, err = i.Adopt(t.Context(), reconcile.Options{})
				require.ErrorAs(t, err, new(*reconcile.RefusedError))

				i, err = reconcile.Import(t.Context(), m.Name, target, reconcile.ImportOptions{Keys: keys})
				require.NoError(t, err)
				require.Empty(t, i.Differences, "%s", i.Manifest)
				require.Empty(t, i.Unknown)
				require.Empty(t, i.Templates, "machines of Cluster API do not say what their template was")
				require.Contains(t, string(i.Manifest), "# Not known: whether the machines have other files, commands, users")
				require.NotContains(t, string(i.Manifest), "PRIVATE KEY")
				machines := strings.Count(strings.Join(a.Inventory(), "\n"), "Instance ")
				_, err = i.Adopt(t.Context(), reconcile.Options{})
				require.NoError(t, err)

				manifest := string(i.Manifest)
				again := func() *reconcile.Cluster {
					m, err := reconcile.Load([]reconcile.Source{{Name: "imported.yaml", Data: []byte(manifest)}}, reconcile.LoadOptions{})
					require.NoError(t, err)
					p := a.Process()
					return reconcile.Open(m, reconcile.Target{Config: p.Config(), Owner: "test", Transport: transport(p), Wait: reconcile.APIServer, Drain: true})
				}
				plan, err := again().Plan(t.Context())
				require.NoError(t, err)
				require.True(t, plan.Empty(), "%v", plan.Steps)
				workers := m.Deployments[0].Replicas()
				at := strings.Index(manifest, "kind: MachineDeployment")
				manifest = manifest[:at] + strings.Replace(manifest[at:], fmt.Sprintf("replicas: %d", workers), fmt.Sprintf("replicas: %d", workers+1), 1)
				_, err = again().Apply(t.Context(), reconcile.Options{Observe: tell(t)})
				require.NoError(t, err)
				require.Greater(t, strings.Count(strings.Join(a.Inventory(), "\n"), "Instance "), machines)
				_, err = again().Delete(t.Context(), reconcile.Options{})
				require.NoError(t, err)
				require.Equal(t, before, a.Detailed())
			})
		})
	}
}
