package teardown

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// foreignSearch looks for foreign resources.
type foreignSearch struct {
	c      *cloud.Clients
	of     kind.Owner
	g      *graph.Graph
	known  map[string]bool // IDs of the resources that the graph deletes
	groups map[string]bool // IDs of the security groups to be deleted
	found  map[string]plan.ForeignResource

	clusters map[string]bool // names of the EKS clusters to be deleted
}

// FindForeign lists the resources of other owners that prevent the deletion of the
// graph's VPC and security groups, and the kept resources that do. The graph must have
// been planned, so that cloud IDs are known. VPN gateways, network ACLs and peering
// connections are not looked for.
func FindForeign(ctx context.Context, c *cloud.Clients, g *graph.Graph, of kind.Owner, kept Leftovers) ([]plan.ForeignResource, error) {
	s := &foreignSearch{
		c:        c,
		of:       of,
		g:        g,
		known:    map[string]bool{},
		groups:   map[string]bool{},
		found:    map[string]plan.ForeignResource{},
		clusters: map[string]bool{},
	}
	kinds := aws.Kinds()
	vpcs, groupVPCs := map[string]bool{}, map[string]bool{}
	var own []kind.Found
	for _, n := range g.Resources() {
		f, ok := kind.FromState(kinds, n.Observed())
		if !ok {
			continue
		}
		if n.Role() == graph.RoleExisting || f.Kind.Borrowed {
			continue // the deletion does not delete what the ID names
		}
		s.known[f.ID], s.known[elb.InterfaceName(f.ID)] = true, true
		own = append(own, f)
		switch x := f.State.(type) {
		case ec2.VPCState:
			vpcs[x.ID] = true
		case ec2.SecurityGroupState:
			s.groups[x.ID], groupVPCs[x.VPC] = true, true
		case eks.ClusterState:
			s.clusters[x.Name] = true
			if x.Group != "" { // EKS deletes it with the cluster
				s.groups[x.Group], groupVPCs[x.VPC] = true, true
			}
		}
	}
	for _, x := range kept {
		if vpc := ec2.VPCOf(x.Refers); vpcs[vpc] {
			s.found[x.ID] = plan.ForeignResource{Kind: x.Kind.Name, ID: x.ID, In: vpc, Owner: x.Origin, Show: showCommand(x.ID)}
		}
	}
	err := s.lostParts(ctx, own)
	if err == nil {
		err = s.inVPCs(ctx, kinds, slices.Sorted(maps.Keys(vpcs)))
	}
	maps.DeleteFunc(groupVPCs, func(vpc string, _ bool) bool { return vpcs[vpc] })
	if err == nil && len(groupVPCs) > 0 {
		err = s.inGroups(ctx, slices.Sorted(maps.Keys(groupVPCs)))
	}
	return slices.SortedFunc(maps.Values(s.found), func(a, b plan.ForeignResource) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	}), err
}

// inVPCs searches VPCs that will be deleted.
func (s *foreignSearch) inVPCs(ctx context.Context, kinds []*kind.Kind, vpcs []string) error {
	for _, vpc := range vpcs {
		for _, k := range kinds {
			all, err := k.InVPC(ctx, s.c, vpc)
			if err != nil {
				return err
			}
			for _, f := range all {
				s.inVPC(f, vpc)
			}
		}
		if err := s.interfaces(ctx, vpc, cloud.Filter("vpc-id", vpc)); err != nil {
			return err
		}
	}
	return nil
}

// inVPC notes a resource in a VPC. EKS gives no tag to the security group for SSH access
// to a node group, and deletes it with the node group.
func (s *foreignSearch) inVPC(f kind.Found, vpc string) {
	g, _ := f.State.(ec2.SecurityGroupState)
	if s.of.EKSName() != "" && strings.HasPrefix(g.Name, "eks-remoteAccess-") {
		return
	}
	s.note(f.Kind.Name, f.ID, vpc, f.Tags, g.Name)
}

// inGroups searches the security groups that will be deleted, in VPCs that will not.
func (s *foreignSearch) inGroups(ctx context.Context, vpcs []string) error {
	for _, vpc := range vpcs {
		all, err := ec2.SecurityGroups(ctx, s.c, vpc)
		if err != nil {
			return err
		}
		for _, g := range all {
			for _, rule := range slices.Concat(g.Ingress, g.Egress) {
				for _, pair := range rule.UserIdGroupPairs {
					if to := *pair.GroupId; s.groups[to] && !s.groups[g.ID] {
						s.note("security-group", g.ID, "a rule for "+to, g.Tags)
					}
				}
			}
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(s.groups)), 200) { // AWS takes 200 values for a filter
		if err := s.interfaces(ctx, strings.Join(ids, " or "), cloud.Filter("group-id", ids...)); err != nil {
			return err
		}
	}
	return nil
}

