package diagnose_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// An API server that is not ready has an etcd that does not answer. If that runs on the machines, the
// findings say how many members it needs and where they are; if it is external, they name its endpoints,
// and no machine.
func TestDiagnosisOfEtcd(t *testing.T) {
	for _, external := range []bool{false, true} {
		t.Run(fmt.Sprint("external=", external), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := enginetest.Sized(t, 3, 1)
				a := enginetest.Alive(t, m)
				if external {
					m.ControlPlane.Object.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://etcd.example.com:2379"}
					a.Edit(func(s *awssim.State) { // the pair with which API servers connect to it
						pair := map[string]string{}
						enginetest.EditKeys(s, m.Name, func(keys map[string]string) {
							for _, end := range []string{".crt", ".key"} {
								if part := keys["front-proxy-ca"+end]; part != "" {
									pair["apiserver-etcd-client"+end] = part
								}
							}
						})
						enginetest.EditKeys(s, m.Name, func(keys map[string]string) { maps.Copy(keys, pair) })
					})
				}
				enginetest.Inside(a, func(c *kubesim.Cluster) {
					for _, x := range c.Members[1:] {
						x.Gone = true
					}
				})
				_, err := enginetest.Rolling(m, a.Process()).Apply(t.Context(), cluster.Options{})
				end := new(plan.TimeoutError)
				require.ErrorAs(t, err, &end)
				said := strings.Join(end.Findings, "\n")
				assert.Contains(t, said, "an API server runs, and is not ready (")
				if external {
					assert.Contains(t, said, "its etcd, https://etcd.example.com:2379, which is external")
					assert.NotContains(t, said, "reboot")
					assert.NotContains(t, said, "members")
					return
				}
				assert.Regexp(
					t,
					`etcd needs 2 of its 3 members to answer, and 3 machines are left \(i-\w+, i-\w+, i-\w+\): reboot one that does not respond with 'aws ec2 reboot-instances --instance-ids ID', and do not terminate any: they have the data`,
					said,
				)
			})
		})
	}
}
