package ec2

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Volume is an EBS volume that the EBS CSI driver created for a PersistentVolumeClaim, or one of a machine that AWS does not delete with the machine:
// its DeleteOnTermination is off, or somebody has restored it from a backup with its tags.
type Volume struct{}

// VolumeState is an EBS volume, as AWS describes it.
type VolumeState struct {
	identity.Object
	Instances []string // IDs of the instances that it is attached to
}

var _ graph.Deleter[VolumeState] = (*Volume)(nil)

// Delete implements graph.Deleter.
func (v *Volume) Delete(ctx context.Context, c *cloud.Clients, have *VolumeState) error {
	_, err := c.EC2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &have.ID})
	switch {
	case cloud.Is(err, "IncorrectState"):
		return graph.NotYet(fmt.Errorf("the volume to be created: %w", err))
	case cloud.Is(err, "VolumeInUse"):
		return graph.NotYet(fmt.Errorf("the volume to be detached: %w", err))
	}
	return err
}

// VolumeKind is the name of the kind of volumes.
const VolumeKind = "volume"

// volumeKind declares volumes.
func volumeKind() *kind.Kind {
	return kind.Of(kind.Kind{
		Name: VolumeKind, Area: plan.AreaKubernetes, Type: types.ResourceTypeVolume, InCluster: true,
		ReadActions: []string{"ec2:DescribeVolumes"}, Statement: kind.Machines, Actions: []string{"ec2:DeleteVolume"},
	}, kind.Functions[VolumeState]{
		List: volumes, Delete: &Volume{},
		Outlives: func(s VolumeState) []string { return s.Instances },
	})
}

// volumes lists the volumes that controllers in a cluster created, and those of its machines that AWS does not delete with them ("Preserve data when
// an instance is terminated", EC2 user guide).
func volumes(ctx context.Context, c *cloud.Clients, of kind.Owner) ([]VolumeState, error) {
	return cloud.Remember(ctx, c, "volumes", func(ctx context.Context) (out []VolumeState, err error) {
		found, err := describeVolumes(ctx, c, cloud.Filter("tag-key", c.OwnerTag(), of.Tag()))
		for _, v := range found {
			s := VolumeState{Object: identity.Object{ID: aws.ToString(v.VolumeId), Tags: cloud.FromEC2(v.Tags)}}
			for _, a := range v.Attachments {
				s.Instances = append(s.Instances, aws.ToString(a.InstanceId))
			}
			gone := v.State == types.VolumeStateDeleting || v.State == types.VolumeStateDeleted
			if of.Has(s.Tags) && !gone && !slices.ContainsFunc(v.Attachments, deletedWithMachine) {
				out = append(out, s)
			}
		}
		return out, err
	})
}

// describeVolumes lists the volumes that match filters.
func describeVolumes(ctx context.Context, c *cloud.Clients, filters ...types.Filter) ([]types.Volume, error) {
	p := ec2.NewDescribeVolumesPaginator(c.EC2, &ec2.DescribeVolumesInput{Filters: filters})
	return cloud.Pages(ctx, p, func(o *ec2.DescribeVolumesOutput) []types.Volume { return o.Volumes })
}

func deletedWithMachine(a types.VolumeAttachment) bool { return aws.ToBool(a.DeleteOnTermination) }
