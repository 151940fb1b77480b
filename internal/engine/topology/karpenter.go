package topology

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eventbridge"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/sqs"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// addKarpenter adds what Karpenter needs in AWS (https://karpenter.sh/docs/reference/cloudformation): the roles of its nodes and of its
// controller, the access entry of the nodes, and the queue with the events of EC2 and AWS Health. They are deleted after the machines,
// which Karpenter may have launched.
func addKarpenter(g *graph.Graph, in inputs, cluster *graph.Ref[eks.ClusterState]) {
	k := in.m.EKS.Karpenter
	if k == nil {
		return
	}
	at, name := in.infra(manifest.AnnotationPath(manifest.AnnotationKarpenter)), in.m.EKS.ControlPlane.Spec.EKSClusterName
	path := in.m.EKS.PodRolePath(in.m.Region)
	role := func(r iam.Role) *graph.Ref[iam.RoleState] {
		r.Path, r.Exclusive, r.ClusterTag, r.Tags = path, true, in.cloudProviderKey(), in.eksTags(r.Name)
		return graph.Add(g, plan.ID("role/"+r.Name), &r, at, graph.DeletedAfter(isMachine))
	}
	nodeRole := in.m.EKS.KarpenterNodeRole(in.m.Region)
	nodes := iam.Role{Name: nodeRole, Services: []string{iam.ServiceEC2}}
	for _, policy := range NodePolicies() {
		nodes.Policies = append(nodes.Policies, "arn:"+in.m.Partition()+":iam::aws:policy/"+policy)
	}
	controllers := in.m.EKS.KarpenterRole(in.m.Region)
	controller := role(iam.Role{
		Name: controllers, Services: []string{"pods.eks.amazonaws.com"}, TagsSessions: true, Inline: in.karpenterPolicy(name, path+nodeRole),
	})
	graph.Add(g, plan.ID("access-entry/"+nodeRole), &eks.AccessEntry{
		Cluster: cluster, Role: role(nodes), Type: eks.EntryOfLinux, Adopt: in.o.Adopt, Tags: in.eksTags(nodeRole, in.ownedByName()),
	}, at)
	queue := graph.Add(g, plan.ID(sqs.QueueKind+"/"+name), &sqs.Queue{
		Name: name, ARN: in.regional("sqs", name), Retention: "300", Tags: in.eksTags(name), Role: controller,
	}, at, graph.DeletedAfter(isMachine))
	rule := eventbridge.KarpenterRuleName(name)
	graph.Add(g, plan.ID(eventbridge.RuleKind+"/"+rule), &eventbridge.Rule{
		Name: rule, Queue: queue, Role: controller, Tags: in.eksTags(rule), Sources: []string{"aws.ec2", "aws.health"}, DetailTypes: interruptions(),
	}, at, graph.DeletedAfter(isMachine))
	account := k.Namespace + "/" + k.ServiceAccount
	graph.Add(g, podIdentityID(account), &eks.PodIdentity{
		Cluster: cluster, Namespace: k.Namespace, ServiceAccount: k.ServiceAccount, Role: controller, Adopt: in.o.Adopt,
		Tags: in.eksTags(account, in.ownedByName()),
	}, at)
}

// interruptions are the events that Karpenter handles (https://karpenter.sh/docs/concepts/disruption, "Interruption").
func interruptions() []string {
	return []string{
		"AWS Health Event",
		"EC2 Capacity Reservation Instance Interruption Warning",
		"EC2 Instance Rebalance Recommendation",
		"EC2 Instance State-change Notification",
		"EC2 Spot Instance Interruption Warning",
	}
}

