package ec2

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/cost"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

var (
	_ cost.Desired  = (*Instance)(nil)
	_ cost.Existing = InstanceState{}
)

// Costs implements cost.Desired. What a machine that exists costs does not change until it
// is replaced.
func (i *Instance) Costs(ctx context.Context, c *cloud.Clients, have graph.State) (now, then []cost.Item, err error) {
	if s, ok := have.(*InstanceState); ok && s != nil {
		now, err = s.Costs(ctx, c)
		return now, now, err
	}
	image, _ := i.Image.Found()
	then = i.server(image).All(1)
	if i.public() {
		then = append(then, cost.PublicAddresses(1))
	}
	return nil, then, nil
}

// server returns what determines the price of the machine and its volumes.
func (i *Instance) server(image ImageState) cost.Server {
	s := i.Spec
	m := cost.Machine{
		Type: s.InstanceType, Tenancy: s.Tenancy, Block: s.MarketType == infrav1.MarketTypeCapacityBlock,
		Spot: s.SpotMarketOptions != nil || s.MarketType == infrav1.MarketTypeSpot,
	}
	if aws.ToString(s.HostID) != "" {
		m.Tenancy = "host"
	}
	root := cost.Volume{Type: cmp.Or(image.RootType, defaultRootType), Size: int64(cmp.Or(image.RootSize, defaultRootSize))}
	if r := s.RootVolume; r != nil {
		set := volumeCost(*r)
		root.IOPS, root.Throughput = set.IOPS, set.Throughput
		root.Type, root.Size = cmp.Or(string(r.Type), root.Type), cmp.Or(r.Size, root.Size)
	}
	root.Assumed = image.RootType == "" && (s.RootVolume == nil || s.RootVolume.Type == "")
	volumes := []cost.Volume{root}
	for _, v := range s.NonRootVolumes {
		volumes = append(volumes, volumeCost(v))
	}
	return cost.Server{Machine: m, Volumes: volumes}
}

// The root volume of an image that has not been looked up.
const (
	defaultRootType = "gp3"
	defaultRootSize = 8
)

// volumeCost returns a volume. EC2 makes gp2 volumes unless the type is set
// (EbsBlockDevice in the EC2 API Reference).
func volumeCost(v infrav1.Volume) cost.Volume {
	return cost.Volume{Type: cmp.Or(string(v.Type), string(types.VolumeTypeGp2)), Size: v.Size, IOPS: v.IOPS, Throughput: aws.ToInt64(v.Throughput)}
}

// public reports whether a new machine gets a public IPv4 address.
func (i *Instance) public() bool {
	if i.Spec.PublicIP != nil {
		return *i.Spec.PublicIP
	}
	if s, ok := i.Subnet.Found(); ok {
		return s.MapPublicIP
	}
	s, ok := i.Subnet.Desired().(*Subnet)
	return ok && s.Public
}

// Costs implements cost.Existing. A stopped machine costs what its volumes cost.
func (s InstanceState) Costs(ctx context.Context, c *cloud.Clients) (all []cost.Item, err error) {
	if s.IsTerminating() {
		return nil, nil // not billed from shutting-down on: "Amazon EC2 instance state changes", EC2 user guide
	}
	if !s.Stopped {
		all = append(all, cost.Machine{Type: s.Type, Spot: s.Spot, Tenancy: s.Tenancy}.Item())
	}
	if s.PublicIP != "" {
		all = append(all, cost.PublicAddresses(1))
	}
	volumes, err := VolumesOfMachines(ctx, c)
	for _, v := range volumes[s.ID] {
		all = append(all, v.Items()...)
	}
	return all, err
}

// volumesOfMachines is an answer of EC2. An error is a part of it, so that EC2 is asked once.
type volumesOfMachines struct {
	of  map[string][]cost.Volume // by the ID of the machine
	err error
}

// VolumesOfMachines returns the volumes of the cluster's machines that AWS deletes with them,
// by the ID of the machine.
func VolumesOfMachines(ctx context.Context, c *cloud.Clients) (map[string][]cost.Volume, error) {
	all, err := cloud.Remember(ctx, c, "volumes of machines", func(ctx context.Context) (found volumesOfMachines, _ error) {
		volumes, err := describeVolumes(ctx, c, c.OwnedFilters()...)
		if err != nil {
			found.err = &cost.MissingError{What: "the volumes of the machines are not known", Action: "ec2:DescribeVolumes", Err: err}
		}
		found.of = map[string][]cost.Volume{}
		for _, v := range volumes {
			for _, a := range v.Attachments {
				if id := aws.ToString(a.InstanceId); deletedWithMachine(a) {
					found.of[id] = append(found.of[id], volumeCostOf(v))
				}
			}
		}
		return found, nil
	})
	if err != nil {
		return nil, err
	}
	return all.of, all.err
}

func volumeCostOf(v types.Volume) cost.Volume {
	return cost.Volume{
		Type:       string(v.VolumeType),
		Size:       int64(aws.ToInt32(v.Size)),
		IOPS:       int64(aws.ToInt32(v.Iops)),
		Throughput: int64(aws.ToInt32(v.Throughput)),
	}
}

// Server returns what determines the price of a machine that the template launches. With a
// state, it is that of the latest version.
func (t *LaunchTemplate) Server(have *graph.Ref[LaunchTemplateState]) cost.Server {
	image, _ := t.image()
	wanted := t.machine().server(image)
	s, ok := have.Found()
	if !ok || !t.needsNewVersion(&s) {
		return wanted
	}
	if len(s.Server.Volumes) == 0 { // it is a volume of the image
		s.Server.Volumes = wanted.Volumes[:1]
	}
	return s.Server
}

// templateServer returns what determines the price of a machine of a version of a launch
// template. Volumes that only the image has are not in it.
func templateServer(t types.ResponseLaunchTemplateData) cost.Server {
	s := cost.Server{Machine: cost.Machine{Type: string(t.InstanceType)}}
	if o := t.InstanceMarketOptions; o != nil {
		s.Spot, s.Block = o.MarketType == types.MarketTypeSpot, o.MarketType == types.MarketTypeCapacityBlock
	}
	for _, b := range t.BlockDeviceMappings {
		if v := b.Ebs; v != nil {
			s.Volumes = append(s.Volumes, cost.Volume{
				Type: cmp.Or(string(v.VolumeType), string(types.VolumeTypeGp2)), Size: int64(aws.ToInt32(v.VolumeSize)),
				IOPS: int64(aws.ToInt32(v.Iops)), Throughput: int64(aws.ToInt32(v.Throughput)),
			})
		}
	}
	return s
}
