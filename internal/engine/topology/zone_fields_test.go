package topology_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
)

// A zone in which the cluster has no subnet is refused at the field that names it. A region is told as such.
func TestZonesWithoutSubnets(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		edit []string
		want string
	}{
		"of a MachineDeployment": {
			enginetest.Quickstart,
			[]string{"      bootstrap:\n", "      failureDomain: us-east-1\n      bootstrap:\n"},
			`MachineDeployment/quickstart-md-0 spec.template.spec.failureDomain: the cluster has no private subnet in us-east-1: us-east-1 is a region, and its zones are us-east-1a`,
		},
		"of a node group": {
			"eks-templates.yaml",
			[]string{"  amiType: CUSTOM\n", "  amiType: CUSTOM\n  availabilityZones: [us-east-1]\n"},
			`AWSManagedMachinePool/eks-templates-batch spec.availabilityZones: there is no private subnet in us-east-1: us-east-1 is a region`,
		},
		"subnet of a node group": {
			"eks-templates.yaml",
			[]string{"  amiType: CUSTOM\n", "  amiType: CUSTOM\n  subnetIDs: [subnet-0123456789abcdef0]\n"},
			`AWSManagedMachinePool/eks-templates-batch spec.subnetIDs: subnet subnet-0123456789abcdef0 is not one of the cluster's`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.Rewritten(t, c.file, c.edit...)
			synctest.Test(t, func(t *testing.T) {
				_, err := enginetest.Open(m, enginetest.Prepared(t, m).Process()).Plan(t.Context())
				require.Error(t, err)
				assert.Regexp(t, c.want, err.Error())
			})
		})
	}
}
