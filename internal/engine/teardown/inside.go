package teardown

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Tags of what the controllers in a cluster make in AWS, beside
// kubernetes.io/cluster/NAME=owned of the cloud controller manager and of the
// EBS CSI driver (facts F.4, F.6).
const (
	balancerControllerTag = "elbv2.k8s.aws/cluster"          // AWS Load Balancer Controller; the value is the cluster's name
	cniTag                = "cluster.k8s.amazonaws.com/name" // VPC CNI; so is this one's
	serviceTag            = "kubernetes.io/service-name"     // "namespace/name"
	claimTag              = "kubernetes.io/created-for/pvc/" // "namespace", "name"
)

// goes reports whether tags are of something that goes with the cluster: it
// was made for it, or by a controller in it.
func goes(c *cloud.Clients, tags cloud.Tags) bool {
	return identity.Owned(c, tags) || madeInside(c, tags)
}

// madeInside reports whether tags are of something that a controller in the
// cluster made. What carries the tag of Cluster API, was made for that cluster.
func madeInside(c *cloud.Clients, tags cloud.Tags) bool {
	for k := range tags {
		if k == ec2.EKSClusterTag || strings.HasPrefix(k, cloud.ClusterTagPrefix) {
			return false
		}
	}
	return c.Inside != "" && (tags[c.InsideTag()] == cloud.Owned || tags[balancerControllerTag] == c.Inside)
}

// madeFor says what something in the cluster was made for, as far as its tags
// tell: "default/web".
func madeFor(tags cloud.Tags) string {
	name := tags[claimTag+"name"]
	if name != "" {
		name = tags[claimTag+"namespace"] + "/" + name
	}
	return cmp.Or(tags[serviceTag], tags["service.k8s.aws/stack"], tags["ingress.k8s.aws/stack"], name)
}

// inside says of something that was made in the cluster what for, and that it
// goes after the machines, for what is in them might make it anew, and before
// all else: what it is known by must not go first.
func (r Remain) inside(c *cloud.Clients, tags cloud.Tags) Remain {
	if !madeInside(c, tags) {
		return r
	}
	what := madeFor(tags)
	r.Name, r.found.Origin = cmp.Or(what, r.Name), "made in the cluster"
	if what != "" {
		r.found.Origin += " for " + what
	}
	if r.Rank = RankServed; r.Kind == "security-group" || r.Kind == "target-group" {
		r.Rank = RankBeneathServed
	}
	return r
}

// signs are what the tags of EC2's things tell.
type signs struct {
	kinds      map[types.ResourceType]bool // of which there is something that is not claimed
	interfaces []string                    // IDs of those that the network of pods has made
}

// lookForSigns asks what carries the tags of the cluster, and of what runs in
// it, and is not claimed. It may be gone: AWS keeps tags for an hour.
func lookForSigns(ctx context.Context, c *cloud.Clients, claimed map[string]bool) (*signs, error) {
	tags, err := insideTags(ctx, c)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, t := range tags {
		own[aws.ToString(t.ResourceId)] = own[aws.ToString(t.ResourceId)] || aws.ToString(t.Key) == c.OwnerTag() && aws.ToString(t.Value) == cloud.Owned
	}
	if err := nameInside(ctx, c, tags, own); err != nil {
		return nil, err
	}
	if len(claimed) == 0 && !c.Managed {
		names, err := eksClusterNames(ctx, c) // known by now
		if err == nil && slices.Contains(names, c.Inside) {
			c.Inside = ec2.Nobody
		}
	}
	out := &signs{kinds: map[types.ResourceType]bool{}}
	for _, t := range tags {
		if !claimed[aws.ToString(t.ResourceId)] {
			out.note(c, t, own[aws.ToString(t.ResourceId)])
		}
	}
	return out, nil
}