// retireKarpenter adds the deletion of the queue and the rule of a manifest that had the annotation. The role of its controller, which
// retirePodRoles deletes after them, shows that there was one.
func retireKarpenter(g *graph.Graph, in inputs) {
	name := in.m.EKS.ControlPlane.Spec.EKSClusterName
	if in.m.EKS.Karpenter != nil || !slices.Contains(in.inv.EKS.PodRoles, in.m.EKS.KarpenterRole(in.m.Region)) {
		return
	}
	rule := eventbridge.KarpenterRuleName(name)
	eventbridge.RetireRule(g, plan.ID(eventbridge.RuleKind+"/"+rule), rule, nil)
	sqs.RetireQueue(g, plan.ID(sqs.QueueKind+"/"+name), name, graph.Awaits(g.Resource(plan.ID(eventbridge.RuleKind+"/"+rule))))
}

// discoveryTag is the tag by which an EC2NodeClass finds the subnets of nodes: private ones, or all if there are no others.
func (in inputs) discoveryTag(s subnet) cloud.Tags {
	if !in.m.EKS.HasKarpenter() || s.edge || s.secondary || s.public && !in.publicOnly() {
		return nil
	}
	return cloud.Tags{"karpenter.sh/discovery": in.m.EKS.ControlPlane.Spec.EKSClusterName}
}

// publicOnly reports whether the manifest lists subnets, and all of them are public.
func (in inputs) publicOnly() bool {
	for _, s := range in.spec.NetworkSpec.Subnets {
		if !s.IsPublic {
			return false
		}
	}
	return len(in.spec.NetworkSpec.Subnets) > 0
}

// regional returns the ARN of a resource of this account and region.
func (in inputs) regional(service, resource string) string {
	return strings.Join([]string{"arn", in.m.Partition(), service, in.m.Region, in.inv.Account, resource}, ":")
}

// global returns the ARN of a resource of IAM of this account.
func (in inputs) global(resource string) string {
	return "arn:" + in.m.Partition() + ":iam::" + in.inv.Account + ":" + resource
}

// policyStatement is a statement of the policy of Karpenter's controller.
type policyStatement struct {
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string]any `json:",omitempty"`
}

// karpenterPolicy is the policy of Karpenter's controller. It permits what Karpenter calls
// (https://karpenter.sh/docs/reference/cloudformation), limited to the cluster by tags.
func (in inputs) karpenterPolicy(name, nodeRole string) string {
	statements := slices.Concat(in.karpenterLaunches(name), in.karpenterReads(name), in.karpenterProfiles(name, nodeRole))
	out, _ := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements}) // text only
	return string(out)
}

// ownedCondition limits a statement to the tags of the cluster, which Karpenter sets: of the "Request", or of the "Resource". With
// a key, they have that one, too.
func ownedCondition(of, name, key string, more map[string]any) map[string]map[string]any {
	equal := map[string]any{"aws:" + of + "Tag/" + cloud.CloudProviderTagPrefix + name: cloud.Owned}
	for k, v := range more {
		equal[k] = v
	}
	return map[string]map[string]any{"StringEquals": equal, "StringLike": {"aws:" + of + "Tag/" + key: "*"}}
}

// karpenterLaunches permits to launch, tag and terminate instances.
func (in inputs) karpenterLaunches(name string) []policyStatement {
	const pool, cluster = "karpenter.sh/nodepool", "aws:RequestTag/eks:eks-cluster-name"
	ec2 := func(resources ...string) (arns []string) {
		for _, r := range resources {
			arns = append(arns, "arn:"+in.m.Partition()+":ec2:"+in.m.Region+":*:"+r+"/*")
		}
		return arns
	}
	made := ec2("fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume")
	tagged := ownedCondition("Resource", name, pool, nil)
	tagged["StringEqualsIfExists"] = map[string]any{cluster: name}
	tagged["ForAllValues:StringEquals"] = map[string]any{"aws:TagKeys": []string{"eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"}}
	return []policyStatement{
		{
			Effect: "Allow", Action: []string{"ec2:CreateFleet", "ec2:RunInstances"},
			Resource: append(
				ec2("capacity-reservation", "placement-group", "security-group", "subnet"),
				"arn:"+in.m.Partition()+":ec2:"+in.m.Region+"::image/*",
				"arn:"+in.m.Partition()+":ec2:"+in.m.Region+"::snapshot/*",
			),
		},
		{
			Effect: "Allow", Action: []string{"ec2:CreateFleet", "ec2:RunInstances"}, Resource: ec2("launch-template"),
			Condition: ownedCondition("Resource", name, pool, nil),
		},
		{
			Effect: "Allow", Action: []string{"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"}, Resource: made,
			Condition: ownedCondition("Request", name, pool, map[string]any{cluster: name}),
		},
		{
			Effect: "Allow", Action: []string{"ec2:CreateTags"}, Resource: made,
			Condition: ownedCondition("Request", name, pool, map[string]any{
				cluster: name, "ec2:CreateAction": []string{"CreateFleet", "CreateLaunchTemplate", "RunInstances"},
			}),
		},
		{Effect: "Allow", Action: []string{"ec2:CreateTags"}, Resource: ec2("instance"), Condition: tagged},
		{
			Effect: "Allow", Action: []string{"ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"}, Resource: ec2("instance", "launch-template"),
			Condition: ownedCondition("Resource", name, pool, nil),
		},
	}
}

