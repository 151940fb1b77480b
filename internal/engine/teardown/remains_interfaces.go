package teardown

import (
	"context"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// sweepInterfaces stands for the network interfaces that hang around. There
// may be none: it is there for those that turn up.
func sweepInterfaces(id string, rank int, again graph.Lookup[ec2.NetworkInterfacesState]) Remain {
	return Remain{Kind: KindInterfaces, ID: id, Rank: rank, Retire: func(g *graph.Graph, id graph.ID, hangs []graph.Edge) graph.Resource {
		return graph.Sweep(g, id, found(again, (&ec2.NetworkInterfaces{}).Delete, ec2.InterfacesGo, hangs))
	}}
}

// remainingInterfaces stands for those that the network of pods has made: a
// machine that goes leaves the ones behind that it was just getting. AWS takes
// 200 values for a filter.
func (s *signs) remainingInterfaces(context.Context, *cloud.Clients) (out Remains, err error) {
	for ids := range slices.Chunk(s.interfaces, 200) {
		out = append(out, sweepInterfaces("of-pods-"+ids[0], RankServedInterfaces, func(ctx context.Context, c *cloud.Clients) (*ec2.NetworkInterfacesState, error) {
			return ec2.Lingering(ctx, c, cloud.Filter("network-interface-id", ids...))
		}))
	}
	return out, nil
}

// KindInterfaces is the kind of what stands for network interfaces.
const KindInterfaces = "network-interfaces"

// remainingSubnetTags lists the tags on subnets that are somebody else's.
func remainingSubnetTags(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := ec2.TaggedSubnets(ctx, c)
	for _, s := range all {
		out = append(out, remain("subnet-tags", RankOnTop, s, identity.Object{}, 0, listed(s.ID, ec2.TaggedSubnets), (&ec2.SubnetTags{}).Delete))
	}
	return out, err
}

// remainingBucket finds the bucket, or what a run that died has left of it, by
// the name that is kept in the account.
func remainingBucket(ctx context.Context, c *cloud.Clients) (Remains, error) {
	name, err := s3.KeptBucket(ctx, c)
	if err != nil || name == "" {
		return nil, err
	}
	again := func(ctx context.Context, c *cloud.Clients) (*s3.BucketState, error) {
		name, err := s3.KeptBucket(ctx, c)
		if err != nil || name == "" {
			return nil, err
		}
		return &s3.BucketState{Name: name}, nil
	}
	return Remains{remain("bucket", RankSecret, s3.BucketState{Name: name}, identity.Object{}, 0, again, (&s3.Bucket{Name: name}).Delete)}, nil
}
