package eks

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// AutoMode is EKS Auto Mode: its compute, its load balancing and its block storage are on or off together.
type AutoMode struct {
	NodePools []string // of EKS: "general-purpose", "system"
	NodeRole  string   // ARN; "" without node pools of EKS
}

// autoRequest are the three settings of Auto Mode in a call.
type autoRequest struct {
	compute *types.ComputeConfigRequest
	network *types.KubernetesNetworkConfigRequest
	storage *types.StorageConfigRequest
}

// given reports whether a call has one of the settings.
func (r autoRequest) given() bool {
	return r.compute != nil || r.storage != nil || r.network != nil && r.network.ElasticLoadBalancing != nil
}

// enabled reports whether a call turns Auto Mode on. The text is that of EKS
// (https://github.com/kubernetes-sigs/cluster-api-provider-aws/issues/5278).
func (r autoRequest) enabled() (bool, error) {
	on := []bool{
		r.compute != nil && aws.ToBool(r.compute.Enabled),
		r.network != nil && r.network.ElasticLoadBalancing != nil && aws.ToBool(r.network.ElasticLoadBalancing.Enabled),
		r.storage != nil && r.storage.BlockStorage != nil && aws.ToBool(r.storage.BlockStorage.Enabled),
	}
	if on[0] != on[1] || on[1] != on[2] {
		return false, invalid(
			"For EKS Auto Mode, please ensure that all required configs, including computeConfig, kubernetesNetworkConfig, and blockStorage are all either fully enabled or fully disabled.",
		)
	}
	return on[0], nil
}

// autoClusterPolicies are the managed policies that the role of an Auto Mode cluster has ("Amazon EKS Auto Mode cluster IAM role",
// EKS user guide). Policies of one's own with the same permissions are allowed there; they are not looked into here.
func autoClusterPolicies() []string {
	return []string{
		"AmazonEKSClusterPolicy", "AmazonEKSComputePolicy", "AmazonEKSBlockStoragePolicy", "AmazonEKSLoadBalancingPolicy", "AmazonEKSNetworkingPolicy",
	}
}

// autoMode validates the settings of Auto Mode for a cluster, and returns it; nil if it is off. "If the compute capability is
// disabled, the request must not include values for the nodeRoleArn or nodePools fields" (aws/aws-cdk, pull request 33373). Texts
// other than that of enabled are not verified; that EKS looks at the policies is not, either.
func (svc *Service) autoMode(c *Cluster, r autoRequest) (*AutoMode, error) {
	on, err := r.enabled()
	switch {
	case err != nil:
		return nil, err
	case !on && r.compute != nil && (len(r.compute.NodePools) > 0 || r.compute.NodeRoleArn != nil):
		return nil, invalid("nodePools and nodeRoleArn cannot be specified when computeConfig is disabled")
	case !on:
		return nil, nil
	case c.Authentication == string(types.AuthenticationModeConfigMap): // "Learn about identity and access in EKS Auto Mode"
		return nil, invalid("EKS Auto Mode requires the authentication mode API or API_AND_CONFIG_MAP")
	}
	m := &AutoMode{NodePools: slices.Sorted(slices.Values(r.compute.NodePools)), NodeRole: aws.ToString(r.compute.NodeRoleArn)}
	for i, pool := range m.NodePools {
		if pool != "general-purpose" && pool != "system" || i > 0 && m.NodePools[i-1] == pool {
			return nil, invalid("unsupported or duplicate node pool %s", pool)
		}
	}
	if (len(m.NodePools) > 0) != (m.NodeRole != "") {
		return nil, invalid("nodePools and nodeRoleArn must be specified together")
	}
	role := svc.iam.RoleOfARN(c.RoleARN)
	if role == nil || !svc.letsAssume(role, "eks.amazonaws.com") {
		return nil, invalid("The trust policy of the cluster role must allow sts:AssumeRole and sts:TagSession for EKS Auto Mode")
	}
	if missing := lacking(role.Attached, autoClusterPolicies()); missing != "" {
		return nil, invalid("The cluster role lacks the policy %s, which EKS Auto Mode requires", missing)
	}
	if m.NodeRole == "" {
		return m, nil
	}
	node := svc.iam.RoleOfARN(m.NodeRole)
	if node == nil || !svc.Visible(node.Born) {
		return nil, invalid("The node role %s does not exist", m.NodeRole)
	}
	// "Amazon EKS Auto Mode node IAM role", EKS user guide; the older policies contain these.
	if lacking(node.Attached, []string{"AmazonEKSWorkerNodeMinimalPolicy"}) != "" && lacking(node.Attached, []string{"AmazonEKSWorkerNodePolicy"}) != "" {
		return nil, invalid("The node role lacks the policy AmazonEKSWorkerNodeMinimalPolicy")
	}
	return m, nil
}

// lacking returns the first managed policy that a role does not have; "" if it has all, or a policy that is not AWS's.
func lacking(attached, want []string) string {
	if slices.ContainsFunc(attached, func(arn string) bool {
		return !strings.Contains(arn, ":iam::aws:policy/") || strings.HasSuffix(arn, "/AdministratorAccess")
	}) {
		return ""
	}
	for _, name := range want {
		if !slices.ContainsFunc(attached, func(arn string) bool { return strings.HasSuffix(arn, "/"+name) }) {
			return name
		}
	}
	return ""
}

