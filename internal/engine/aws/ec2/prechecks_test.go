package ec2_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Existing resources that are missing are reported before the first write, with the
// position in the manifest.
func TestPlacementGroupHasToExist(t *testing.T) {
	m := enginetest.Load(t, enginetest.ThreeZones, nil)
	spec := func() *infrav1.AWSMachineSpec { return &m.Deployments[0].Template.Spec.Template.Spec }
	spec().PlacementGroupName = "racks"
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		assert.Regexp(
			t,
			`placement-group/racks \(three-zones.yaml:\d+ AWSMachineTemplate/three-zones-md-0 spec.template.spec.*\): placement group "racks" does not exist in us-east-1: create it \(aws ec2 create-placement-group\)`,
			enginetest.Refused(t, m, a),
		)
		a.Edit(func(s *awssim.State) { s.EC2.PlacementGroups["racks"] = "partition" })
		_, err := run.Open(m, cluster.Target{Config: a.Config(), Owner: "test"}).Plan(t.Context())
		require.NoError(t, err)
	})
}

// Without the permission to read placement groups, the error comes from the launch.
func TestPlacementGroupReadDenied(t *testing.T) {
	m := enginetest.Load(t, enginetest.ThreeZones, nil)
	m.Deployments[0].Template.Spec.Template.Spec.PlacementGroupName = "racks"
	synctest.Test(t, func(t *testing.T) {
		p := enginetest.Account(m, enginetest.Lag).Process()
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "DescribePlacementGroups" {
				return awssim.Denied
			}
			return awssim.None
		}
		_, err := run.Open(m, cluster.Target{Config: p.Config(), Owner: "test"}).Plan(t.Context())
		require.NoError(t, err)
	})
}

// An image must have the architecture of the machines, also if the same image is used for
// other machines that it fits.
func TestImageHasToFit(t *testing.T) {
	m := enginetest.Load(t, enginetest.ThreeZones, nil)
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Account(m, enginetest.Lag)
		var id string
		a.Edit(func(s *awssim.State) {
			for x, i := range s.EC2.Images {
				if i.Architecture == "x86_64" && id < x {
					id = x
				}
			}
		})
		control, workers := &m.ControlPlane.Template.Spec.Template.Spec, &m.Deployments[0].Template.Spec.Template.Spec
		control.AMI.ID, workers.AMI.ID = &id, &id
		_, err := run.Open(m, cluster.Target{Config: a.Config(), Owner: "test"}).Plan(t.Context())
		require.NoError(t, err)
		workers.InstanceType = "m6g.large"
		assert.Regexp(
			t,
			`image/`+id+`/arm64 \(three-zones.yaml:\d+ AWSMachineTemplate/three-zones-md-0 spec.template.spec.*\): image `+id+` is for x86_64, and instance type m6g.large is arm64: set an image for arm64, or another instance type`,
			enginetest.Refused(t, m, a),
		)
	})
}

// If the manifest has fewer zones than the machines of the cluster, the error is about the network, and not about the machines.
func TestFewerZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.ThreeZones)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		m = enginetest.LoadQuick(t, enginetest.ThreeZones)
		m.Infra.Spec.NetworkSpec.VPC.AvailabilityZoneUsageLimit = new(2)
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorContains(
			t,
			err,
			"AWSCluster/three-zones spec.network: a machine of three-zones-control-plane is in us-east-1c, and the manifest has no private subnet there any more",
		)
		require.ErrorContains(t, err, "availabilityZoneUsageLimit")
	})
}