// interfaces searches the network interfaces that match a filter. An interface that is a
// part of another resource stands for that resource.
func (s *foreignSearch) interfaces(ctx context.Context, in string, filter types.Filter) error {
	all, err := ec2.Interfaces(ctx, s.c, filter)
	if err != nil {
		return err
	}
	var instances, gateways []string
	for _, i := range all {
		switch {
		case s.known[i.ID], ec2.LeftInCluster(s.c, i) && slices.ContainsFunc(i.Groups, func(g string) bool { return s.groups[g] }):
		case i.Instance != "":
			instances = append(instances, i.Instance)
		case s.of.Contains(i.Tags):
		case i.NATGateway != "":
			gateways = append(gateways, i.NATGateway)
		case i.CNI && i.Tags[kind.CNITag] == "":
			// It is left over from a machine. The security groups and the VPC are the
			// cluster's, so the machine probably was, too.
		default:
			if err := s.interfaceOfService(ctx, i, in); err != nil {
				return err
			}
		}
	}
	if err := s.users(ctx, "instance", in, instances, ec2.InstanceTags); err != nil {
		return err
	}
	return s.users(ctx, "nat-gateway", in, gateways, ec2.NATGatewayTags)
}

// users notes the instances or NAT gateways that exist and are not the cluster's. An instance
// of an Auto Scaling group stands for the group, also if it is a node: a deletion deletes only groups
// with the owned tag.
func (s *foreignSearch) users(
	ctx context.Context,
	kind, in string,
	ids []string,
	tagsOf func(context.Context, *cloud.Clients, []string) (map[string]cloud.Tags, error),
) error {
	ids = slices.DeleteFunc(ids, func(id string) bool { return s.known[id] })
	if len(ids) == 0 {
		return nil
	}
	tags, err := tagsOf(ctx, s.c, slices.Compact(slices.Sorted(slices.Values(ids))))
	for id, t := range tags {
		group := t[ec2.GroupTag]
		switch {
		case group == "":
			s.note(kind, id, in, t)
		case s.known[group]:
		case s.of.Owns(t) && !s.ofEKS(t): // the group has given it the cluster's tag
			if err := s.group(ctx, group, in); err != nil {
				return err
			}
		case s.of.Created(t) && !s.ofEKS(t): // self-managed nodes of another tool, which the group replaces
			show := "aws autoscaling describe-auto-scaling-groups --auto-scaling-group-names " + group
			s.add(plan.ForeignResource{Kind: autoscaling.GroupKind, ID: group, In: in, Show: show}, t)
		default:
			s.note(kind, id, in, t)
		}
	}
	return err
}

// group notes an Auto Scaling group that has lost its tags, or the launch template by which a
// deletion finds the group.
func (s *foreignSearch) group(ctx context.Context, name, in string) error {
	all, err := autoscaling.Groups(ctx, s.c)
	for _, g := range all {
		if g.ID == name {
			s.add(plan.ForeignResource{Kind: ec2.LaunchTemplateKind, ID: g.TemplateID(), In: "use by " + autoscaling.GroupKind + " " + name}, nil)
			return err
		}
	}
	s.add(plan.ForeignResource{Kind: autoscaling.GroupKind, ID: name, In: in}, nil)
	return err
}

// ofEKS reports whether an instance with the tags is of a node group of EKS, which deletes its
// Auto Scaling group itself.
func (s *foreignSearch) ofEKS(tags cloud.Tags) bool {
	name := tags[kind.NodeGroupClusterTag]
	return name != "" && name == s.of.EKSName()
}

// interfaceOfService notes an interface of an AWS service, or one that nobody uses. The
// interfaces of load balancers and EKS clusters that are deleted remain for some minutes;
// AWS deletes them.
func (s *foreignSearch) interfaceOfService(ctx context.Context, i ec2.Interface, in string) error {
	switch {
	case s.clusters[i.EKSCluster], s.known[cmp.Or(i.LoadBalancer, i.Endpoint)]:
		return nil
	case i.EKSCluster != "":
		names, err := eks.Names(ctx, s.c)
		if err != nil || !slices.Contains(names, i.EKSCluster) {
			return err
		}
		return s.cluster(ctx, i.EKSCluster, in)
	case i.LoadBalancer != "":
		of, lb, err := elb.WithInterface(ctx, s.c, i.LoadBalancer)
		if err != nil || lb == nil {
			return err
		}
		s.note(of, lb.ID, in, lb.Tags, i.Description)
		return nil
	}
	if _, told := s.found[i.Endpoint]; !told {
		s.note("network-interface", i.ID, in, i.Tags, i.Description, i.Requester)
	}
	return nil
}

// cluster notes an EKS cluster.
func (s *foreignSearch) cluster(ctx context.Context, name, in string) error {
	have, err := eks.ClusterByName(ctx, s.c, name)
	if err != nil || have == nil {
		return err
	}
	s.add(
		plan.ForeignResource{
			Kind:  "EKS cluster",
			ID:    have.ID,
			In:    in,
			Owner: ownerOf(have.Tags),
			Show:  fmt.Sprintf("aws eks describe-cluster --region %s --name %s", s.c.Region, name),
		},
		have.Tags,
	)
	return nil
}

