package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// settleEKS creates an API server for every active EKS cluster.
func (svc *Service) settleEKS() {
	for c := range svc.EKS.Clusters() {
		host := c.Host(svc.Region)
		k := svc.clusters[host]
		switch {
		case k == nil && c.Deleted.IsZero() && !c.Ready.After(svc.Now()):
			k = kubesim.New("v"+c.Version+".0", c.Ready)
			k.EKS, k.IPv6 = c.Name, c.Family == "ipv6"
			svc.clusters[host] = k
			if c.SelfManagedAddons {
				svc.installVPCCNI(k)
				putSystem(k, svc.Now(), systemWorkload("DaemonSet", "kube-proxy", "kube-proxy:v"+c.Version, kubesim.Object{"operator": "Exists"}))
			}
		case k != nil && !c.Deleted.IsZero():
			delete(svc.clusters, host)
		}
		if k == nil {
			continue
		}
		svc.settleAddons(c, k)
		k.OwnNetwork = c.Auto != nil
		k.Unauthorized = !svc.EKS.HasCredentials(c, "vpc-cni")
		if c.Auto != nil && k.Waiting() {
			svc.EKS.AutoNode(c)
		}
		svc.settleKubelets(c, k)
		svc.settleKarpenter(c, k)
	}
}

// The paths of the workloads of add-ons.
const (
	awsNode   = "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node"
	kubeProxy = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
	// ebsController is a Deployment.
	ebsController = "/apis/apps/v1/namespaces/kube-system/deployments/ebs-csi-controller"
)

// settleAddons installs the DaemonSets of add-ons, and deletes them with the add-ons, unless they
// are preserved ("Remove an Amazon EKS add-on from a cluster", EKS user guide).
func (svc *Service) settleAddons(c *eks.Cluster, k *kubesim.Cluster) {
	for name, path := range map[string]string{"vpc-cni": awsNode, "kube-proxy": kubeProxy, eks.EBSDriver: ebsController} {
		d := c.Addons[name]
		switch {
		case d == nil:
		case !d.Deleted.IsZero() && !d.Preserve:
			delete(k.Objects, path)
		case !d.Deleted.IsZero() || k.Get(path) != nil:
		case name == "vpc-cni":
			svc.installVPCCNI(k)
		case name == "kube-proxy":
			putSystem(k, svc.Now(), systemWorkload("DaemonSet", "kube-proxy", "kube-proxy:v"+c.Version, kubesim.Object{"operator": "Exists"}))
		case name == eks.EBSDriver:
			putSystem(k, svc.Now(), systemWorkload("Deployment", "ebs-csi-controller", "aws-ebs-csi-driver:"+d.Version))
		}
	}
	if d := c.Addons["vpc-cni"]; d != nil && d.Deleted.IsZero() && !svc.Now().Before(d.Ready) {
		svc.configureVPCCNI(k, d.Configuration)
	}
}

// configureVPCCNI sets the environment of the VPC CNI from the configuration of its add-on, once
// for each configuration.
func (svc *Service) configureVPCCNI(k *kubesim.Cluster, configuration string) {
	var given struct{ Env map[string]string }
	set, _ := k.Get(awsNode)["metadata"].(kubesim.Object)
	if err := yaml.Unmarshal([]byte(configuration), &given); err != nil || set == nil || set["kubesim"] == configuration || len(given.Env) == 0 {
		return
	}
	set["kubesim"] = configuration
	container := containerOf(k.Get(awsNode))
	env, _ := container["env"].([]any)
	for _, name := range core.SortedKeys(given.Env) {
		env = slices.DeleteFunc(env, func(x any) bool { e, _ := x.(kubesim.Object); return e["name"] == name })
		env = append(env, kubesim.Object{"name": name, "value": given.Env[name]})
	}
	container["env"] = env
}

// containerOf returns the first container of a workload.
func containerOf(workload kubesim.Object) kubesim.Object {
	spec, _ := workload["spec"].(kubesim.Object)
	template, _ := spec["template"].(kubesim.Object)
	pod, _ := template["spec"].(kubesim.Object)
	containers, _ := pod["containers"].([]any)
	if len(containers) == 0 {
		return kubesim.Object{}
	}
	first, _ := containers[0].(kubesim.Object)
	return first
}

// settingOf returns an environment variable of the VPC CNI.
func settingOf(k *kubesim.Cluster, name string) string {
	env, _ := containerOf(k.Get(awsNode))["env"].([]any)
	for _, x := range env {
		if e, ok := x.(kubesim.Object); ok && e["name"] == name {
			text, _ := e["value"].(string)
			return text
		}
	}
	return ""
}

// HasNetwork reports whether a cluster has a pod network.
func (svc *Service) HasNetwork(c *eks.Cluster) bool {
	k := svc.clusters[c.Host(svc.Region)]
	return k != nil && k.Network()
}

