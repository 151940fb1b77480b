package eks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// State is the state of EKS.
type State struct {
	Clusters map[string]*Cluster // by name
	Limits   Limits
	Faults   Faults
}

// Faults are reasons for which EKS fails after it has accepted a call: "CODE: message". ""
// means that it does not fail.
type Faults struct {
	Update          string // of a cluster, node group or add-on; "Cancelled" is the status without a reason
	CreateCluster   string
	CreateNodeGroup string
	CreateAddon     string
	CreateFargate   string
	DegradeAddon    string // the health issue of add-ons that are ready
	DeleteNodeGroup string
	DeleteAddon     string
	DeleteFargate   string
	DeleteCluster   string

	// Reverts ends updates with the status Successful, and what they have changed is as before:
	// something else has set it back, such as a policy or a controller, or EKS stores another value
	// than the one in the call (github.com/aws-controllers-k8s/community, issue 2877;
	// github.com/aws-cloudformation/cloudformation-coverage-roadmap, issue 1913).
	Reverts bool
}

// Limits are quotas; 0 means the default.
type Limits struct {
	Clusters   int // in the region
	NodeGroups int // managed, in a cluster
}

// Quotas returns the quotas of the account.
func (svc *Service) Quotas() Limits {
	return Limits{cmp.Or(svc.state.Limits.Clusters, 100), cmp.Or(svc.state.Limits.NodeGroups, 30)}
}

// Cluster is an EKS cluster with its parts. Its nodes are instances with the tag
// "kubernetes.io/cluster/NAME".
type Cluster struct {
	Name, ARN, Version, Platform, RoleARN, Token string
	VPC, Group                                   string // Group is the security group that EKS created
	Subnets, Groups, PublicCIDRs                 []string
	Public, Private                              bool // endpoint access of the API server
	Authentication                               string
	Creator                                      string // ARN of the principal; "" if it is not known
	CreatorIsAdmin, SelfManagedAddons            bool
	Family, ServiceCIDR                          string // "ipv4" or "ipv6", and the block for services
	Logging                                      map[string]bool
	Key                                          string   // KMS key for secrets; "" for the key of AWS
	Support                                      string   // EXTENDED or STANDARD
	Protected, ZonalShift                        bool     // deletion protection, and zonal shift of ARC
	Tier                                         string   // of the control plane; "" is standard
	RemoteNodes, RemotePods                      []string // CIDR blocks of hybrid nodes, and of their pods
	Auto                                         *AutoMode
	Random                                       string // part of the names of the endpoint and the issuer; "": it follows from the ARN
	Tags                                         map[string]string
	Born, Ready                                  time.Time
	CreateFailure                                string                  // see Faults
	Updates                                      []*Update               // in the order of the calls
	Addons                                       map[string]*Addon       // by name
	PodIdentities                                map[string]*PodIdentity // by association ID
	NodeGroups                                   map[string]*NodeGroup   // by name
	Fargate                                      map[string]*Fargate     // by name
	Access                                       map[string]*Access      // by the ARN of the principal
	Providers                                    map[string]*Provider    // OIDC identity providers by name
	Insights                                     map[string]*Insight     // by ID
	Deletion
}

// Durations in EKS. AWS publishes none; these are measurements. Those of deletions are
// less certain.
const (
	// ClusterTakes is how long a cluster is CREATING.
	ClusterTakes = 9 * time.Minute
	// ClusterDeletes is how long a cluster is DELETING.
	ClusterDeletes = 3 * time.Minute
	// AddonTakes is how long an add-on is CREATING, UPDATING or DELETING.
	AddonTakes = time.Minute
)

func (svc *Service) simulate() {
	core.OnContext(
		svc.Account,
		svc.createCluster,
		"Name",
		"Version",
		"RoleArn",
		"ResourcesVpcConfig",
		"AccessConfig",
		"BootstrapSelfManagedAddons",
		"Tags",
		"ClientRequestToken",
		"KubernetesNetworkConfig",
		"Logging",
		"EncryptionConfig",
		"UpgradePolicy",
		"DeletionProtection",
		"ControlPlaneScalingConfig",
		"RemoteNetworkConfig",
		"ZonalShiftConfig",
		"ComputeConfig",
		"StorageConfig",
	)
	core.On(svc.Account, svc.describeCluster, "Name")
	core.On(svc.Account, svc.describeClusterVersions, "ClusterVersions", "MaxResults", "NextToken")
	core.On(svc.Account, svc.listClusters, "MaxResults", "NextToken")
	core.On(svc.Account, svc.deleteCluster, "Name")
	svc.simulateUpdates()
	svc.simulateAddons()
	svc.simulatePodIdentities()
	svc.simulateInsights()
	svc.simulateNodeGroups()
	svc.simulateFargate()
	svc.simulateAccess()
	svc.simulateProviders()
	svc.simulateTags()
}