// karpenterReads permits what only reads, and to take messages from the queue.
func (in inputs) karpenterReads(name string) []policyStatement {
	return []policyStatement{
		{
			Effect: "Allow", Resource: []string{"*"},
			Action: []string{
				"ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceStatus", "ec2:DescribeInstanceTypeOfferings",
				"ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeLaunchTemplates", "ec2:DescribePlacementGroups",
				"ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets",
			},
			Condition: map[string]map[string]any{"StringEquals": {"aws:RequestedRegion": in.m.Region}},
		},
		{Effect: "Allow", Action: []string{"pricing:GetProducts", "iam:ListInstanceProfiles"}, Resource: []string{"*"}},
		{
			Effect: "Allow", Action: []string{"ssm:GetParameter"},
			Resource: []string{"arn:" + in.m.Partition() + ":ssm:" + in.m.Region + "::parameter/aws/service/*"},
		},
		{
			Effect: "Allow", Action: []string{"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ReceiveMessage"},
			Resource: []string{in.regional("sqs", name)},
		},
		{Effect: "Allow", Action: []string{"eks:DescribeCluster"}, Resource: []string{in.regional("eks", "cluster/"+name)}},
	}
}

// karpenterProfiles permits to make the instance profiles of the nodes, and to pass their role.
func (in inputs) karpenterProfiles(name, nodeRole string) []policyStatement {
	const class, region, cluster = "karpenter.k8s.aws/ec2nodeclass", "Tag/topology.kubernetes.io/region", "aws:RequestTag/eks:eks-cluster-name"
	profiles := []string{in.global("instance-profile/*")}
	both := ownedCondition("Resource", name, class, map[string]any{
		"aws:Resource" + region: in.m.Region, "aws:Request" + region: in.m.Region, cluster: name,
		"aws:RequestTag/" + cloud.CloudProviderTagPrefix + name: cloud.Owned,
	})
	both["StringLike"]["aws:RequestTag/"+class] = "*"
	return []policyStatement{
		{
			Effect: "Allow", Action: []string{"iam:PassRole"}, Resource: []string{in.global("role" + nodeRole)},
			Condition: map[string]map[string]any{"StringEquals": {"iam:PassedToService": []string{"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}},
		},
		{
			Effect: "Allow", Action: []string{"iam:CreateInstanceProfile"}, Resource: profiles,
			Condition: ownedCondition("Request", name, class, map[string]any{"aws:Request" + region: in.m.Region, cluster: name}),
		},
		{Effect: "Allow", Action: []string{"iam:TagInstanceProfile"}, Resource: profiles, Condition: both},
		{
			Effect: "Allow", Resource: profiles,
			Action:    []string{"iam:AddRoleToInstanceProfile", "iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"},
			Condition: ownedCondition("Resource", name, class, map[string]any{"aws:Resource" + region: in.m.Region}),
		},
		{Effect: "Allow", Action: []string{"iam:GetInstanceProfile"}, Resource: profiles},
	}
}
