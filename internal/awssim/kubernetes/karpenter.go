package kubernetes

import (
	"path"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// The finalizers of Karpenter (https://karpenter.sh/docs/concepts/disruption and …/nodeclasses).
const (
	claimFinalizer = "karpenter.sh/termination"
	classFinalizer = "karpenter.k8s.aws/termination"
)

// karpenterPool is the tag of an instance, and the label of its Node, with the name of its NodePool.
const karpenterPool = "karpenter.sh/nodepool"

// karpenter is the controller of Karpenter in an EKS cluster.
type karpenter struct {
	*Service
	c    *eks.Cluster
	k    *kubesim.Cluster
	role *iam.Role // nil: pods of the controller have no credentials
}

// settleKarpenter does what Karpenter would do, if its Deployment runs and EKS Pod Identity is installed: it launches one instance at
// a time while pods wait for a Node, and terminates the instances of NodePools that are deleted.
func (svc *Service) settleKarpenter(c *eks.Cluster, k *kubesim.Cluster) {
	if len(k.All("EC2NodeClass")) == 0 || !k.Runs("karpenter") {
		return
	}
	k.Settle(svc.Now()) // pods are scheduled before it looks at them
	agent := c.Addons["eks-pod-identity-agent"]
	if agent == nil || !agent.Deleted.IsZero() || svc.Now().Before(agent.Ready) {
		return
	}
	in := karpenter{Service: svc, c: c, k: k}
	for _, d := range k.All("Deployment") {
		for _, p := range c.PodIdentities {
			if kubesim.Value(d, "metadata", "name") == "karpenter" && p.Namespace == kubesim.Value(d, "metadata", "namespace") && p.ServiceAccount == "karpenter" {
				in.role = svc.IAM.RoleOfARN(p.RoleARN)
			}
		}
	}
	in.terminate()
	for _, class := range k.All("EC2NodeClass") {
		if going := kubesim.Going(class); !going.IsZero() {
			in.dropClass(class)
			continue
		}
		if in.makeProfile(class) && k.Waiting() {
			in.launch(class)
		}
	}
}

// allowed reports whether the role of the controller may call an action on a resource.
func (in karpenter) allowed(action, resource string) bool {
	return in.IAM.Grants(in.role, action, resource)
}

func (in karpenter) profileName(class kubesim.Object) string {
	return in.c.Name + "_" + kubesim.Value(class, "metadata", "uid")
}

// makeProfile creates the instance profile of an EC2NodeClass. Karpenter needs the permission to pass the role of the class.
func (in karpenter) makeProfile(class kubesim.Object) bool {
	name, role := in.profileName(class), in.roleNamed(kubesim.Value(class, "spec", "role"))
	if in.IAM.ProfileExists(name) {
		return true
	}
	resource := in.IAM.ARN("instance-profile", "", name)
	if role == nil || !in.allowed("iam:PassRole", in.IAM.ARN("role", role.Path, role.Name)) {
		return false
	}
	for _, action := range []string{"iam:GetInstanceProfile", "iam:CreateInstanceProfile", "iam:TagInstanceProfile", "iam:AddRoleToInstanceProfile"} {
		if !in.allowed(action, resource) {
			return false
		}
	}
	p := &iam.InstanceProfile{Name: name, Tags: map[string]string{
		"kubernetes.io/cluster/" + in.c.Name: "owned", "eks:eks-cluster-name": in.c.Name, "topology.kubernetes.io/region": in.Region,
		"karpenter.k8s.aws/ec2nodeclass": kubesim.Value(class, "metadata", "name"),
	}}
	if in.IAM.MakeProfile(p, in.Now()) != nil || in.IAM.SetRole(p, role.Name) != nil {
		return false // it tries again
	}
	in.k.Finalize(in.Now(), class, classFinalizer)
	return true
}

func (in karpenter) roleNamed(name string) *iam.Role {
	role, err := in.IAM.Role(&name)
	if err != nil {
		return nil
	}
	return role
}

// selected reports whether tags match one of the selector terms of an EC2NodeClass, such as subnetSelectorTerms.
func selected(class kubesim.Object, terms string, tags map[string]string) bool {
	spec, _ := class["spec"].(kubesim.Object)
	list, _ := spec[terms].([]any)
	return slices.ContainsFunc(list, func(term any) bool {
		of, _ := term.(kubesim.Object)
		wanted, _ := of["tags"].(kubesim.Object)
		for k, v := range wanted {
			if value, has := tags[k]; !has || v != "*" && v != value {
				return false
			}
		}
		return len(wanted) > 0
	})
}

// launch launches an instance for a NodePool of a class, unless one is on its way.
func (in karpenter) launch(class kubesim.Object) {
	pool := in.poolOf(kubesim.Value(class, "metadata", "name"))
	if pool == "" || slices.ContainsFunc(in.instances(), func(i *ec2.Instance) bool { return i.Boot == nil || i.Boot.Joined.IsZero() }) {
		return
	}
	var subnets, groups []string
	for _, s := range in.EC2.Subnets() {
		if selected(class, "subnetSelectorTerms", s.Tags) {
			subnets = append(subnets, s.ID)
		}
	}
	for _, g := range in.EC2.SecurityGroups() {
		if selected(class, "securityGroupSelectorTerms", g.Tags) {
			groups = append(groups, g.ID)
		}
	}
	image, known := in.EKS.NodeImage(in.c)
	parameter := "arn:" + in.Partition() + ":ssm:" + in.Region + "::parameter/aws/service/eks/optimized-ami"
	if !known || len(subnets) == 0 || len(groups) == 0 || !in.allowed("eks:DescribeCluster", in.c.ARN) || !in.allowed("ssm:GetParameter", parameter) ||
		!in.allowed("sqs:ReceiveMessage", in.RegionalARN("sqs", in.c.Name)) {
		return
	}
	ec2ARN := func(resource string) string { return in.RegionalARN("ec2", resource) }
	for _, r := range []string{ec2ARN("subnet/" + subnets[0]), ec2ARN("security-group/" + groups[0]), ec2ARN("instance/*"), ec2ARN("launch-template/*")} {
		if !in.allowed("ec2:CreateFleet", r) || !in.allowed("ec2:RunInstances", r) {
			return
		}
	}
	out, err := in.EC2.RunInstances(&awsec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), ImageId: &image, InstanceType: ec2types.InstanceTypeM6iLarge, SubnetId: &subnets[0],
		SecurityGroupIds: groups, IamInstanceProfile: &ec2types.IamInstanceProfileSpecification{Name: aws.String(in.profileName(class))},
	})
	if err != nil {
		return // it tries again
	}
	i := in.EC2.Instance(*out.Instances[0].InstanceId)
	for k, v := range map[string]string{"kubernetes.io/cluster/" + in.c.Name: "owned", "eks:eks-cluster-name": in.c.Name, karpenterPool: pool} {
		i.Tags[k] = v
	}
	in.k.Put(in.Now(), kubesim.Object{
		"apiVersion": "karpenter.sh/v1",
		"kind":       "NodeClaim",
		"metadata":   kubesim.Object{"name": pool + "-" + i.ID, "labels": kubesim.Object{karpenterPool: pool}, "finalizers": []any{claimFinalizer}},
		"spec": kubesim.Object{
			"nodeClassRef": kubesim.Object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": kubesim.Value(class, "metadata", "name")},
		},
		"status": kubesim.Object{"providerID": "aws:///" + in.EC2.Subnet(i.Subnet).Zone + "/" + i.ID},
	})
}

