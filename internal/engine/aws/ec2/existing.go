package ec2

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// groupsPerInterface is how many security groups an interface has, the quota L-2AFB9258 without a
// raise ("Amazon VPC quotas").
const groupsPerInterface = 5

// AnyVPC permits groups of every VPC: the source of a rule may be in one that is peered.
const AnyVPC = "any"

// peerable returns AnyVPC for a VPC that exists. One that the run creates is peered with no other VPC.
func peerable(vpc string) string {
	if vpc == "" {
		return ""
	}
	return AnyVPC
}

// MissingSources is MissingGroups for groups that are sources of rules for machines in the subnets.
func MissingSources(ctx context.Context, c *cloud.Clients, subnets []*graph.Ref[SubnetState], ids []string) (string, error) {
	vpc := AnyVPC
	for _, s := range subnets {
		vpc = peerable(vpcOf(s))
	}
	return MissingGroups(ctx, c, vpc, ids)
}

// MissingGroups says which of the security groups that a manifest names does not exist, or is in
// another VPC than the machines; "" if all are there. vpc is "" if the VPC does not exist yet, in
// which then none of them can be; AnyVPC permits groups of other VPCs.
func MissingGroups(ctx context.Context, c *cloud.Clients, vpc string, ids []string) (string, error) {
	if len(ids) == 0 {
		return "", nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	all, err := cloud.Remember(ctx, c, "security groups "+strings.Join(ids, " "), func(ctx context.Context) ([]types.SecurityGroup, error) {
		var found []types.SecurityGroup
		p := ec2.NewDescribeSecurityGroupsPaginator(c.EC2, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{cloud.Filter("group-id", ids...)}})
		for ctx := cloud.Listing(ctx); p.HasMorePages(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			found = append(found, page.SecurityGroups...)
		}
		return found, nil
	})
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		i := slices.IndexFunc(all, func(g types.SecurityGroup) bool { return aws.ToString(g.GroupId) == id })
		switch {
		case i < 0:
			return fmt.Sprintf("the security group %s does not exist in this account and region: correct the ID", id), nil
		case vpc == AnyVPC:
		case vpc == "":
			return fmt.Sprintf(
				"the security group %s is in the VPC %s, and the run creates another one: remove it, or use that VPC",
				id,
				aws.ToString(all[i].VpcId),
			), nil
		case aws.ToString(all[i].VpcId) != vpc:
			return fmt.Sprintf("the security group %s is in the VPC %s, and the cluster in %s: use a group of that VPC", id, aws.ToString(all[i].VpcId), vpc), nil
		}
	}
	return "", nil
}

// KnownVPC returns the ID of a VPC that exists; "" for one that does not exist yet.
func KnownVPC(vpc *graph.Ref[VPCState]) string {
	if vpc == nil {
		return ""
	}
	state, ok := vpc.Found()
	if !ok {
		return ""
	}
	return state.ID
}

// vpcOf returns the VPC of the machine's subnet; "" if it does not exist yet.
func vpcOf(subnet *graph.Ref[SubnetState]) string {
	if subnet == nil {
		return ""
	}
	state, _ := subnet.Found()
	return state.VPC
}

// CheckDeletion implements graph.CheckedDeletion.
func (i *Instance) CheckDeletion(context.Context, *cloud.Clients) (refusal string, err error) {
	return i.Stays, nil
}

// Check implements graph.Checked: EC2 does not launch a machine with groups or interfaces that do not
// exist, or with volumes that do not fit its image.
func (i *Instance) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if refusal := cmp.Or(Absent(i.Needs()), i.checkVolumes(), i.withoutCredentials(), refusalOf(ctx, c, i.Boot)); refusal != "" {
		return refusal, nil
	}
	var checks []check
	if i.Typed {
		checks = append(checks, i.checkType)
	}
	checks = append(
		checks,
		i.checkRole,
		i.checkImage,
		i.checkTenancy,
		i.checkPlacement,
		i.checkInterfaces,
		i.checkKeys,
		i.checkReservation,
		i.checkHost,
		i.noWayOut,
		i.checkGroups,
	)
	return firstRefusal(ctx, c, checks)
}