// HasServices reports whether pods of a cluster reach Services.
func (svc *Service) HasServices(c *eks.Cluster) bool {
	k := svc.clusters[c.Host(svc.Region)]
	return k != nil && k.Services()
}

// cutOff returns why a node cannot call the API server of its cluster. Without the private
// endpoint, the public one has to permit the addresses from which nodes reach the internet
// ("Cluster API server endpoint", EKS user guide). Without the images in ECR, no node joins
// ("Deploy private clusters with limited internet access").
func (svc *Service) cutOff(i *ec2.Instance, c *eks.Cluster) string {
	if !svc.EC2.ReachesAWS(i, "ecr.api") {
		return "the subnet " + i.Subnet + " has neither a way to the internet nor an endpoint for ECR"
	}
	if c.Private {
		return ""
	}
	from := svc.EC2.Egress(i)
	for _, text := range c.PublicCIDRs {
		block, err := netip.ParsePrefix(text)
		for _, address := range from {
			at, wrong := netip.ParseAddr(address)
			// Without blocks, EKS stores 0.0.0.0/0, and for IPv6 clusters also ::/0.
			if err == nil && wrong == nil && (block.Contains(at) || block.Bits() == 0 && c.Family == "ipv6") {
				return ""
			}
		}
	}
	return fmt.Sprintf("i/o timeout: the endpoint permits %s, and the node calls from %s", strings.Join(c.PublicCIDRs, ", "), strings.Join(from, ", "))
}

// HasJoined reports whether all nodes of a node group are Nodes of the cluster.
func (svc *Service) HasJoined(_ *eks.Cluster, g *eks.NodeGroup) bool {
	return !slices.ContainsFunc(g.Instances, func(id string) bool {
		i := svc.EC2.Instance(id)
		return i == nil || i.Boot == nil || i.Boot.Joined.IsZero() || i.Boot.Failed != ""
	})
}

// settleKubelets stops the Nodes whose kubelets are answered with 401, and starts those that are
// let in again.
func (svc *Service) settleKubelets(c *eks.Cluster, k *kubesim.Cluster) {
	if c.Authentication == string(types.AuthenticationModeConfigMap) || len(k.Joined) == 0 {
		return
	}
	for i := range svc.EC2.Instances() {
		if i.Boot == nil || i.Boot.Joined.IsZero() || i.Boot.Failed != "" || svc.eksOf(i) != c {
			continue
		}
		if why := c.LocksOut(svc.roleOf(i, c)); why != "" {
			k.Refuse(svc.Now(), i.Boot.Node)
		} else {
			k.Admit(svc.Now(), i.Boot.Node)
		}
	}
}

// roleOf returns the ARN of the role of a node.
func (svc *Service) roleOf(i *ec2.Instance, c *eks.Cluster) string {
	if g := c.NodeGroups[i.Tags["eks:nodegroup-name"]]; g != nil {
		return g.RoleARN
	}
	if c.Auto != nil && eks.OfAutoMode(i.Tags) {
		return c.Auto.NodeRole
	}
	role := svc.IAM.ProfileRole(i.Profile)
	for arn := range c.Access {
		if strings.HasSuffix(arn, "/"+role) && role != "" {
			return arn
		}
	}
	return ""
}

// installVPCCNI installs the VPC CNI, as EKS does once for a new cluster, and as an add-on.
func (svc *Service) installVPCCNI(k *kubesim.Cluster) {
	const rbac = "rbac.authorization.k8s.io/v1"
	now := svc.Now()
	putSystem(k, now, systemWorkload("DaemonSet", "aws-node", "amazon-k8s-cni:v1.20.4", kubesim.Object{"operator": "Exists"}))
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		k.Put(now, kubesim.Object{"apiVersion": rbac, "kind": kind, "metadata": kubesim.Object{"name": "aws-node"}})
	}
	k.Put(now, kubesim.Object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": kubesim.Object{"name": "eniconfigs.crd.k8s.amazonaws.com"},
		"spec": kubesim.Object{
			"group": "crd.k8s.amazonaws.com", "scope": "Cluster", "names": kubesim.Object{"kind": "ENIConfig", "plural": "eniconfigs"},
			"versions": []any{kubesim.Object{"name": "v1alpha1", "served": true, "storage": true}},
		},
	})
}

// eksOf returns the EKS cluster of an instance, by its tag.
func (svc *Service) eksOf(i *ec2.Instance) *eks.Cluster {
	for c := range svc.EKS.Clusters() {
		if i.Tags["kubernetes.io/cluster/"+c.Name] != "" && c.Deleted.IsZero() {
			return c
		}
	}
	return nil
}

