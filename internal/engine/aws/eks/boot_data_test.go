package eks_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	eksbootstrapv1 "sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// The boot data of nodes is rendered in the plan: what does not fit into user data is refused before the
// first write, for machines, for an Auto Scaling group and for the launch template of a node group.
func TestBootDataIsPlanned(t *testing.T) {
	large := ""
	for sum := sha256.Sum256(nil); len(large) < 40<<10; sum = sha256.Sum256(sum[:]) {
		large += hex.EncodeToString(sum[:]) // which does not become much shorter when it is compressed
	}
	file := eksbootstrapv1.File{Path: "/etc/large", Content: large}
	for name, resource := range map[string]string{"machines": "machine/eks-machines-md-0/0", "pool": "launch-template/"} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.Load(t, "eks-machines.yaml", nil)
			if name == "machines" {
				spec := &m.Deployments[0].NodeadmBootstrap.Spec.Template.Spec
				spec.Files = append(spec.Files, file)
			} else {
				spec := &m.Pools[0].Bootstrap.Nodeadm.Spec
				spec.Files = append(spec.Files, file)
			}
			synctest.Test(t, func(t *testing.T) {
				a := enginetest.Account(m, enginetest.Lag)
				enginetest.Prepare(t, a, m)
				refusal := enginetest.Refused(t, m, a)
				assert.Contains(t, refusal, resource)
				assert.Contains(t, refusal, "bootstrap data: user data is ")
			})
		})
	}
}
