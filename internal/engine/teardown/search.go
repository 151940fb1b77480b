package teardown

import (
	"cmp"
	"context"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
)

// Leftover is a resource that has a tag of a cluster and is not in the graph.
type Leftover struct {
	kind.Found
	Name   string // tag Name or another name; "" for none
	Origin string // how it was found, or who created it
	// Created: a controller in the cluster created it.
	Created bool
}

// Leftovers are the leftovers of one cluster.
type Leftovers []Leftover

// String formats a leftover for messages: "subnet subnet-0123
// (demo-subnet-public-us-east-1a)".
func (l Leftover) String() string {
	if l.Name == "" || l.Name == l.ID {
		return l.Kind.Name + " " + l.ID
	}
	return l.Kind.Name + " " + l.ID + " (" + l.Name + ")"
}

// Claimed returns the cloud IDs of the resources of a graph, which Search leaves out. A
// resource whose ID is that of another object does not claim it, except for the tags of
// subnets, which are searched for by the ID of the subnet.
func Claimed(g *graph.Graph) map[string]bool {
	kinds, claimed := aws.Kinds(), map[string]bool{}
	for _, n := range g.Resources() {
		f, is := kind.FromState(kinds, n.Observed())
		if !is || !f.Kind.Borrowed || f.Kind.Type != "" {
			claimed[n.CloudID()] = true
		}
		for _, id := range deletedWith(n.Observed()) {
			claimed[id] = true
		}
	}
	return claimed
}

// deletedWith returns the IDs of the volumes that AWS deletes with a machine.
func deletedWith(have graph.State) []string {
	switch m := have.(type) {
	case ec2.InstanceState:
		return m.OwnVolumes
	case *ec2.InstanceState:
		if m != nil {
			return m.OwnVolumes
		}
	}
	return nil
}

// search is a search for the resources of a cluster.
type search struct {
	c       *cloud.Clients
	of      kind.Owner
	claimed map[string]bool // IDs of resources in a graph

	types map[types.ResourceType]bool // EC2 types with unclaimed resources
	pods  []string                    // IDs of network interfaces that the pod network has created
	disks map[string]bool             // IDs of volumes with the owned tag, without those that AWS deletes with machines of a graph
	found Leftovers
}

// Search lists the resources that have a tag of the cluster, or were created in it,
// except for those claimed by ID; without claims, only the name of the cluster is known.
// One query reads the tags of all of EC2, so that only kinds with unclaimed resources are
// listed. The owner that it returns includes the names that it found. With claims, it searches for the kinds that a manifest names only if named
// is true: the plan of a deletion then also lists what the manifest does not name any more.
func Search(ctx context.Context, c *cloud.Clients, of kind.Owner, claimed map[string]bool, named bool) (Leftovers, kind.Owner, error) {
	of.Cluster = c.Cluster
	s := &search{c: c, of: of, claimed: claimed, types: map[types.ResourceType]bool{}, disks: map[string]bool{}}
	byName := func(k *kind.Kind) bool { return k.ByNameOnly && (named || len(claimed) == 0) }
	byTag := func(k *kind.Kind) bool {
		of := cmp.Or(k.Type, k.SearchedWith)
		return !k.ByNameOnly && (of == "" || s.types[of]) && k.Name != ec2.VolumeKind
	}
	lastingVolumes := func(k *kind.Kind) bool {
		for _, f := range s.found {
			for _, id := range deletedWith(f.State) {
				delete(s.disks, id)
			}
		}
		return k.Name == ec2.VolumeKind && (s.types[k.Type] || len(s.disks) > 0)
	}
	err := s.list(ctx, byName)
	if err == nil {
		err = s.readTags(ctx)
	}
	if err == nil {
		err = s.list(ctx, byTag)
	}
	if err == nil {
		err = s.list(ctx, lastingVolumes)
	}
	if err != nil {
		return nil, s.of, err
	}
	return append(s.found, s.interfaces()...), s.of, nil
}

