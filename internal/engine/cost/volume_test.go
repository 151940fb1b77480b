package cost_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
)

// A volume costs its size, and the performance that its type does not include.
func TestVolume(t *testing.T) {
	for name, x := range map[string]struct {
		volume cost.Volume
		want   map[string]float64 // quantities by usage type
	}{
		"gp3":                  {cost.Volume{Type: "gp3", Size: 80}, map[string]float64{"EBS:VolumeUsage.gp3": 80}},
		"gp3, what it has":     {cost.Volume{Type: "gp3", Size: 80, IOPS: 3000, Throughput: 125}, map[string]float64{"EBS:VolumeUsage.gp3": 80}},
		"gp3, faster":          {cost.Volume{Type: "gp3", Size: 80, IOPS: 4000, Throughput: 200}, map[string]float64{"EBS:VolumeUsage.gp3": 80, "EBS:VolumeP-IOPS.gp3": 1000, "EBS:VolumeP-Throughput.gp3": 75}},
		"gp2 includes its own": {cost.Volume{Type: "gp2", Size: 100, IOPS: 300}, map[string]float64{"EBS:VolumeUsage.gp2": 100}},
		"io1":                  {cost.Volume{Type: "io1", Size: 10, IOPS: 500}, map[string]float64{"EBS:VolumeUsage.piops": 10, "EBS:VolumeP-IOPS.piops": 500}},
		"io2, three prices": {cost.Volume{Type: "io2", Size: 10, IOPS: 70_000}, map[string]float64{
			"EBS:VolumeUsage.io2": 10, "EBS:VolumeP-IOPS.io2": 32_000, "EBS:VolumeP-IOPS.io2.tier2": 32_000, "EBS:VolumeP-IOPS.io2.tier3": 6_000,
		}},
		"magnetic": {cost.Volume{Type: "standard", Size: 10}, map[string]float64{"EBS:VolumeUsage": 10}},
	} {
		t.Run(name, func(t *testing.T) {
			have := map[string]float64{}
			for _, i := range x.volume.Items() {
				have[i.Product.Usage] = i.Quantity
			}
			require.Equal(t, x.want, have)
		})
	}
}

// A group with both purchase options has a price for each. A dedicated host and a capacity
// block are paid for in another way.
func TestServer(t *testing.T) {
	s := cost.Server{Machine: cost.Machine{Type: "m5.large"}, Volumes: []cost.Volume{{Type: "gp3", Size: 20}}}
	all := s.Items(5, 2)
	require.Len(t, all, 3)
	require.Equal(t, "m5.large", all[0].Group)
	require.InDelta(t, 3*730.0, all[0].Quantity, 0)
	require.Equal(t, "m5.large spot", all[1].Group)
	require.InDelta(t, 2*730.0, all[1].Quantity, 0)
	require.Equal(t, 5, all[2].Pieces)
	require.InDelta(t, 100, all[2].Quantity, 0)
	require.Empty(t, cost.Server{}.Items(0, 0))
	require.True(t, cost.Machine{Type: "m5.large", Tenancy: "host"}.Item().NotCounted)
	require.True(t, cost.Machine{Type: "p5.48xlarge", Block: true}.Item().NotCounted)
}