// note records a resource, unless it is the cluster's. Its owner is told from its tags or
// else by hints.
func (s *foreignSearch) note(kind, id, in string, tags cloud.Tags, hints ...string) {
	handmade := s.of.Created(tags) && !madeByControllers(kind)
	switch {
	case s.known[id]:
		return
	case handmade && !s.of.MayHaveLost(tags):
		hints = []string{"somebody has given it the tag " + s.of.Tag() + ", for which controllers look"}
		tags = cloud.Tags{}.With(tags)
		delete(tags, s.of.Tag())
	case !handmade && s.of.Contains(tags):
		return
	}
	s.add(plan.ForeignResource{Kind: kind, ID: id, In: in, Owner: cmp.Or(ownerOf(tags), cmp.Or(hints...)), Show: showCommand(id)}, tags)
}

// madeByControllers reports whether controllers in a cluster create resources of a kind, so that the tag of the cloud provider says that they have.
// Interfaces and instances stand for what they are a part of.
func madeByControllers(of string) bool {
	kinds := aws.Kinds()
	at := slices.IndexFunc(kinds, func(k *kind.Kind) bool { return k.Name == of })
	return at < 0 || kinds[at].InCluster
}

// add records a resource with the tags.
func (s *foreignSearch) add(f plan.ForeignResource, tags cloud.Tags) {
	if s.of.MayHaveLost(tags) && f.Kind != "network-interface" { // a run does not make interfaces by themselves
		f.Restore = s.restoreCommand(f)
	}
	s.found[elb.InterfaceName(f.ID)] = f
}

// restoreCommand returns the command that restores the tags by which a deletion finds a
// resource.
func (s *foreignSearch) restoreCommand(f plan.ForeignResource) string {
	owner := s.c.OwnerTag()
	switch f.Kind {
	case autoscaling.GroupKind:
		return fmt.Sprintf(
			"aws autoscaling create-or-update-tags --tags ResourceId=%s,ResourceType=auto-scaling-group,Key=%s,Value=%s,PropagateAtLaunch=true",
			f.ID,
			owner,
			cloud.Owned,
		)
	case elb.ClassicLoadBalancerKind:
		return elb.ClassicTagCommand(f.ID, owner, cloud.Owned)
	}
	tags := []string{owner, cloud.Owned}
	if id := s.missing(f.Kind); id != "" && !strings.HasPrefix(f.ID, "arn:") {
		tags = append(tags, cloud.ResourceTag, string(id))
	}
	return cloud.TagCommand(f.ID, tags...)
}

// missing returns the ID of the only resource of a kind that the graph has and AWS does not
// show; "" if there are none or several.
func (s *foreignSearch) missing(of string) (id plan.ID) {
	if of == "instance" {
		of = ec2.MachineKind
	}
	for _, n := range s.g.Resources() {
		switch {
		case n.ID().Kind() != of || n.Observed() != nil:
		case id != "":
			return ""
		default:
			id = n.ID()
		}
	}
	return id
}

// ownerOf says what tags tell about the owner of a resource.
func ownerOf(tags cloud.Tags) string {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if name, is := strings.CutPrefix(key, cloud.ClusterTagPrefix); is && tags[key] == cloud.Owned {
			return "cluster " + name
		}
		if name, is := strings.CutPrefix(key, cloud.CloudProviderTagPrefix); is && tags[key] == cloud.Owned {
			return "Kubernetes cluster " + name
		}
	}
	for _, t := range []struct{ key, what string }{
		{kind.EKSClusterTag, "EKS cluster "},
		{kind.NodeGroupClusterTag, "EKS cluster "},
		{kind.CNITag, "Kubernetes cluster "},
		{kind.LoadBalancerControllerTag, "Kubernetes cluster "},
		{"aws:cloudformation:stack-name", "CloudFormation stack "},
		{"aws:autoscaling:groupName", "Auto Scaling group "},
		{"Name", ""},
	} {
		if value := tags[t.key]; value != "" {
			return t.what + value
		}
	}
	if tags["GuardDutyManaged"] == "true" {
		return "Amazon GuardDuty"
	}
	return ""
}

// showCommand returns a command that shows a resource; "" for a Classic Load Balancer,
// whose ID is no more than a name.
func showCommand(id string) string {
	prefix, _, _ := strings.Cut(id, "-")
	options := map[string]string{
		"eni": "network-interfaces --network-interface-ids", "i": "instances --instance-ids", "nat": "nat-gateways --nat-gateway-ids",
		"rtb": "route-tables --route-table-ids", "sg": "security-groups --group-ids", "subnet": "subnets --subnet-ids", "vpce": "vpc-endpoints --vpc-endpoint-ids",
	}
	if is := options[prefix]; is != "" {
		return "aws ec2 describe-" + is + " " + id
	}
	switch {
	case strings.Contains(id, ":targetgroup/"):
		return "aws elbv2 describe-target-groups --target-group-arns " + id
	case strings.Contains(id, ":loadbalancer/"):
		return "aws elbv2 describe-load-balancers --load-balancer-arns " + id
	}
	return ""
}