// changeAutoMode turns Auto Mode on or off, or changes its node pools. "This value cannot be changed after the compute capability of
// EKS Auto Mode is enabled" (nodeRoleArn of ComputeConfigRequest, EKS API reference).
func (svc *Service) changeAutoMode(c *Cluster, r autoRequest) (types.UpdateType, Update, error) {
	const kind = types.UpdateTypeAutoModeUpdate
	if r.network != nil {
		if err := core.Only("UpdateClusterConfig", r.network, "ElasticLoadBalancing"); err != nil {
			return kind, Update{}, err
		}
	}
	m, err := svc.autoMode(c, r)
	switch {
	case err != nil:
		return kind, Update{}, err
	case m == nil && c.Auto == nil,
		m != nil && c.Auto != nil && slices.Equal(m.NodePools, c.Auto.NodePools) && m.NodeRole == c.Auto.NodeRole:
		return kind, Update{}, invalid("Cluster is already at the desired configuration of EKS Auto Mode")
	case m != nil && c.Auto != nil && c.Auto.NodeRole != "" && m.NodeRole != "" && m.NodeRole != c.Auto.NodeRole:
		return kind, Update{}, invalid("nodeRoleArn cannot be changed after the compute capability of EKS Auto Mode is enabled")
	}
	return kind, Update{AutoMode: &AutoChange{m}}, nil
}

// AutoChange is a change of Auto Mode; nil turns it off.
type AutoChange struct{ To *AutoMode }

// setAutoMode sets Auto Mode. The role of nodes gets an access entry ("Learn about identity and access in EKS Auto Mode"). EKS
// terminates its instances when Auto Mode is turned off ("Disable EKS Auto Mode").
func (svc *Service) setAutoMode(c *Cluster, m *AutoMode) {
	c.Auto = m
	if m == nil {
		svc.endAutoNodes(c)
		return
	}
	if m.NodeRole != "" {
		svc.letIn(c, m.NodeRole, "EC2")
	}
}

// autoOut returns the settings of Auto Mode.
func (c *Cluster) autoOut(to *types.Cluster) {
	on := c.Auto != nil
	to.ComputeConfig = &types.ComputeConfigResponse{Enabled: &on}
	to.StorageConfig = &types.StorageConfigResponse{BlockStorage: &types.BlockStorage{Enabled: aws.Bool(on)}}
	to.KubernetesNetworkConfig.ElasticLoadBalancing = &types.ElasticLoadBalancing{Enabled: aws.Bool(on)}
	if on {
		to.ComputeConfig.NodePools, to.ComputeConfig.NodeRoleArn = slices.Clone(c.Auto.NodePools), core.Text(c.Auto.NodeRole)
	}
}

// autoPoolTag is the tag of an instance of Auto Mode with the name of its node pool.
const autoPoolTag = "eks:kubernetes-node-pool-name"

// OfAutoMode reports whether an instance with these tags is one of Auto Mode.
func OfAutoMode(tags map[string]string) bool { return tags[autoPoolTag] != "" }

// AutoNode launches an instance of the node pool general-purpose, as Auto Mode does for pods that no node takes. Here it is of one
// type, in the first subnet. Only EKS may change or terminate it ("Learn about Amazon EKS Auto Mode Managed instances").
func (svc *Service) AutoNode(c *Cluster) {
	if c.Auto == nil || !c.Deleted.IsZero() || !slices.Contains(c.Auto.NodePools, "general-purpose") || len(svc.autoNodes(c)) > 0 {
		return
	}
	image, known := svc.NodeImage(c) // those of AWS are Bottlerocket variants that are not published
	if !known {
		return
	}
	out, err := svc.ec2.RunInstances(&awsec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), ImageId: &image, InstanceType: ec2types.InstanceTypeM6iLarge, SubnetId: &c.Subnets[len(c.Subnets)-1],
		SecurityGroupIds: []string{c.Group}, UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("eks auto mode"))),
	})
	if err != nil {
		return // Auto Mode tries again
	}
	i := svc.ec2.Instance(*out.Instances[0].InstanceId)
	for k, v := range map[string]string{
		"kubernetes.io/cluster/" + c.Name: "owned", "aws:eks:cluster-name": c.Name, "eks:eks-cluster-name": c.Name, autoPoolTag: "general-purpose",
	} {
		i.Tags[k] = v
	}
	i.Operator = "eks.amazonaws.com"
}

// autoNodes lists the IDs of the instances of Auto Mode that are not being terminated.
func (svc *Service) autoNodes(c *Cluster) (ids []string) {
	for i := range svc.ec2.Instances() {
		if OfAutoMode(i.Tags) && i.Tags["eks:eks-cluster-name"] == c.Name && i.Terminating.IsZero() {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

func (svc *Service) endAutoNodes(c *Cluster) {
	for _, id := range svc.autoNodes(c) {
		svc.ec2.Terminate(id)
	}
}
