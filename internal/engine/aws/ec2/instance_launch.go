package ec2

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Limits of launches. Up to maxSingleLaunches machines are launched with one call each,
// which contains their tags. More machines of the same kind share calls, because EC2
// throttles RunInstances (5 calls, then 2 per second); their own tags are set afterwards.
const (
	maxSingleLaunches = 5
	maxLaunchCount    = 100
	launchBatch       = "launch " // prefix of the key for cloud.Batch
)

// launchRequest is a machine to launch, with the tags that only it has.
type launchRequest struct {
	resourceTag string
	tags        cloud.Tags
}

// launchResult is the result for one machine. Some may fail, for lack of quota or
// capacity, while others succeed.
type launchResult struct {
	state *InstanceState
	err   error
}

// launch launches the machine. Machines of the same group that differ only in the tags in
// Batch are launched together.
func (i *Instance) launch(ctx context.Context, c *cloud.Clients, data []byte) (*InstanceState, error) {
	in, err := i.request(data)
	if err != nil {
		return nil, err
	}
	common := i.commonTags()
	like, err := json.Marshal([]any{in, common, GroupResourceTag(i.Tags[cloud.ResourceTag])})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(like)
	key := launchBatch + hex.EncodeToString(sum[:])
	made, err := cloud.Batch(
		ctx,
		c,
		key,
		launchRequest{i.Tags[cloud.ResourceTag], i.Batch},
		func(ctx context.Context, all []launchRequest) ([]launchResult, error) {
			if len(all) > maxSingleLaunches {
				return launchMany(ctx, c, in, common, all), nil
			}
			out := make([]launchResult, len(all))
			var g crash.Group
			for n, a := range all {
				g.Go(func() { out[n] = launchOne(ctx, c, in, common.With(a.tags)) })
			}
			g.Wait()
			return out, nil
		},
	)
	return made.state, cmp.Or(err, made.err)
}

// commonTags returns the tags without those of Batch.
func (i *Instance) commonTags() cloud.Tags {
	tags := maps.Clone(i.Tags)
	for k := range i.Batch {
		delete(tags, k)
	}
	return tags
}

func launchOne(ctx context.Context, c *cloud.Clients, like *ec2.RunInstancesInput, tags cloud.Tags) launchResult {
	in := *like
	in.MinCount, in.MaxCount = aws.Int32(1), aws.Int32(1)
	in.TagSpecifications = launchTagSpecifications(like, tags)
	launched, err := runInstances(ctx, c, &in, "run", tags[cloud.ResourceTag])
	if err != nil {
		return launchResult{err: err}
	}
	return launchResult{state: launchedState(launched[0], tags)}
}

// runInstances launches between one and MaxCount machines. The words become the client
// token; one more is added for each earlier launch whose machines are terminated, or that
// was another one: of a run with another manifest that was killed before this one.
func runInstances(ctx context.Context, c *cloud.Clients, in *ec2.RunInstancesInput, words ...string) ([]types.Instance, error) {
	for most := len(words) + 10; ; {
		in.ClientToken = c.Token(words...)
		out, err := c.EC2.RunInstances(ctx, in)
		switch {
		case cloud.Is(err, "IdempotentInstanceTerminated", "IdempotentParameterMismatch") && len(words) < most:
			words = append(words, "again")
		case err != nil:
			return nil, err
		case len(out.Instances) < 1 || len(out.Instances) > int(*in.MaxCount):
			return nil, fmt.Errorf("RunInstances returned %d instances instead of %d", len(out.Instances), *in.MaxCount)
		default:
			return out.Instances, nil
		}
	}
}

// launchMany launches up to maxLaunchCount machines per call, and then sets the tags of
// each. Until then they have the identity tag of their group, by which a later run can
// claim them. AWS launches as many as the quota and its capacity allow; the others are
// requested again. They are sorted by resource, so that a repeated attempt makes the same
// calls, with the same client tokens.
func launchMany(ctx context.Context, c *cloud.Clients, like *ec2.RunInstancesInput, common cloud.Tags, all []launchRequest) []launchResult {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].resourceTag, all[b].resourceTag) })
	out := make([]launchResult, len(all))
	var launches, tagging crash.Group
	tagging.SetLimit(cloud.DefaultParallel) // a thousand goroutines that wait for a call take memory only
	for places := range slices.Chunk(order, maxLaunchCount) {
		launches.Go(func() {
			part, made := make([]launchRequest, len(places)), make([]*launchResult, len(places))
			for n, at := range places {
				part[n], made[n] = all[at], &out[at]
			}
			if err := launchChunk(ctx, c, like, common, part, made, &tagging); err != nil {
				for _, m := range made {
					m.err = err
				}
			}
		})
	}
	launches.Wait()
	tagging.Wait()
	return out
}

// launchChunk launches machines in one call, and starts to set the tags of each.
func launchChunk(
	ctx context.Context,
	c *cloud.Clients,
	like *ec2.RunInstancesInput,
	common cloud.Tags,
	part []launchRequest,
	out []*launchResult,
	tagging *crash.Group,
) error {
	in, group := *like, common.With(cloud.Tags{cloud.ResourceTag: GroupResourceTag(part[0].resourceTag)})
	in.MinCount, in.MaxCount = aws.Int32(1), aws.Int32(int32(len(part))) //nolint:gosec // at most maxLaunchCount
	in.TagSpecifications = launchTagSpecifications(like, group)
	token := []string{"run"}
	for _, a := range part {
		token = append(token, a.resourceTag)
	}
	launched, err := runInstances(ctx, c, &in, token...)
	if err != nil {
		return err
	}
	for n := len(launched); n < len(part); n++ {
		out[n].err = graph.NotYet(fmt.Errorf("quota or capacity: AWS has launched only %d of %d machines", len(launched), len(part)))
	}
	for n, x := range launched {
		tagging.Go(func() {
			out[n].state = launchedState(x, common.With(part[n].tags))
			if Tag(ctx, c, append(out[n].state.taggedParts(), out[n].state.ID), part[n].tags) != nil { // CreateTags may not know a new instance yet
				out[n].state.Tags = group
			}
		})
	}
	return nil
}

// GroupResourceTag returns the identity tag that machines of a group have before their
// own is set: for "machine/md-0/3" it is "machine/md-0".
func GroupResourceTag(id string) string {
	if at := strings.LastIndex(id, "/"); at > 0 {
		return id[:at]
	}
	return id
}

func launchedState(x types.Instance, tags cloud.Tags) *InstanceState {
	s := instanceState(x)
	s.Tags = tags
	return s
}

func launchTagSpecifications(in *ec2.RunInstancesInput, tags cloud.Tags) []types.TagSpecification {
	kinds := []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume}
	if len(in.NetworkInterfaces) > 0 && in.NetworkInterfaces[0].NetworkInterfaceId == nil {
		kinds = append(kinds, types.ResourceTypeNetworkInterface) // tags of existing interfaces are not changed
	}
	return tags.On(kinds...)
}
