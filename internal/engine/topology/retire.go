package topology

import (
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/s3"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// What is not in the manifest any more may have a successor under another name, in another
// kind of pool too. So it is deleted after everything that could take its place works
// (docs/adr/0033-create-before-destroy.md). If that fails, it stays.

// resourcesOf lists the resources of some kinds.
func resourcesOf(g *graph.Graph, kinds ...string) (out []graph.Resource) {
	for _, r := range g.Resources() {
		if slices.Contains(kinds, r.ID().Kind()) {
			out = append(out, r)
		}
	}
	return out
}

// desiredOf is resourcesOf without resources that are deleted.
func desiredOf(g *graph.Graph, kinds ...string) []graph.Resource {
	return slices.DeleteFunc(resourcesOf(g, kinds...), func(r graph.Resource) bool { return r.Role() == graph.RoleRetired })
}

// runPods waits for everything that runs pods: machines, pools, node groups, their Nodes, and
// Fargate profiles.
func runPods(g *graph.Graph) []graph.Edge {
	return graph.Awaits(desiredOf(g, "machine", "auto-scaling-group", "node-group", "node", incluster.PoolNodesKind, "fargate-profile")...)
}

// retireNodeGroups retires node groups that are not desired any more.
func retireNodeGroups(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState]) {
	after := runPods(g)
	for _, name := range in.inv.EKS.NodeGroups {
		if id := plan.ID("node-group/" + name); g.Resource(id) == nil {
			eks.RetireNodeGroup(g, id, name, cluster, after)
		}
	}
}

// retirePools retires pools that are not desired any more. A pool is found by its launch
// template, so that is deleted last.
func retirePools(g *graph.Graph, in inputs, bucket *graph.Ref[s3.BucketState]) {
	var groups []graph.Resource // retired node groups: they do not report their template
	for _, r := range resourcesOf(g, "node-group") {
		if r.Role() == graph.RoleRetired {
			groups = append(groups, r)
		}
	}
	after := runPods(g)
	for _, t := range in.inv.Templates {
		name := t.Tags["Name"]
		id := plan.ID("launch-template/" + name)
		if of := t.Tags[cloud.ResourceTag]; name == "" || g.Resource(id) != nil || of != "" && of != string(id) {
			continue // or somebody else has changed the tag Name of one that stays
		}
		from := graph.From("no longer in the manifest")
		tags := func(kind string) cloud.Tags {
			return cloud.Tags{"Name": name, cloud.ResourceTag: kind + "/" + name}
		}
		pool := graph.Retire(
			g,
			plan.ID("retired/auto-scaling-group/"+name),
			&autoscaling.Group{Name: name, Tags: tags("auto-scaling-group")},
			from,
			graph.With(after),
			graph.Label(plan.ID("auto-scaling-group/"+name)),
		)
		data := graph.Retire(g, plan.ID("boot-data/"+name), &bootdata.Left{Name: name, Template: t.Name, Bucket: bucket, Pool: pool}, from, graph.PartOf(pool.ID()))
		first := append([]graph.Resource{pool, data}, groups...)
		graph.Retire(g, plan.ID("retired/launch-template/"+name), &ec2.LaunchTemplate{Name: t.Name, Tags: tags("launch-template")},
			from, graph.With(graph.Awaits(first...), graph.Outlives(first...)), graph.Label(id))
	}
}

// retireEKS retires the other parts of the EKS cluster that are owned and not desired any
// more. Unlike in Cluster API, parts that others have added stay. nodeRoles are ARNs of roles
// whose access entries are named after instance profiles.
func retireEKS(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState], nodeRoles map[string]bool) {
	pods := runPods(g)
	for _, name := range in.inv.EKS.Fargate {
		if id := plan.ID("fargate-profile/" + name); g.Resource(id) == nil {
			eks.RetireFargateProfile(g, id, name, cluster, pods)
		}
	}
	addons := append(pods, graph.Awaits(desiredOf(g, "addon", incluster.ResourceSetKind, "vpc-cni")...)...)
	for _, name := range in.inv.EKS.Addons {
		if id := plan.ID("addon/" + name); g.Resource(id) == nil {
			eks.RetireAddon(g, id, name, cluster, addons)
		}
	}
	for _, arn := range in.inv.EKS.Leaving.Roles {
		if g.Resource(roleID(arn)) == nil {
			eks.RetireRoleOfNodes(g, arn, cluster, graph.Awaits(machinesLeaving(g)...))
		}
	}
	access := graph.Awaits(slices.Concat(desiredOf(g, "access-entry", "aws-auth", "eks-authentication"), machinesLeaving(g))...)
	for _, principal := range in.inv.EKS.AccessEntries {
		if id := plan.ID("access-entry/" + principal); g.Resource(id) == nil && !nodeRoles[principal] && g.Resource(roleID(principal)) == nil {
			eks.RetireAccessEntry(g, id, principal, cluster, access)
		}
	}
	retireKarpenter(g, in)
	retirePodRoles(g, in)
	if in.inv.EKS.Leaving.OIDCProvider {
		eks.RetireOIDCProvider(g, eks.OIDCProviderKind, cluster, graph.Awaits(desiredOf(g, "addon", eks.PodIdentityKind)...))
	}
}