// poolOf returns the name of the NodePool with a class; "" if there is none.
func (in karpenter) poolOf(class string) string {
	for _, p := range in.k.All("NodePool") {
		if kubesim.Going(p).IsZero() && kubesim.Value(p, "spec", "template", "spec", "nodeClassRef", "name") == class {
			return kubesim.Value(p, "metadata", "name")
		}
	}
	return ""
}

// instances lists the instances that Karpenter has launched in the cluster and not terminated.
func (in karpenter) instances() (list []*ec2.Instance) {
	for i := range in.EC2.Instances() {
		if i.Tags[karpenterPool] != "" && i.Tags["eks:eks-cluster-name"] == in.c.Name && i.Terminating.IsZero() {
			list = append(list, i)
		}
	}
	return list
}

// terminate terminates the instances of NodeClaims that are deleted, or whose NodePool is.
func (in karpenter) terminate() {
	pools := map[string]bool{}
	for _, p := range in.k.All("NodePool") {
		pools[kubesim.Value(p, "metadata", "name")] = kubesim.Going(p).IsZero()
	}
	for _, claim := range in.k.All("NodeClaim") {
		pool := kubesim.Value(claim, "metadata", "labels", karpenterPool)
		if pool == "" || kubesim.Going(claim).IsZero() && pools[pool] {
			continue
		}
		id := path.Base(kubesim.Value(claim, "status", "providerID"))
		switch i := in.EC2.Instance(id); {
		case i != nil && i.Terminating.IsZero():
			if in.allowed("ec2:TerminateInstances", in.RegionalARN("ec2", "instance/"+id)) {
				in.EC2.Terminate(id)
			}
		case i == nil || i.State(in.Now()) == ec2types.InstanceStateNameTerminated:
			in.k.Drop(claim)
		}
	}
}

// dropClass deletes the instance profile of a class that is deleted, after its last NodeClaim.
func (in karpenter) dropClass(class kubesim.Object) {
	if len(in.k.All("NodeClaim")) > 0 || !in.allowed("iam:DeleteInstanceProfile", in.IAM.ARN("instance-profile", "", in.profileName(class))) {
		return
	}
	in.IAM.RemoveProfile(in.profileName(class))
	in.k.Release(in.Now(), class, classFinalizer)
}
