package eks

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/autoscaling"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Check implements graph.Checked: EKS refuses instance types that do not exist, or that have
// another architecture than the images, and a new group with an image of its own, but without a
// launch template.
func (g *NodeGroup) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if refusal, err = checkEntry(ctx, c, g.Cluster, g.Role, EntryTypeOf(g.ImageType)); refusal != "" || err != nil {
		return refusal, err
	}
	for _, check := range []func(context.Context, *cloud.Clients) (string, error){
		g.checkAbsent, g.checkRelease, g.checkKey, g.checkSubnets, g.checkReservation, g.checkTenancy,
	} {
		if refusal, err = check(ctx, c); refusal != "" || err != nil {
			return refusal, err
		}
	}
	if refusal, err = autoscaling.CheckHooks(ctx, c, g.Hooks); refusal != "" || err != nil {
		return refusal, err
	}
	switch {
	case g.ImageType == string(types.AMITypesCustom) && g.Template == nil:
		return g.checkForeignTemplate(ctx, c)
	case g.ImageType == "" || g.ImageType == string(types.AMITypesCustom):
		return "", nil
	}
	return g.checkInstanceTypes(ctx, c)
}

func (g *NodeGroup) checkAbsent(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	return ec2.CheckAbsent(ctx, c, g.Content, g.Find, func(have *NodeGroupState) bool {
		return g.added(have) == 0 && !g.Diff(have).Has("version", "releaseVersion", "launchTemplate.version")
	})
}

// checkReservation looks at the capacity reservation in which the nodes are launched.
func (g *NodeGroup) checkReservation(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	return g.Content.CheckReservation(ctx, c, g.Subnets, g.Desired > 0)
}

// checkTenancy looks at the tenancy of the VPC in which the nodes are launched.
func (g *NodeGroup) checkTenancy(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if g.Desired == 0 {
		return "", nil
	}
	return g.Content.CheckTenancy(ctx, c, g.InstanceTypes, g.Subnets)
}

// checkSubnets looks for subnets whose nodes cannot join, or with which EKS does not create a group: "Managed node
// group error codes", Ec2SubnetInvalidConfiguration, in the EKS user guide.
func (g *NodeGroup) checkSubnets(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if g.Desired == 0 {
		return "", nil
	}
	for _, s := range g.Subnets {
		if refusal, err = ec2.NoWayOut(ctx, c, s, nil); refusal != "" || err != nil {
			return refusal, err
		}
	}
	return "", nil
}

// Addresses implements ec2.AddressUser.
func (g *NodeGroup) Addresses(_ plan.Step, have graph.State) ec2.AddressUse {
	return ec2.AddressUse{Subnets: g.Subnets, Takes: int(g.added(have))}
}

// checkKey looks for the key pair for SSH.
func (g *NodeGroup) checkKey(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if g.SSHKey == "" {
		return "", nil
	}
	out, err := c.EC2.DescribeKeyPairs(ctx, &awsec2.DescribeKeyPairsInput{Filters: []ec2types.Filter{cloud.Filter("key-name", g.SSHKey)}})
	if err != nil || len(out.KeyPairs) > 0 {
		return "", err
	}
	return fmt.Sprintf("remoteAccess: there is no key pair %q in this account and region: create it, or change sshKeyName", g.SSHKey), nil
}

func (g *NodeGroup) checkInstanceTypes(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	names := g.typeNames()
	if len(names) == 0 {
		return "", nil
	}
	found, err := ec2.InstanceTypes(ctx, c, names)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		t := found[name]
		if t.VCPUs == 0 && t.Zones != nil {
			return fmt.Sprintf("there is no instance type %s in %s", name, c.Region), nil
		}
		if g.Content != nil {
			if refusal := t.TooManyVolumes(name, len(g.Content.Spec.NonRootVolumes), 1); refusal != "" {
				return "awsLaunchTemplate.nonRootVolumes: " + refusal, nil
			}
		}
		if refusal := g.unfit(name, t); refusal != "" {
			return refusal, nil
		}
	}
	return "", nil
}