// Settle applies updates, and removes clusters and add-ons after their deletion.
func (svc *Service) Settle() {
	for name, c := range svc.state.Clusters {
		if c.gone(svc.Now(), ClusterDeletes) {
			svc.removeCluster(c)
			delete(svc.state.Clusters, name)
			continue
		}
		svc.settleUpdates(c)
		svc.settleNodeGroups(c)
		svc.settleFargate(c)
		svc.settleProviders(c)
		maps.DeleteFunc(c.Addons, func(_ string, d *Addon) bool {
			gone := d.gone(svc.Now(), AddonTakes)
			if gone {
				svc.setIdentities(c, d, []types.AddonPodIdentityAssociations{})
			}
			return gone
		})
	}
}

// removeCluster removes the interfaces and the security group of a cluster. A group that
// is in use stays, as in AWS.
func (svc *Service) removeCluster(c *Cluster) {
	for _, n := range svc.ec2.InterfacesOf(c.ARN) {
		svc.ec2.RemoveInterface(n.ID)
	}
	if g := svc.ec2.SecurityGroup(c.Group); g != nil && len(svc.ec2.Users(g)) == 0 {
		svc.ec2.RemoveSecurityGroup(g)
	}
}

func (c *Cluster) status(now time.Time) types.ClusterStatus {
	switch {
	case c.deletionFailed(now, ClusterDeletes):
		return types.ClusterStatusFailed
	case !c.Deleted.IsZero():
		return types.ClusterStatusDeleting
	case now.Before(c.Ready):
		return types.ClusterStatusCreating
	case c.CreateFailure != "":
		return types.ClusterStatusFailed
	case pending(c.Updates) != nil:
		return types.ClusterStatusUpdating
	}
	return types.ClusterStatusActive
}

// cluster returns the cluster with that name.
func (svc *Service) cluster(name *string) (*Cluster, error) {
	c, ok := svc.state.Clusters[aws.ToString(name)]
	if !ok {
		return nil, &types.ResourceNotFoundException{Message: aws.String(fmt.Sprintf("No cluster found for name: %s.", aws.ToString(name))), ClusterName: name}
	}
	return c, nil
}

// activeCluster returns the cluster for a call that changes its parts. AWS rejects the
// call in other states; the error code is not verified.
func (svc *Service) activeCluster(name *string) (*Cluster, error) {
	c, err := svc.cluster(name)
	if err == nil && c.status(svc.Now()) != types.ClusterStatusActive {
		return nil, &types.InvalidRequestException{Message: aws.String(fmt.Sprintf("Cluster '%s' is not in ACTIVE status", c.Name)), ClusterName: name}
	}
	return c, err
}

func invalid(format string, args ...any) error {
	return &types.InvalidParameterException{Message: aws.String(fmt.Sprintf(format, args...))}
}

func busy(format string, args ...any) error {
	return &types.ResourceInUseException{Message: aws.String(fmt.Sprintf(format, args...))}
}

// checkTags validates tags.
func checkTags(tags map[string]string) (map[string]string, error) {
	type tag struct{ k, v string }
	list := make([]tag, 0, len(tags))
	for _, k := range core.SortedKeys(tags) {
		list = append(list, tag{k, tags[k]})
	}
	const code = "InvalidParameterException"
	return core.ReadTags(core.TagRules{TooMany: code, Duplicate: code, Invalid: code}, nil, list, func(t tag) (*string, *string) { return &t.k, &t.v })
}

// page validates the size of a page, and returns one.
func page[T any](svc *Service, list []T, token *string, size *int32) ([]T, *string, error) {
	if size != nil && (*size < 1 || *size > 100) {
		return nil, nil, invalid("maxResults must be between 1 and 100")
	}
	part, next, err := core.Page(svc.Account, list, token, size, 100)
	if err != nil {
		err = invalid("the nextToken is not valid")
	}
	return part, next, err
}