// check asks AWS whether it would accept something: refusal is "" if nothing is against it.
type check func(ctx context.Context, c *cloud.Clients) (refusal string, err error)

// firstRefusal returns the first refusal, or the first error.
func firstRefusal(ctx context.Context, c *cloud.Clients, checks []check) (refusal string, err error) {
	for _, ask := range checks {
		if refusal, err = ask(ctx, c); refusal != "" || err != nil {
			return refusal, err
		}
	}
	return "", nil
}

// checkGroups checks the security groups that the manifest names.
func (i *Instance) checkGroups(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	ids := givenGroups(i)
	if refusal, err := tooManyGroups(ctx, c, len(i.Groups)+len(ids)); refusal != "" || err != nil {
		return refusal, err
	}
	return MissingGroups(ctx, c, vpcOf(i.Subnet), ids)
}

// tooManyGroups compares the number of groups of an interface with the quota of the account.
func tooManyGroups(ctx context.Context, c *cloud.Clients, n int) (refusal string, err error) {
	if n <= groupsPerInterface {
		return "", nil
	}
	const service, code = "vpc", "L-2AFB9258"
	out, err := cloud.Remember(ctx, c, "quota "+code, func(ctx context.Context) (*servicequotas.GetServiceQuotaOutput, error) {
		return c.Quotas.GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String(service), QuotaCode: aws.String(code)})
	})
	limit := groupsPerInterface
	switch {
	case cloud.Is(err, "NoSuchResourceException"):
	case err != nil:
		return "", err
	case out.Quota != nil && out.Quota.Value != nil:
		limit = int(*out.Quota.Value)
	}
	if n <= limit {
		return "", nil
	}
	return fmt.Sprintf(
		"additionalSecurityGroups: a machine would have %d security groups, and %s allows %d for each network interface: remove some, or request a higher quota (%s %s)",
		n,
		c.Region,
		limit,
		service,
		code,
	), nil
}

// givenGroups lists the groups of a machine that the manifest names.
func givenGroups(i *Instance) (ids []string) {
	for _, g := range i.Spec.AdditionalSecurityGroups {
		if g.ID != nil {
			ids = append(ids, *g.ID)
		}
	}
	return ids
}

// withoutCredentials says that a machine has no role with which it fetches its boot data.
func (i *Instance) withoutCredentials() string {
	if name := i.StoredAs(); i.EKS != nil || i.Spec.IAMInstanceProfile != "" || name == "" || i.Spec.Ignition != nil {
		return ""
	}
	return "the machine has no instance profile, so no AWS credentials with which it fetches its boot data: set iamInstanceProfile, for example to nodes.cluster-api-provider-aws.sigs.k8s.io, or cloudInit.insecureSkipSecretsManager"
}

// checkRole refuses a role that EC2 may not assume, if the machine needs credentials to join: to fetch its boot data, or for the API of EKS. A profile
// that cannot be read is no objection.
func (i *Instance) checkRole(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if i.Spec.IAMInstanceProfile == "" || i.EKS == nil && i.StoredAs() == "" && i.Spec.Ignition == nil {
		return "", nil
	}
	out, err := InstanceProfile(ctx, c, i.Spec.IAMInstanceProfile)
	if err != nil {
		return "", nil //nolint:nilerr // the lookup of the profile says what is wrong with it
	}
	for _, r := range out.InstanceProfile.Roles {
		if why := iam.DistrustsMachines(r); why != "" {
			return fmt.Sprintf("iamInstanceProfile: machines with the instance profile %s get no credentials, and do not join: %s", i.Spec.IAMInstanceProfile, why), nil
		}
	}
	return "", nil
}