// unfit says why nodes of an instance type cannot run the images of the group; "" if they can, or if the type is not known.
func (g *NodeGroup) unfit(name string, t ec2.InstanceType) string {
	want := string(ec2types.ArchitectureTypeX8664)
	if strings.Contains(g.ImageType, "ARM_64") {
		want = string(ec2types.ArchitectureTypeArm64)
	}
	switch {
	case t.VCPUs == 0:
	case t.Architecture != want:
		have := append([]string{t.Architecture}, t.Others...)
		return fmt.Sprintf("the instance type %s is %s, and the images of amiType %s are %s: change one of them", name, cmp.Or(have...), g.ImageType, want)
	case t.GPU != nvidia && strings.HasPrefix(g.ImageType, "BOTTLEROCKET") && strings.Contains(g.ImageType, nvidia):
		// eksctl#7897: the image does not load its kernel modules
		return fmt.Sprintf("nodes do not join: the instance type %s has no GPU of NVIDIA, which the images of amiType %s need: change one of them", name, g.ImageType)
	case t.Xen && g.IPv6: // "Learn about IPv6 addresses to clusters, pods, and services", EKS user guide
		return fmt.Sprintf("nodes do not become ready: in an IPv6 cluster, pods get addresses on instances of the Nitro System only, which %s is not", name)
	}
	return ""
}

const nvidia = "NVIDIA"

// typeNames are the instance types of the group.
func (g *NodeGroup) typeNames() []string {
	if len(g.InstanceTypes) == 0 && g.Content != nil && g.Content.Spec.InstanceType != "" {
		return []string{g.Content.Spec.InstanceType}
	}
	return g.InstanceTypes
}

// Doubts implements graph.Doubted: EKS creates groups whose images have no drivers for the accelerators of an instance type, or
// drivers for others, or whose role may do too little ("Choose an optimal Amazon EC2 node instance type", "Use EKS-optimized accelerated AMIs for GPU
// instances", EKS user guide).
func (g *NodeGroup) Doubts(ctx context.Context, c *cloud.Clients) (warnings []string, err error) {
	lacks, none, err := g.lacks(ctx, c)
	if err != nil {
		return nil, err
	}
	if lacks != "" && !none {
		warnings = append(warnings, lacks)
	}
	names := g.typeNames()
	if len(names) == 0 || g.ImageType == "" || g.ImageType == string(types.AMITypesCustom) {
		return warnings, nil
	}
	found, err := ec2.InstanceTypes(ctx, c, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if w := mismatch(name, found[name], g.ImageType); w != "" {
			warnings = append(warnings, w)
		}
	}
	return warnings, nil
}

// mismatch says why an image does not fit the accelerators of an instance type; "" if it does.
func mismatch(name string, t ec2.InstanceType, image string) string {
	has := func(what string) bool { return strings.Contains(image, what) }
	old := strings.HasSuffix(image, "_GPU") // Amazon Linux 2 has one image for both
	switch {
	case t.VCPUs == 0:
	case (has(nvidia) || old && !t.Neuron) && t.GPU != nvidia:
		return fmt.Sprintf("the images of amiType %s are for GPUs of NVIDIA, and the instance type %s has none: EKS does not support it", image, name)
	case has("NEURON") && !t.Neuron:
		return fmt.Sprintf("the images of amiType %s are for AWS Inferentia and Trainium, and the instance type %s has none", image, name)
	case t.GPU == nvidia && !has(nvidia) && !old:
		return fmt.Sprintf(
			"the instance type %s has GPUs of NVIDIA, and the images of amiType %s have no driver: pods cannot use them unless something in the cluster, "+
				"such as the NVIDIA GPU Operator, installs it",
			name,
			image,
		)
	case t.Neuron && !has("NEURON") && !old && strings.HasPrefix(image, "AL"):
		return fmt.Sprintf("the instance type %s has AWS Inferentia or Trainium, and the images of amiType %s have no driver: pods cannot use it", name, image)
	}
	return ""
}

// checkForeignTemplate refuses to create a group whose image is in a launch template of another
// tool: only a group that exists has one.
func (g *NodeGroup) checkForeignTemplate(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if cluster, ok := g.Cluster.Found(); ok {
		have, err := NodeGroupByName(ctx, c, cluster.Name, g.Name)
		if err != nil || have != nil && have.Status != string(types.NodegroupStatusCreateFailed) {
			return "", err
		}
	}
	return "EKS cannot create a node group of amiType CUSTOM without an AMI: set spec.awsLaunchTemplate.ami.id", nil
}

// EntryTypeOf is the type of the access entry with which the nodes of a group join.
func EntryTypeOf(imageType string) string {
	if strings.HasPrefix(imageType, "WINDOWS") {
		return EntryOfWindows
	}
	return EntryOfLinux
}