// list lists the resources of the kinds to search.
func (s *search) list(ctx context.Context, searched func(*kind.Kind) bool) error {
	for _, k := range aws.Kinds() {
		if !k.Searchable() || !searched(k) {
			continue
		}
		all, err := k.List(ctx, s.c, s.of)
		if err != nil && (!k.ByNameOnly || !cloud.Denied(err)) { // a user without permission has created none
			return err
		}
		for _, f := range all {
			if f.Owner.EKS {
				s.of.Kubernetes, s.of.EKS = f.Owner.Kubernetes, true
			}
			s.found = append(s.found, s.leftover(f))
		}
	}
	return nil
}

func (s *search) leftover(f kind.Found) Leftover {
	l := Leftover{Found: f, Name: f.Tags.Printable("Name"), Origin: "found by its tag", Created: f.Kind.InCluster && s.of.Created(f.Tags)}
	if l.Created {
		what := createdFor(f.Tags)
		l.Name, l.Origin = cmp.Or(what, l.Name), "made in the cluster"
		if what != "" {
			l.Origin += " for " + what
		}
	}
	return l
}

// createdFor returns the object that a controller created a resource for, from the tags:
// "default/web". They are tags of the AWS cloud controller manager, the AWS Load Balancer
// Controller and CSI's external provisioner.
func createdFor(tags cloud.Tags) string {
	const claim = "kubernetes.io/created-for/pvc/"
	name := tags[claim+"name"]
	if name != "" {
		name = tags[claim+"namespace"] + "/" + name
	}
	return cmp.Or(tags["kubernetes.io/service-name"], tags["service.k8s.aws/stack"], tags["ingress.k8s.aws/stack"], name)
}

// readTags reads which EC2 resources have the tags of the cluster and of controllers in
// it. Some may be deleted: AWS returns their tags for an hour.
func (s *search) readTags(ctx context.Context) error {
	tags, err := s.tags(ctx)
	if err != nil {
		return err
	}
	own := map[string]bool{}
	for _, t := range tags {
		id := awssdk.ToString(t.ResourceId)
		own[id] = own[id] || s.of.Owns(tagMap(t))
	}
	if err := s.learnName(ctx, tags, own); err != nil {
		return err
	}
	if len(s.claimed) == 0 && !s.of.EKS {
		names, err := eks.Names(ctx, s.c) // learnName has read it
		s.of.Shared = s.of.Shared || err == nil && slices.Contains(names, s.of.Kubernetes)
	}
	s.note(tags, own)
	return nil
}

// note records the types that have unclaimed resources.
func (s *search) note(tags []types.TagDescription, own map[string]bool) {
	created := map[types.ResourceType]bool{}
	for _, k := range aws.Kinds() {
		created[k.Type] = created[k.Type] || k.InCluster
	}
	for _, t := range tags {
		id := awssdk.ToString(t.ResourceId)
		switch {
		case s.claimed[id]:
		case t.ResourceType == types.ResourceTypeVolume && s.of.Owns(tagMap(t)):
			s.disks[id] = true
		case awssdk.ToString(t.Key) == ec2.AddedTagPrefix+s.c.Cluster, s.of.Owns(tagMap(t)):
			s.types[t.ResourceType] = true
		case own[id]:
		case t.ResourceType == types.ResourceTypeNetworkInterface && s.ofPods(t):
			s.pods = append(s.pods, id)
		case s.of.Created(tagMap(t)) && created[t.ResourceType]:
			s.types[t.ResourceType] = true
		}
	}
}

// ofPods reports whether a tag of a network interface is from the pod network.
func (s *search) ofPods(t types.TagDescription) bool {
	named := awssdk.ToString(t.Key) == kind.CNITag && awssdk.ToString(t.Value) == s.of.Kubernetes
	return s.of.Created(tagMap(t)) || named && !s.of.Shared
}

func tagMap(t types.TagDescription) cloud.Tags {
	return cloud.Tags{awssdk.ToString(t.Key): awssdk.ToString(t.Value)}
}