// note takes in one tag of a thing that is not claimed.
func (s *signs) note(c *cloud.Clients, t types.TagDescription, own bool) {
	key, kind := aws.ToString(t.Key), t.ResourceType
	switch {
	case key == ec2.AddedTagPrefix+c.Cluster, key == c.OwnerTag() && own:
		if kind != types.ResourceTypeVolume { // those of machines go with them
			s.kinds[kind] = true
		}
	case own || !madeInside(c, cloud.Tags{key: aws.ToString(t.Value)}) && (key != cniTag || aws.ToString(t.Value) != c.Inside):
	case kind == types.ResourceTypeVolume || kind == types.ResourceTypeSecurityGroup:
		s.kinds[kind] = true
	case kind == types.ResourceTypeNetworkInterface:
		s.interfaces = append(s.interfaces, aws.ToString(t.ResourceId))
	}
}

// insideTags lists the tags of EC2's things that tell of the cluster.
func insideTags(ctx context.Context, c *cloud.Clients) ([]types.TagDescription, error) {
	keys := []string{c.OwnerTag(), ec2.AddedTagPrefix + c.Cluster, balancerControllerTag, c.InsideTag()}
	if c.Inside == "" {
		keys[len(keys)-1] += "*"
	}
	if c.Managed || c.Inside == "" { // elsewhere interfaces of pods are in the groups of machines, and found in them
		keys = append(keys, cniTag)
	}
	p := awsec2.NewDescribeTagsPaginator(c.EC2, &awsec2.DescribeTagsInput{Filters: []types.Filter{cloud.Filter("key", keys...)}})
	return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*awsec2.DescribeTagsOutput, error) { return p.NextPage(ctx) },
		func(o *awsec2.DescribeTagsOutput) []types.TagDescription { return typed(o.Tags) })
}

// nameInside finds out what the cluster is called by what runs in it, where
// only its own name is known: what was made for it may carry both. Where there
// is nothing of the cluster, but machines of another one that goes by that
// name in its tags, what is there is theirs.
func nameInside(ctx context.Context, c *cloud.Clients, tags []types.TagDescription, own map[string]bool) error {
	names, others := namesInside(c, tags, own)
	switch {
	case c.Inside != "":
	case len(names) == 0 || names[c.Cluster]:
		c.Inside = c.Cluster
	case len(names) == 1:
		c.Inside = slices.Collect(maps.Keys(names))[0]
	default:
		c.Inside = ec2.Nobody
	}
	if !others || slices.Contains(slices.Collect(maps.Values(own)), true) {
		return nil
	}
	live, err := ec2Live(ctx, c)
	if live {
		c.Inside = ec2.Nobody
	}
	return err
}

// namesInside lists the names in the tags of what is the cluster's own, and
// reports whether something that machines are or live in has that name.
func namesInside(c *cloud.Clients, tags []types.TagDescription, own map[string]bool) (names map[string]bool, others bool) {
	names = map[string]bool{}
	for _, t := range tags {
		name, is := strings.CutPrefix(aws.ToString(t.Key), cloud.CloudProviderTagPrefix)
		if is = is && aws.ToString(t.Value) == cloud.Owned; is && own[aws.ToString(t.ResourceId)] {
			names[name] = true
		}
		others = others || is && name == cmp.Or(c.Inside, c.Cluster) && slices.Contains([]types.ResourceType{
			types.ResourceTypeVpc, types.ResourceTypeSubnet, types.ResourceTypeInstance,
		}, t.ResourceType)
	}
	return names, others
}

// ec2Live reports whether there are machines, subnets or VPCs that go by the
// name in their tags. Machines keep their tags for an hour.
func ec2Live(ctx context.Context, c *cloud.Clients) (bool, error) {
	tagged := cloud.Filter("tag:"+c.InsideTag(), cloud.Owned)
	subnets, err := ec2.DescribeSubnets(ctx, c, "subnets of "+c.Inside, []types.Filter{tagged})
	if err != nil || len(subnets) > 0 {
		return true, err
	}
	out, err := c.EC2.DescribeInstances(ctx, &awsec2.DescribeInstancesInput{Filters: []types.Filter{
		tagged, cloud.Filter("instance-state-name", "pending", "running", "stopping", "stopped"),
	}})
	return err == nil && len(out.Reservations) > 0, err
}