// keptOut returns why EKS rejects a machine: its role is neither in an access entry nor
// in the ConfigMap aws-auth, depending on the authentication mode.
func (svc *Service) keptOut(i *ec2.Instance, k *kubesim.Cluster) string {
	c := svc.EKS.ClusterNamed(k.EKS)
	if c == nil {
		return ""
	}
	if why := svc.cutOff(i, c); why != "" {
		return why
	}
	if why := svc.nodeadmRefused(i, c.Version); why != "" {
		return why
	}
	if g := c.NodeGroups[i.Tags["eks:nodegroup-name"]]; g != nil {
		// "Amazon EKS node IAM role", EKS user guide: nodeadm and the kubelet call APIs, and pull their images from ECR.
		if r := svc.IAM.RoleOfARN(g.RoleARN); r != nil && len(r.Attached)+len(r.Inline) == 0 {
			return "the role " + r.Name + " of the nodes has no policies"
		}
	}
	if why := c.LocksOut(svc.roleOf(i, c)); why != "" || i.Tags["eks:nodegroup-name"] != "" || eks.OfAutoMode(i.Tags) { // EKS lets its own nodes in
		return why
	}
	role := svc.IAM.ProfileRole(i.Profile)
	for arn := range c.Access {
		if c.Authentication != string(types.AuthenticationModeConfigMap) && strings.HasSuffix(arn, "/"+role) {
			return ""
		}
	}
	mapped, _ := json.Marshal(k.Get("/api/v1/namespaces/kube-system/configmaps/aws-auth")) // the simulator wrote it
	if c.Authentication != string(types.AuthenticationModeApi) && strings.Contains(string(mapped), "/"+role) {
		return ""
	}
	return "the role " + role + " is not let into the cluster"
}

// bootEKS simulates the boot of a machine that joins an EKS cluster.
func (svc *Service) bootEKS(i *ec2.Instance, c *eks.Cluster) (*ec2.Boot, error) {
	b := &ec2.Boot{Host: c.Host(svc.Region), Version: "v" + c.Version + ".0-eks-1234567", Labels: map[string]string{}}
	svc.networkOf(i, b)
	if g := i.Tags["eks:nodegroup-name"]; g != "" {
		b.Labels["eks.amazonaws.com/nodegroup"] = g
		if why := svc.idle(i, c.NodeGroups[g]); why != "" {
			return nil, errors.New(why)
		}
		return b, nil
	}
	if eks.OfAutoMode(i.Tags) {
		b.Labels["eks.amazonaws.com/compute-type"], b.Labels["karpenter.sh/nodepool"] = "auto", "general-purpose"
		return b, nil
	}
	if pool := i.Tags[karpenterPool]; pool != "" {
		b.Labels[karpenterPool] = pool
	}
	if !svc.IAM.ProfileExists(i.Profile) {
		return nil, errors.New("the instance has no profile")
	}
	if image := svc.EC2.Image(i.Image); image != nil && strings.HasPrefix(image.Name, "capa-ami-") {
		return nil, errors.New("the image " + image.Name + " has neither nodeadm nor /etc/eks/bootstrap.sh: command not found")
	}
	return b, nil
}

// idle says why a node of a group with an image of its own does nothing without user data, which EKS does not add then: the images
// of EKS read the name of the cluster there, and have no other source ("Specifying an AMI" in "Customize managed nodes with launch templates",
// EKS user guide). Any other image may join by itself, except for those of Cluster API.
func (svc *Service) idle(i *ec2.Instance, g *eks.NodeGroup) string {
	image := svc.EC2.Image(i.Image)
	if g == nil || g.Kind != string(types.AMITypesCustom) || i.UserData != "" || image == nil {
		return ""
	}
	for _, known := range []string{"amazon-eks-", "bottlerocket-aws-k8s-", "ubuntu-eks", "capa-ami-"} {
		if strings.HasPrefix(image.Name, known) {
			return "the image " + image.Name + " has no user data: nothing runs nodeadm or bootstrap.sh"
		}
	}
	return ""
}

// networkOf sets how many pods a node takes, and from which subnet they have their addresses. Both
// follow from the settings of the VPC CNI at its start, and stay ("Assign more IP addresses to
// Amazon EKS nodes with prefixes", "Deploy Pods in alternate subnets with custom networking", EKS
// user guide). The number without prefixes is that of a t3.medium.
func (svc *Service) networkOf(i *ec2.Instance, b *ec2.Boot) {
	b.MaxPods, b.PodSubnet = 17, i.Subnet
	k := svc.clusters[b.Host]
	if k == nil {
		return
	}
	if settingOf(k, "ENABLE_PREFIX_DELEGATION") == "true" {
		b.MaxPods = 110
	}
	if settingOf(k, "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG") == "true" {
		config := k.Get("/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/" + i.Zone)
		b.PodSubnet = kubesim.Value(config, "spec", "subnet") // "": pods get no address
	}
}