// checkType looks for the instance type, which placement has not done.
func (i *Instance) checkType(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	found, err := InstanceTypes(ctx, c, []string{i.Spec.InstanceType})
	if err != nil {
		return "", err
	}
	t, image := found[i.Spec.InstanceType], ImageState{}
	if i.Image != nil {
		image, _ = i.Image.Found()
	}
	tooMany := t.TooManyVolumes(i.Spec.InstanceType, len(i.Spec.NonRootVolumes), len(i.Spec.NetworkInterfaces))
	switch {
	case t.VCPUs == 0 && t.Zones != nil:
		return fmt.Sprintf("there is no instance type %s in %s", i.Spec.InstanceType, c.Region), nil
	case t.VCPUs != 0 && image.Architecture != "" && t.Architecture != image.Architecture:
		return fmt.Sprintf(
			"the instance type %s is %s, and the image %s is %s: use another type",
			i.Spec.InstanceType,
			cmp.Or(t.Architecture, "for another system"),
			image.ID,
			image.Architecture,
		), nil
	case t.Unfit(i.Spec.InstanceType, image) != "":
		return t.Unfit(i.Spec.InstanceType, image), nil
	case tooMany != "":
		return "nonRootVolumes: " + tooMany, nil
	case i.Enclave && t.VCPUs != 0 && !t.Enclaves:
		return fmt.Sprintf("the instance type %s has no Nitro Enclaves: use another type, or remove enclaveOptions", i.Spec.InstanceType), nil
	}
	return "", nil
}

// checkImage compares the image with the instance type.
func (i *Instance) checkImage(context.Context, *cloud.Clients) (refusal string, err error) {
	if i.Image == nil {
		return "", nil
	}
	image, _ := i.Image.Found()
	return cmp.Or(i.windows(), i.Type.Unfit(i.Spec.InstanceType, image), i.withoutIPv6()), nil
}

// windows says that the machine has an image of Windows, and boot data for Linux; "" if it has not.
func (i *Instance) windows() string {
	if i.Image == nil {
		return ""
	}
	image, _ := i.Image.Found()
	if data, is := i.Boot.(interface{ ForLinux() bool }); !image.Windows || !is || !data.ForLinux() {
		return ""
	}
	return fmt.Sprintf("the image %s has Windows, and the machine boots with scripts for Linux: use an image of Linux", image.ID)
}

// withoutIPv6 says that the interface of the machine would get an IPv6 address, which the instance type does not take; "" if it takes one.
func (i *Instance) withoutIPv6() string {
	if !i.Type.NoIPv6 || i.Subnet == nil {
		return ""
	}
	state, _ := i.Subnet.Found()
	desired, made := i.Subnet.Desired().(*Subnet)
	if state.IPv6CIDR == "" && (!made || !desired.ipv6()) {
		return ""
	}
	return fmt.Sprintf("the instance type %s takes no IPv6 addresses, which the subnet has: use another type, such as t3.large", i.Spec.InstanceType)
}

// checkVolumes compares the volumes with the image.
func (i *Instance) checkVolumes() string {
	if i.Image == nil {
		return ""
	}
	image, ok := i.Image.Found()
	if !ok {
		return ""
	}
	if r := i.Spec.RootVolume; r != nil && r.Size > 0 && r.Size < int64(image.RootSize) {
		return fmt.Sprintf("rootVolume.size is %d GiB, but the image %s needs %d", r.Size, image.ID, image.RootSize)
	}
	for _, v := range i.Spec.NonRootVolumes {
		if v.DeviceName == image.RootDevice {
			return fmt.Sprintf(
				"a volume of nonRootVolumes has the device name %s, which is the root volume of the image %s: choose another name, such as /dev/sdf",
				v.DeviceName,
				image.ID,
			)
		}
	}
	return ""
}

// noWayOut is NoWayOut for a machine that fetches its boot data, or joins a cluster of EKS.
func (i *Instance) noWayOut(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	if i.StoredAs() == "" && i.EKS == nil || len(i.Spec.NetworkInterfaces) > 0 {
		return "", nil
	}
	return NoWayOut(ctx, c, i.Subnet, i.Spec.PublicIP)
}