// rulesNaming lists the rules of other groups that let groups in, by the group
// that has them.
func rulesNaming(ctx context.Context, c *cloud.Clients, groups []string) (map[string][]string, error) {
	p := awsec2.NewDescribeSecurityGroupsPaginator(c.EC2, &awsec2.DescribeSecurityGroupsInput{Filters: []types.Filter{cloud.Filter("ip-permission.group-id", groups...)}})
	all, err := cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*awsec2.DescribeSecurityGroupsOutput, error) { return p.NextPage(ctx) }, ec2.SecurityGroupsSeen)
	rules := map[string][]string{}
	for _, g := range all {
		if !slices.Contains(groups, g.ID) {
			rules[g.ID] = ec2.PermissionLines(g.Ingress)
		}
	}
	return rules, err
}

// revokeNaming revokes those of the rules that let a group in.
func revokeNaming(ctx context.Context, c *cloud.Clients, rules map[string][]string, group string) error {
	for _, in := range slices.Sorted(maps.Keys(rules)) {
		naming := slices.DeleteFunc(slices.Clone(rules[in]), func(l string) bool { return strings.Fields(l)[2] != group })
		if err := (&ec2.SecurityGroupRules{}).Delete(ctx, c, &ec2.SecurityGroupRulesState{Group: in, Lines: naming}); err != nil {
			return err
		}
	}
	return nil
}

// VolumeState is a volume that a claim in the cluster was given.
type VolumeState struct {
	identity.Object
}

// volumesInside lists the volumes that were made in the cluster: not those of
// machines, which go with them.
func volumesInside(ctx context.Context, c *cloud.Clients) ([]VolumeState, error) {
	return cloud.Remember(ctx, c, "volumes", func(ctx context.Context) ([]VolumeState, error) {
		p := awsec2.NewDescribeVolumesPaginator(c.EC2, &awsec2.DescribeVolumesInput{Filters: []types.Filter{cloud.Filter("tag:"+c.InsideTag(), cloud.Owned)}})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*awsec2.DescribeVolumesOutput, error) { return p.NextPage(ctx) },
			func(o *awsec2.DescribeVolumesOutput) (out []VolumeState) {
				for _, v := range o.Volumes {
					s := VolumeState{identity.Object{ID: aws.ToString(v.VolumeId), Tags: cloud.FromEC2(v.Tags)}}
					gone := v.State == types.VolumeStateDeleting || v.State == types.VolumeStateDeleted
					if madeInside(c, s.Tags) && !gone && !slices.ContainsFunc(v.Attachments, goesWithMachine) {
						out = append(out, s)
					}
				}
				return out
			})
	})
}

func goesWithMachine(a types.VolumeAttachment) bool {
	return a.DeleteOnTermination != nil && *a.DeleteOnTermination
}

func remainingVolumes(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	all, err := volumesInside(ctx, c)
	for _, s := range all {
		out = append(out, remain(KindVolume, RankServed, s, s.Object, 0, listed(s.ID, volumesInside), deleteVolume).inside(c, s.Tags))
	}
	return out, err
}

// KindVolume is the kind of volumes.
const KindVolume = "volume"

func deleteVolume(ctx context.Context, c *cloud.Clients, have *VolumeState) error {
	_, err := c.EC2.DeleteVolume(ctx, &awsec2.DeleteVolumeInput{VolumeId: &have.ID})
	if cloud.Is(err, "IncorrectState") {
		return graph.NotYet(fmt.Errorf("it to be made: %w", err))
	}
	return err
}