// tags lists the tags of EC2 resources that identify the cluster.
func (s *search) tags(ctx context.Context) ([]types.TagDescription, error) {
	keys := []string{s.c.OwnerTag(), ec2.AddedTagPrefix + s.c.Cluster, kind.LoadBalancerControllerTag, s.of.Tag()}
	if s.of.Kubernetes == "" {
		keys[len(keys)-1] += "*"
	}
	if s.of.EKS || s.of.Kubernetes == "" { // without EKS, interfaces of pods are in the security groups of machines, and found in them
		keys = append(keys, kind.CNITag)
	}
	return describeTags(ctx, s.c, cloud.Filter("key", keys...))
}

func describeTags(ctx context.Context, c *cloud.Clients, filters ...types.Filter) ([]types.TagDescription, error) {
	prefixes := map[string]types.ResourceType{}
	for _, k := range aws.Kinds() {
		if k.IDPrefix != "" {
			prefixes[k.IDPrefix] = k.Type
		}
	}
	p := awsec2.NewDescribeTagsPaginator(c.EC2, &awsec2.DescribeTagsInput{Filters: filters})
	return cloud.Pages(ctx, p, func(o *awsec2.DescribeTagsOutput) []types.TagDescription {
		for n, t := range o.Tags {
			prefix, _, _ := strings.Cut(awssdk.ToString(t.ResourceId), "-")
			o.Tags[n].ResourceType = cmp.Or(prefixes[prefix+"-"], t.ResourceType)
		}
		return o.Tags
	})
}

// learnName finds the cluster's name in the tags of controllers, if only its Cluster API
// name is known: resources may have either. If the cluster has no resources, but machines
// of another cluster have that name in their tags, the resources that controllers created
// belong to the other cluster.
func (s *search) learnName(ctx context.Context, tags []types.TagDescription, own map[string]bool) error {
	names, others := s.names(tags, own)
	if s.of.Kubernetes == "" {
		s.of.Kubernetes = s.c.Cluster
		switch {
		case len(names) == 0 || slices.Contains(names, s.c.Cluster):
		case len(names) == 1:
			s.of.Kubernetes = names[0]
		default:
			s.of.Shared = true
		}
	}
	for _, is := range own {
		others = others && !is
	}
	if !others {
		return nil
	}
	if s.of.EKS { // the name of an EKS cluster is unique in the region
		have, err := eks.ClusterByName(ctx, s.c, s.of.Kubernetes)
		if err != nil || have != nil && have.IsOwned(s.c) {
			return err
		}
	}
	exists, err := s.otherClusterExists(ctx)
	s.of.Shared = s.of.Shared || exists
	return err
}

// names lists the names in the tags of owned resources, and reports whether a machine or
// a subnet has the cluster's name.
func (s *search) names(tags []types.TagDescription, own map[string]bool) (names []string, others bool) {
	for _, t := range tags {
		name, is := strings.CutPrefix(awssdk.ToString(t.Key), cloud.CloudProviderTagPrefix)
		if !is || awssdk.ToString(t.Value) != cloud.Owned {
			continue
		}
		if own[awssdk.ToString(t.ResourceId)] && !slices.Contains(names, name) {
			names = append(names, name)
		}
		others = others || name == cmp.Or(s.of.Kubernetes, s.c.Cluster) && slices.Contains([]types.ResourceType{
			types.ResourceTypeVpc, types.ResourceTypeSubnet, types.ResourceTypeInstance,
		}, t.ResourceType)
	}
	return names, others
}

// otherClusterExists reports whether subnets or machines have the cluster's name in their tags.
// Machines keep their tags for an hour.
func (s *search) otherClusterExists(ctx context.Context) (bool, error) {
	tagged := cloud.Filter("tag:"+s.of.Tag(), cloud.Owned)
	subnets, err := ec2.DescribeSubnets(ctx, s.c, "subnets of "+s.of.Kubernetes, []types.Filter{tagged})
	if err != nil || len(subnets) > 0 {
		return true, err
	}
	out, err := s.c.EC2.DescribeInstances(ctx, &awsec2.DescribeInstancesInput{Filters: []types.Filter{
		tagged, ec2.NotTerminating(),
	}})
	return err == nil && len(out.Reservations) > 0, err
}