// checkKeys looks at the KMS keys of the volumes: EC2 launches the machine, and then ends it.
func (i *Instance) checkKeys(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	volumes, names := i.Spec.NonRootVolumes, "nonRootVolumes"
	for at := -1; at < len(volumes); at++ {
		v, path := i.Spec.RootVolume, "rootVolume"
		if at >= 0 {
			v, path = &volumes[at], fmt.Sprintf("%s[%d]", names, at)
		}
		if v == nil {
			continue
		}
		if refusal, err = kms.Refusal(ctx, c, v.EncryptionKey); refusal != "" || err != nil {
			return text.Prefixed(path+".encryptionKey: ", refusal), err
		}
	}
	return "", nil
}

// Check implements graph.Checked for what the template launches.
func (t *LaunchTemplate) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	m := t.machine()
	m.Image, m.Enclave = t.Image, t.Spec.EnclaveOptions != nil && aws.ToBool(t.Spec.EnclaveOptions.Enabled)
	m.Boot = t.Boot
	if refusal := cmp.Or(m.windows(), m.checkVolumes(), m.withoutCredentials(), refusalOf(ctx, c, t.Boot), t.idle()); refusal != "" {
		return refusal, nil
	}
	checks := []check{t.checkAbsent}
	if m.Spec.InstanceType != "" {
		checks = append(checks, m.checkType)
	}
	return firstRefusal(ctx, c, append(checks, m.checkRole, m.checkKeys, m.checkReservation, t.checkGroups))
}

// checkAbsent refuses a new version of the template with which no machine starts.
func (t *LaunchTemplate) checkAbsent(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	return CheckAbsent(ctx, c, t, t.Find, func(have *LaunchTemplateState) bool { return !t.needsNewVersion(have) || t.keepsMachines(have) })
}

// idle says why the nodes of a node group with an AMI of the manifest, and no user data, never join: EKS adds none ("Specifying an AMI" in
// "Customize managed nodes with launch templates", EKS user guide), and the AMIs of EKS have the name of their cluster only from there:
// nodeadm (https://awslabs.github.io/amazon-eks-ami/nodeadm/), bootstrap.sh and Bottlerocket's settings. Those of Cluster API only know kubeadm.
// Any other AMI may join by itself.
func (t *LaunchTemplate) idle() string {
	if t.Image == nil || t.Boot != nil || t.Adopt {
		return ""
	}
	image, _ := t.Image.Found()
	for prefix, what := range map[string]string{
		"amazon-eks-": "one of EKS", "bottlerocket-aws-k8s-": "one of EKS", "ubuntu-eks": "one of Canonical for EKS", "capa-ami-": "one of Cluster API for kubeadm",
	} {
		if strings.HasPrefix(image.Name, prefix) {
			return fmt.Sprintf("ami: the image %s is %s, which does not join EKS without user data, and the node group has none: "+
				"set bootstrap.configRef of the MachinePool to a NodeadmConfig, or remove the AMI: EKS then adds its own", image.Name, what)
		}
	}
	return ""
}

// checkGroups checks the security groups that the manifest names.
func (t *LaunchTemplate) checkGroups(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	ids := givenGroups(t.machine())
	if refusal, err := tooManyGroups(ctx, c, len(t.Groups)+len(ids)); refusal != "" || err != nil || len(ids) == 0 {
		return refusal, err
	}
	vpc := AnyVPC
	for _, g := range t.Groups {
		if desired, ok := g.Desired().(*SecurityGroup); ok {
			vpc = KnownVPC(desired.VPC)
		} else if state, ok := g.Found(); ok {
			vpc = state.VPC
		}
	}
	return MissingGroups(ctx, c, vpc, ids)
}

// Check implements graph.Checked: a rule cannot name a group that does not exist.
func (r *SecurityGroupRules) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	var ids []string
	for _, rule := range r.Rules {
		if rule.FromID != "" {
			ids = append(ids, rule.FromID)
		}
	}
	vpc := AnyVPC
	if desired, ok := r.Group.Desired().(*SecurityGroup); ok {
		vpc = peerable(KnownVPC(desired.VPC))
	}
	return MissingGroups(ctx, c, vpc, ids)
}