// roleID is the ID in the graph of the role with an ARN, if a node group or a Fargate profile
// uses it: without its access entry, their nodes are locked out.
func roleID(arn string) plan.ID { return plan.ID("role/" + iam.RoleName(arn)) }

// retireNetwork retires load balancers, listeners, the bucket of boot data and the security group of a bastion that are not desired any more.
// The load balancer of the API server stays, whatever the manifest says: its name is in certificates and kubeconfigs.
func retireNetwork(g *graph.Graph, in inputs, net network) {
	retireUnlistedBalancers(g, in)
	for _, t := range in.inv.TargetGroups {
		name, is := strings.CutPrefix(t.Tags[cloud.ResourceTag], "target-group/")
		id := plan.ID("target-group/" + name)
		if !is || name == "api" || g.Resource(id) != nil || len(t.LoadBalancer) > 1 {
			continue
		}
		elb.RetireTargetGroup(g, id, t.ID, retireForwarder(g, in, name, t))
	}
	if in.inv.Bucket != "" {
		pods := runPods(g)
		endpoint := &ec2.GatewayEndpoint{VPC: net.vpc, Tags: in.tags(s3Endpoint, "", roleCommon)}
		gone := kind.Retire(g, s3Endpoint, endpoint.Find, endpoint, append(graph.Exists(net.vpc), pods...))
		s3.RetireBucket(g, "bucket", in.inv.Bucket, append(graph.Awaits(gone), pods...))
	}
	if groups := in.inv.Left.Groups; len(groups) > 0 {
		users := append(runPods(g), graph.Awaits(resourcesOf(g, "security-group-rules", elb.LoadBalancerKind, elb.ClassicLoadBalancerKind, "retired")...)...)
		retireTagged(g, groups, "security-group", ec2.OwnedSecurityGroups(groups[0].VPC), &ec2.SecurityGroup{}, users)
	}
}

// secondaryBalancer is the ID of the load balancer of spec.secondaryControlPlaneLoadBalancer.
const secondaryBalancer plan.ID = elb.LoadBalancerKind + "/secondary/network"

// retireUnlistedBalancers retires load balancers that forward to nothing yet: a run was interrupted after it had created them, and they are not in
// the manifest any more.
func retireUnlistedBalancers(g *graph.Graph, in inputs) {
	for _, x := range in.inv.Unlisted {
		forwards := slices.ContainsFunc(in.inv.TargetGroups, func(t elb.TargetGroupState) bool { return slices.Contains(t.LoadBalancer, x.ID) })
		if !forwards && x.Tags[cloud.RoleTag] == infrav1.APIServerRoleTagValue {
			elb.RetireLoadBalancer(g, "retired/"+elb.LoadBalancerKind+"/"+plan.ID(x.Name), x.ID, graph.Label(elb.LoadBalancerKind+"/"+plan.ID(x.Name)))
		}
	}
}

// retireForwarder retires what forwards connections to a target group: the secondary load balancer, or a listener. It returns nil
// if nothing does.
func retireForwarder(g *graph.Graph, in inputs, name string, t elb.TargetGroupState) graph.Resource {
	if len(t.LoadBalancer) == 0 {
		return nil
	}
	balancer := t.LoadBalancer[0]
	if !strings.HasPrefix(name, "secondary/") || in.spec.SecondaryControlPlaneLoadBalancer != nil {
		return elb.RetireListener(g, plan.ID("listener/"+name), balancer, t.ID)
	}
	if added := g.Resource(secondaryBalancer); added != nil {
		return added
	}
	return elb.RetireLoadBalancer(g, secondaryBalancer, balancer)
}

// machinesLeaving lists the nodes that are deleted. Until they are gone, they need the access
// entries of their roles.
func machinesLeaving(g *graph.Graph) (out []graph.Resource) {
	for _, r := range resourcesOf(g, "retired", "node-group", "fargate-profile", "auto-scaling-group") {
		if r.Role() == graph.RoleRetired || r.ID().Kind() == "auto-scaling-group" {
			out = append(out, r)
		}
	}
	return out
}
