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
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// Sizes of launches. A few machines are launched one by one, with their names
// in the request; more of the same kind share a request with a count, as EC2
// takes only five requests at once and then two a second, and get their names
// afterwards.
const (
	maxSingleLaunches = 5
	maxLaunchCount    = 100
	launchBatch       = "machine group" // key of the batch
)

// launchRequest is one machine of a launch: its own tags.
type launchRequest struct {
	resourceTag string
	tags        cloud.Tags
}

// launchResult is what became of one machine of a launch: some may run where others
// were refused, for want of quota or capacity.
type launchResult struct {
	state *InstanceState
	err   error
}

// launch runs the machine, together with those that differ in nothing but
// their names.
func (i *Instance) launch(ctx context.Context, c *cloud.Clients, data []byte) (*InstanceState, error) {
	in, err := i.request(data)
	if err != nil {
		return nil, err
	}
	like, err := json.Marshal(in) //nolint:gosec // a digest of it is made; it has no token yet
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(like)
	key := launchBatch + hex.EncodeToString(sum[:])
	common := i.commonTags()
	made, err := cloud.Batch(ctx, c, key, launchRequest{i.Tags[cloud.ResourceTag], i.Batch}, func(ctx context.Context, all []launchRequest) ([]launchResult, error) {
		if len(all) > maxSingleLaunches {
			return launchMany(ctx, c, in, common, all), nil
		}
		out := make([]launchResult, len(all))
		var g sync.WaitGroup
		for n, a := range all {
			g.Go(func() { out[n] = launchOne(ctx, c, in, common.With(a.tags)) })
		}
		g.Wait()
		return out, nil
	})
	return made.state, cmp.Or(err, made.err)
}

// commonTags returns the tags without those that are one machine's alone.
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
	in.ClientToken = c.Token("run", tags[cloud.ResourceTag])
	out, err := c.EC2.RunInstances(ctx, &in)
	if err != nil {
		return launchResult{err: err}
	}
	if len(out.Instances) != 1 {
		return launchResult{err: fmt.Errorf("AWS answered with %d instances", len(out.Instances))}
	}
	return launchResult{state: launchedState(out.Instances[0], tags)}
}

// launchMany launches machines by the hundred, and gives each its name. Until
// then they carry the node tag of their group, by which a later run can claim
// them. They go in order of their nodes, so that an attempt that is repeated
// asks for the same ones together, with the same token.
func launchMany(ctx context.Context, c *cloud.Clients, like *ec2.RunInstancesInput, common cloud.Tags, all []launchRequest) []launchResult {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].resourceTag, all[b].resourceTag) })
	out := make([]launchResult, len(all))
	var g sync.WaitGroup
	for places := range slices.Chunk(order, maxLaunchCount) {
		g.Go(func() {
			part, made := make([]launchRequest, len(places)), make([]launchResult, len(places))
			for n, at := range places {
				part[n] = all[at]
			}
			err := launchChunk(ctx, c, like, common, part, made)
			for n, at := range places {
				if out[at] = made[n]; err != nil {
					out[at].err = err
				}
			}
		})
	}
	g.Wait()
	return out
}

func launchChunk(ctx context.Context, c *cloud.Clients, like *ec2.RunInstancesInput, common cloud.Tags, part []launchRequest, out []launchResult) error {
	in, group := *like, common.With(cloud.Tags{cloud.ResourceTag: GroupResourceTag(part[0].resourceTag)})
	in.MinCount, in.MaxCount = aws.Int32(int32(len(part))), aws.Int32(int32(len(part))) //nolint:gosec // at most launchAtOnce
	in.TagSpecifications = launchTagSpecifications(like, group)
	words := []string{"run"}
	for _, a := range part {
		words = append(words, a.resourceTag)
	}
	in.ClientToken = c.Token(words...)
	answer, err := c.EC2.RunInstances(ctx, &in)
	if err != nil {
		return err
	}
	if len(answer.Instances) != len(part) {
		return fmt.Errorf("AWS answered with %d instances where %d were asked for", len(answer.Instances), len(part))
	}
	var g sync.WaitGroup
	for n, x := range answer.Instances {
		g.Go(func() {
			out[n].state = launchedState(x, common.With(part[n].tags))
			if tagWithInterfaces(ctx, c, out[n].state, part[n].tags) != nil { // AWS may not know a machine yet that it has just launched
				out[n].state.Tags = group
			}
		})
	}
	g.Wait()
	return nil
}

// GroupResourceTag returns the node tag that machines of a group carry before each
// has its own: that of "machine/md-0/3" is "machine/md-0".
func GroupResourceTag(node string) string {
	if at := strings.LastIndex(node, "/"); at > 0 {
		return node[:at]
	}
	return node
}

func launchedState(x types.Instance, tags cloud.Tags) *InstanceState {
	s := instanceState(x)
	s.Tags = tags
	return s
}

func launchTagSpecifications(in *ec2.RunInstancesInput, tags cloud.Tags) []types.TagSpecification {
	kinds := []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume}
	if len(in.NetworkInterfaces) > 0 && in.NetworkInterfaces[0].NetworkInterfaceId == nil {
		kinds = append(kinds, types.ResourceTypeNetworkInterface) // those that are brought keep their tags
	}
	return tags.On(kinds...)
}