func (svc *Service) createCluster(ctx context.Context, in *eks.CreateClusterInput) (*eks.CreateClusterOutput, error) {
	name := aws.ToString(in.Name)
	if old, ok := svc.state.Clusters[name]; ok {
		if old.Token == aws.ToString(in.ClientRequestToken) && old.Deleted.IsZero() {
			return &eks.CreateClusterOutput{Cluster: svc.clusterOut(old)}, nil
		}
		return nil, &types.ResourceInUseException{Message: aws.String("Cluster already exists with name: " + name), ClusterName: in.Name}
	}
	if len(svc.state.Clusters) >= svc.Quotas().Clusters {
		return nil, &types.ResourceLimitExceededException{Message: aws.String("You have reached your quota of clusters"), ClusterName: in.Name}
	}
	versions := SupportedVersions()
	c := &Cluster{
		Name: name, ARN: svc.RegionalARN("eks", "cluster/"+name), Version: cmp.Or(aws.ToString(in.Version), versions[len(versions)-1]), Platform: "eks.1",
		RoleARN: aws.ToString(in.RoleArn), Token: aws.ToString(in.ClientRequestToken), Authentication: string(types.AuthenticationModeConfigMap),
		CreatorIsAdmin: true, SelfManagedAddons: true, Born: svc.Now(), Ready: svc.Now().Add(ClusterTakes), CreateFailure: svc.state.Faults.CreateCluster,
		Family: "ipv4", ServiceCIDR: "10.100.0.0/16", Logging: map[string]bool{}, Support: "EXTENDED",
		Addons: map[string]*Addon{}, PodIdentities: map[string]*PodIdentity{}, NodeGroups: map[string]*NodeGroup{},
		Fargate: map[string]*Fargate{}, Access: map[string]*Access{}, Providers: map[string]*Provider{},
	}
	switch {
	case !regex.Of(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`).MatchString(name):
		return nil, invalid("The cluster name %q is not valid", name)
	case !slices.Contains(versions, c.Version):
		return nil, invalid("unsupported Kubernetes version %s", c.Version)
	case !svc.iam.Trusts(c.RoleARN, "eks.amazonaws.com"): // terraform-aws-eks, issue 2406
		return nil, invalid("Role with arn: %s, could not be assumed because it does not exist or the trusted entity is not correct", c.RoleARN)
	}
	core.Set(&c.SelfManagedAddons, in.BootstrapSelfManagedAddons)
	if err := c.access(in.AccessConfig); err != nil {
		return nil, err
	}
	if err := c.options(in); err != nil {
		return nil, err
	}
	var err error
	if c.Key, err = svc.readEncryption(in.EncryptionConfig); err != nil {
		return nil, err
	}
	auto, err := svc.autoMode(c, autoRequest{in.ComputeConfig, in.KubernetesNetworkConfig, in.StorageConfig})
	switch {
	case err != nil:
		return nil, err
	case auto != nil && c.SelfManagedAddons: // https://github.com/hashicorp/terraform-provider-aws/pull/40483
		return nil, invalid("When EKS Auto Mode is enabled, bootstrapSelfManagedAddons must be set to false.")
	}
	tags, err := checkTags(in.Tags)
	if err != nil {
		return nil, err
	}
	c.Tags = tags
	if err := svc.connect(c, in.ResourcesVpcConfig); err != nil {
		return nil, err
	}
	if c.Family == "ipv6" {
		if vpc := svc.ec2.VPC(c.VPC); vpc.IPv6 == nil {
			return nil, invalid("The VPC %s has no IPv6 CIDR block", c.VPC)
		}
	}
	if err := svc.checkRemote(c, c.RemoteNodes, c.RemotePods); err != nil {
		return nil, err
	}
	c.Creator = svc.principal(ctx)
	svc.letInCreator(c)
	svc.setAutoMode(c, auto)
	svc.state.Clusters[name] = c
	return &eks.CreateClusterOutput{Cluster: svc.clusterOut(c)}, nil
}

// access sets the authentication mode.
func (c *Cluster) access(in *types.CreateAccessConfigRequest) error {
	if in == nil {
		return nil
	}
	if in.AuthenticationMode != "" {
		if !slices.Contains(in.AuthenticationMode.Values(), in.AuthenticationMode) {
			return invalid("unsupported authentication mode %s", in.AuthenticationMode)
		}
		c.Authentication = string(in.AuthenticationMode)
	}
	core.Set(&c.CreatorIsAdmin, in.BootstrapClusterCreatorAdminPermissions)
	if !c.CreatorIsAdmin && c.Authentication == string(types.AuthenticationModeConfigMap) {
		return invalid("bootstrapClusterCreatorAdminPermissions must be true if cluster authentication mode is set to CONFIG_MAP")
	}
	return nil
}

// connect creates the security group of a cluster, and an interface in each subnet.
func (svc *Service) connect(c *Cluster, in *types.VpcConfigRequest) error {
	if in == nil {
		return invalid("resourcesVpcConfig is required")
	}
	if err := core.Only("CreateCluster", in, "SubnetIds", "SecurityGroupIds", "EndpointPublicAccess", "EndpointPrivateAccess", "PublicAccessCidrs"); err != nil {
		return err
	}
	c.Public = true
	core.Set(&c.Public, in.EndpointPublicAccess)
	core.Set(&c.Private, in.EndpointPrivateAccess)
	if !c.Public && !c.Private {
		return invalid("Private and public endpoint access cannot be disabled at the same time")
	}
	c.Subnets, c.Groups, c.PublicCIDRs = slices.Clone(in.SubnetIds), slices.Clone(in.SecurityGroupIds), slices.Clone(in.PublicAccessCidrs)
	if len(c.PublicCIDRs) == 0 {
		c.PublicCIDRs = []string{"0.0.0.0/0"}
	}
	if err := c.checkPublic(c.PublicCIDRs); err != nil {
		return err
	}
	zones, err := svc.zonesOf(c, c.Subnets)
	if err != nil {
		return err
	}
	for _, zone := range zones {
		if slices.Contains([]string{"use1-az3", "usw1-az2", "cac1-az3"}, svc.ec2.ZoneID(zone)) { // "Subnet requirements for clusters", EKS user guide
			return &types.UnsupportedAvailabilityZoneException{
				Message: aws.String(
					fmt.Sprintf(
						"Cannot create cluster '%s' because %s, the targeted availability zone, does not currently have sufficient capacity to support the cluster.",
						c.Name,
						zone,
					),
				),
			}
		}
	}
	if err := svc.checkFree(c.Subnets); err != nil {
		return err
	}
	if len(zones) < 2 {
		return invalid("Subnets specified must be in at least two different AZs")
	}
	if _, err := svc.ec2.GroupsFor(c.VPC, c.Groups); err != nil {
		return invalid("%s", err)
	}
	g := svc.ec2.NewGroup(svc.ec2.VPC(c.VPC), fmt.Sprintf("eks-cluster-sg-%s-%d", c.Name, 1_000_000_000+svc.Serial()),
		"EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.",
		map[string]string{"Name": "eks-cluster-sg-" + c.Name, "aws:eks:cluster-name": c.Name, "kubernetes.io/cluster/" + c.Name: "owned"})
	g.Ingress = []ec2.Rule{{ID: svc.ID("sgr"), Protocol: "-1", From: -1, To: -1, Group: g.ID}}
	c.Group = g.ID
	svc.attach(c)
	return nil
}

// leastFree is how many free addresses EKS needs in each subnet ("Subnet requirements for clusters", EKS user guide).
const leastFree = 6

// checkFree refuses subnets without enough free addresses. The text is not verified.
func (svc *Service) checkFree(subnets []string) error {
	for _, id := range subnets {
		if s := svc.ec2.Subnet(id); s != nil && s.CIDR != "" && svc.ec2.Free(s) < leastFree {
			return invalid("The subnet %s has not enough free IP addresses", id)
		}
	}
	return nil
}

// zonesOf returns the zones of subnets, which have to be in the VPC of the cluster. A new
// cluster gets the VPC of the first one.
func (svc *Service) zonesOf(c *Cluster, ids []string) (zones []string, err error) {
	for _, id := range ids {
		s := svc.ec2.Subnet(id)
		switch {
		case s == nil || !svc.ec2.Known(s.Thing):
			return nil, invalid("The subnet ID '%s' does not exist", id)
		case c.VPC != "" && s.VPC != c.VPC:
			return nil, invalid("Subnets specified must belong to the same VPC")
		}
		c.VPC, zones = s.VPC, append(zones, s.Zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones), nil
}

// attach creates an interface in each subnet of a cluster.
func (svc *Service) attach(c *Cluster) {
	for _, id := range c.Subnets {
		svc.ec2.NewInterface(id, "Amazon EKS "+c.Name, "interface", c.ARN, append([]string{c.Group}, c.Groups...))
	}
}

func (svc *Service) clusterOut(c *Cluster) *types.Cluster {
	out := &types.Cluster{
		Name:            aws.String(c.Name),
		Arn:             aws.String(c.ARN),
		Version:         aws.String(c.Version),
		PlatformVersion: aws.String(c.Platform),
		RoleArn:         aws.String(c.RoleARN),
		Status:          c.status(svc.Now()),
		CreatedAt:       aws.Time(c.Born),
		Tags:            maps.Clone(c.Tags),
		Health:          &types.ClusterHealth{Issues: []types.ClusterIssue{}},
		ResourcesVpcConfig: &types.VpcConfigResponse{
			VpcId: aws.String(c.VPC), SubnetIds: slices.Clone(c.Subnets), SecurityGroupIds: slices.Clone(c.Groups), EndpointPublicAccess: c.Public,
			EndpointPrivateAccess: c.Private, PublicAccessCidrs: slices.Clone(c.PublicCIDRs), ClusterSecurityGroupId: aws.String(c.Group),
		},
		KubernetesNetworkConfig: &types.KubernetesNetworkConfigResponse{IpFamily: types.IpFamily(c.Family)},
		Logging:                 c.loggingOut(),
		UpgradePolicy:           &types.UpgradePolicyResponse{SupportType: types.SupportType(c.Support)},
		DeletionProtection:      aws.Bool(c.Protected),
		ZonalShiftConfig:        &types.ZonalShiftConfigResponse{Enabled: aws.Bool(c.ZonalShift)},
		// Neither bootstrapSelfManagedAddons nor bootstrapClusterCreatorAdminPermissions is returned
		// (https://github.com/aws/containers-roadmap/issues/185).
		AccessConfig: &types.AccessConfigResponse{AuthenticationMode: types.AuthenticationMode(c.Authentication)},
	}
	out.ControlPlaneScalingConfig = &types.ControlPlaneScalingConfig{Tier: types.ProvisionedControlPlaneTier(cmp.Or(c.Tier, standardTier))}
	out.RemoteNetworkConfig = c.remoteOut()
	c.autoOut(out)
	if c.Family == "ipv6" {
		out.KubernetesNetworkConfig.ServiceIpv6Cidr = aws.String(c.ServiceCIDR)
	} else {
		out.KubernetesNetworkConfig.ServiceIpv4Cidr = aws.String(c.ServiceCIDR)
	}
	if c.Key != "" {
		out.EncryptionConfig = []types.EncryptionConfig{{Resources: []string{"secrets"}, Provider: &types.Provider{KeyArn: aws.String(c.Key)}}}
	}
	if code, message, failed := strings.Cut(cmp.Or(c.DeleteFailure, c.CreateFailure), ": "); failed && out.Status == types.ClusterStatusFailed {
		out.Health.Issues = append(out.Health.Issues, types.ClusterIssue{Code: types.ClusterIssueCode(code), Message: &message})
	}
	if out.Status != types.ClusterStatusCreating { // AWS does not return it before
		out.Endpoint = aws.String("https://" + c.Host(svc.Region))
		out.Identity = &types.Identity{Oidc: &types.OIDC{Issuer: aws.String(c.issuer(svc.Region))}}
		out.CertificateAuthority = &types.Certificate{Data: aws.String(base64.StdEncoding.EncodeToString([]byte("certificate of " + c.ARN)))}
	}
	return out
}

// issuer returns the URL of the issuer of tokens for service accounts.
func (c *Cluster) issuer(region string) string {
	return "https://oidc.eks." + region + "." + core.DNSSuffix(region) + "/id/" + c.key()
}

func (svc *Service) describeCluster(in *eks.DescribeClusterInput) (*eks.DescribeClusterOutput, error) {
	c, err := svc.cluster(in.Name)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeClusterOutput{Cluster: svc.clusterOut(c)}, nil
}

func (svc *Service) listClusters(in *eks.ListClustersInput) (*eks.ListClustersOutput, error) {
	part, next, err := page(svc, visible(svc, svc.state.Clusters, func(c *Cluster) time.Time { return c.Born }), in.NextToken, in.MaxResults)
	return &eks.ListClustersOutput{Clusters: part, NextToken: next}, err
}

func (svc *Service) deleteCluster(in *eks.DeleteClusterInput) (*eks.DeleteClusterOutput, error) {
	c, err := svc.cluster(in.Name)
	if err != nil {
		return nil, err
	}
	if s := c.status(svc.Now()); s != types.ClusterStatusActive && s != types.ClusterStatusFailed {
		return nil, &types.ResourceInUseException{Message: aws.String(fmt.Sprintf("Cluster has an ongoing operation: it is %s", s)), ClusterName: in.Name}
	}
	if c.Protected { // the text of the message could not be verified
		return nil, &types.InvalidRequestException{Message: aws.String("Cannot delete cluster because deletion protection is enabled"), ClusterName: in.Name}
	}
	// The message of AWS for dependents: "Cluster has nodegroups attached".
	if len(c.NodeGroups) > 0 {
		return nil, &types.ResourceInUseException{Message: aws.String("Cluster has nodegroups attached"), ClusterName: in.Name}
	}
	if len(c.Fargate) > 0 {
		return nil, &types.ResourceInUseException{Message: aws.String("Cluster has fargate profiles attached"), ClusterName: in.Name}
	}
	c.Deleted, c.DeleteFailure = svc.Now(), svc.state.Faults.DeleteCluster
	svc.endAutoNodes(c)
	return &eks.DeleteClusterOutput{Cluster: svc.clusterOut(c)}, nil
}

// Inventory lists the clusters and their parts.
func (svc *Service) Inventory() (lines []string) {
	for _, c := range core.ByKey(svc.state.Clusters) {
		line := "EKSCluster " + c.Name
		if !c.Deleted.IsZero() {
			line += " " + string(c.status(svc.Now()))
		}
		lines = append(lines, line)
		for _, d := range core.ByKey(c.Addons) {
			lines = append(lines, "EKSAddon "+c.Name+"/"+d.Name)
		}
		for _, p := range core.ByKey(c.PodIdentities) {
			lines = append(lines, "EKSPodIdentity "+c.Name+"/"+p.Namespace+"/"+p.ServiceAccount)
		}
		lines = append(lines, c.inventory()...)
	}
	slices.Sort(lines)
	return lines
}

// Detailed is Inventory with the attributes of the resources.
func (svc *Service) Detailed() (lines []string) {
	for _, c := range core.ByKey(svc.state.Clusters) {
		lines = append(
			lines,
			core.LineOf("EKSCluster "+c.Name, "version", c.Version, "role", c.RoleARN, "subnets", svc.ec2.Labels(c.Subnets), "tags", core.Flat(c.Tags)),
		)
		for _, d := range core.ByKey(c.Addons) {
			lines = append(lines, core.LineOf("EKSAddon "+c.Name+"/"+d.Name, "version", d.Version, "role", d.RoleARN, "tags", core.Flat(d.Tags)))
		}
		for _, p := range core.ByKey(c.PodIdentities) {
			lines = append(lines, core.LineOf("EKSPodIdentity "+c.Name+"/"+p.Namespace+"/"+p.ServiceAccount, "role", p.RoleARN, "tags", core.Flat(p.Tags)))
		}
		lines = append(lines, svc.detailedNodes(c)...)
	}
	slices.Sort(lines)
	return lines
}

// Host returns the host name of the API server.
func (c *Cluster) Host(region string) string {
	return c.key() + ".gr7." + region + ".eks." + core.DNSSuffix(region)
}

// key is the random part of a cluster's names.
func (c *Cluster) key() string {
	if c.Random != "" {
		return c.Random
	}
	sum := sha256.Sum256([]byte(c.ARN))
	return strings.ToUpper(hex.EncodeToString(sum[:16]))
}

// Clusters returns all clusters, unordered.
func (svc *Service) Clusters() iter.Seq[*Cluster] { return maps.Values(svc.state.Clusters) }

// ClusterNamed returns the cluster with that name, or nil.
func (svc *Service) ClusterNamed(name string) *Cluster { return svc.state.Clusters[name] }
