package awssim

import (
	"iter"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKSState is what EKS holds.
type EKSState struct {
	Clusters map[string]*EKSCluster // by name
}

// EKSCluster is a control plane of EKS and what hangs on it. Its nodes are
// instances with the tag "kubernetes.io/cluster/NAME".
type EKSCluster struct {
	Name, ARN, Version, Platform, RoleARN, Token string
	VPC, Group                                   string // the group is the one that EKS made
	Subnets, Groups, PublicCIDRs                 []string
	Public, Private                              bool // where the API server is reached
	Authentication                               string
	CreatorIsAdmin, SelfManagedAddons            bool
	Family, ServiceCIDR                          string // "ipv4" or "ipv6", and the block that services have
	Logging                                      map[string]bool
	Key                                          string // that secrets are encrypted with; "" for AWS's own
	Support                                      string // EXTENDED or STANDARD
	Tags                                         map[string]string
	Born, Ready                                  time.Time
	Deleted                                      time.Time                  // when deletion was asked for; zero: not
	Updates                                      []*EKSUpdate               // in the order of the calls
	Addons                                       map[string]*EKSAddon       // by name
	PodIdentities                                map[string]*EKSPodIdentity // by association ID
	NodeGroups                                   map[string]*EKSNodeGroup   // by name
	Fargate                                      map[string]*EKSFargate     // by name
	Access                                       map[string]*EKSAccess      // by the ARN of the principal
	Providers                                    map[string]*EKSProvider    // of identities, by name
}

// How long EKS takes over things. AWS names no figures; these are what people
// measure. Deletion is not that well known.
const (
	// EKSClusterTakes is how long a cluster is CREATING.
	EKSClusterTakes = 9 * time.Minute
	// EKSClusterDeletes is how long a cluster is DELETING.
	EKSClusterDeletes = 3 * time.Minute
	// EKSAddonTakes is how long an add-on is CREATING, UPDATING or DELETING.
	EKSAddonTakes = time.Minute
)

func (a *AWS) simulateEKS() {
	on(a, a.createEKSCluster, "Name", "Version", "RoleArn", "ResourcesVpcConfig", "AccessConfig", "BootstrapSelfManagedAddons", "Tags", "ClientRequestToken",
		"KubernetesNetworkConfig", "Logging", "EncryptionConfig", "UpgradePolicy")
	on(a, a.describeEKSCluster, "Name")
	on(a, a.listEKSClusters, "MaxResults", "NextToken")
	on(a, a.deleteEKSCluster, "Name")
	a.simulateEKSUpdates()
	a.simulateEKSAddons()
	a.simulatePodIdentities()
	a.simulateEKSNodeGroups()
	a.simulateEKSFargate()
	a.simulateEKSAccess()
	a.simulateEKSProviders()
	a.simulateEKSTags()
}

// settleEKS buries clusters and add-ons that are gone.
func (a *AWS) settleEKS() {
	for name, c := range a.state.EKS.Clusters {
		if !c.Deleted.IsZero() && a.now().Sub(c.Deleted) >= EKSClusterDeletes {
			a.buryEKSCluster(c)
			delete(a.state.EKS.Clusters, name)
			continue
		}
		a.settleEKSUpdates(c)
		a.settleEKSNodeGroups(c)
		a.settleEKSFargate(c)
		a.settleEKSProviders(c)
		maps.DeleteFunc(c.Addons, func(_ string, d *EKSAddon) bool {
			return !d.Deleted.IsZero() && a.now().Sub(d.Deleted) >= EKSAddonTakes
		})
	}
}

// buryEKSCluster removes the interfaces of a cluster and its security group.
// A group that something else uses stays behind, as it does in AWS.
func (a *AWS) buryEKSCluster(c *EKSCluster) {
	for _, n := range a.InterfacesOf(c.ARN) {
		a.bury(n.ID)
	}
	if g := a.SecurityGroup(c.Group); g != nil && len(a.users(g)) == 0 {
		a.RemoveSecurityGroup(g)
	}
}

func (c *EKSCluster) status(now time.Time) types.ClusterStatus {
	switch {
	case !c.Deleted.IsZero():
		return types.ClusterStatusDeleting
	case now.Before(c.Ready):
		return types.ClusterStatusCreating
	case c.updating() != nil:
		return types.ClusterStatusUpdating
	}
	return types.ClusterStatusActive
}

// eksCluster returns the cluster of a name.
func (a *AWS) eksCluster(name *string) (*EKSCluster, error) {
	c, ok := a.state.EKS.Clusters[aws.ToString(name)]
	if !ok {
		return nil, &types.ResourceNotFoundException{Message: aws.String(fmt.Sprintf("No cluster found for name: %s.", aws.ToString(name))), ClusterName: name}
	}
	return c, nil
}

// activeEKSCluster returns the cluster of a name for a call that changes what
// hangs on it. That AWS has this code for a cluster in another state is not
// verified; it does refuse.
func (a *AWS) activeEKSCluster(name *string) (*EKSCluster, error) {
	c, err := a.eksCluster(name)
	if err == nil && c.status(a.now()) != types.ClusterStatusActive {
		return nil, &types.InvalidRequestException{Message: aws.String(fmt.Sprintf("Cluster '%s' is not in ACTIVE status", c.Name)), ClusterName: name}
	}
	return c, err
}

func invalidEKS(format string, args ...any) error {
	return &types.InvalidParameterException{Message: aws.String(fmt.Sprintf(format, args...))}
}

func busyEKS(format string, args ...any) error {
	return &types.ResourceInUseException{Message: aws.String(fmt.Sprintf(format, args...))}
}

// eksTags checks tags as EKS takes them.
func eksTags(tags map[string]string) (map[string]string, error) {
	type tag struct{ k, v string }
	list := make([]tag, 0, len(tags))
	for _, k := range sortedKeys(tags) {
		list = append(list, tag{k, tags[k]})
	}
	const code = "InvalidParameterException"
	return readTags(tagRules{tooMany: code, duplicate: code, invalid: code}, nil, list, func(t tag) (*string, *string) { return &t.k, &t.v })
}

// eksPage checks the size of a page, and cuts one.
func eksPage[T any](a *AWS, list []T, token *string, size *int32) ([]T, *string, error) {
	if size != nil && (*size < 1 || *size > 100) {
		return nil, nil, invalidEKS("maxResults must be between 1 and 100")
	}
	part, next, err := page(a, list, token, size, 100)
	if err != nil {
		err = invalidEKS("the nextToken is not valid")
	}
	return part, next, err
}

// eksVersions are the Kubernetes versions that clusters can have. The newest
// is the default.
func eksVersions() []string { return []string{"1.30", "1.31", "1.32", "1.33", "1.34", "1.35"} }

func (a *AWS) createEKSCluster(in *eks.CreateClusterInput) (*eks.CreateClusterOutput, error) {
	name := aws.ToString(in.Name)
	if old, ok := a.state.EKS.Clusters[name]; ok {
		if old.Token == aws.ToString(in.ClientRequestToken) && old.Deleted.IsZero() {
			return &eks.CreateClusterOutput{Cluster: a.eksClusterOut(old)}, nil
		}
		return nil, &types.ResourceInUseException{Message: aws.String("Cluster already exists with name: " + name), ClusterName: in.Name}
	}
	versions := eksVersions()
	c := &EKSCluster{
		Name: name, ARN: a.regionalARN("eks", "cluster/"+name), Version: first(aws.ToString(in.Version), versions[len(versions)-1]), Platform: "eks.1",
		RoleARN: aws.ToString(in.RoleArn), Token: aws.ToString(in.ClientRequestToken), Authentication: string(types.AuthenticationModeConfigMap),
		CreatorIsAdmin: true, SelfManagedAddons: true, Born: a.now(), Ready: a.now().Add(EKSClusterTakes),
		Family: "ipv4", ServiceCIDR: "10.100.0.0/16", Logging: map[string]bool{}, Support: "EXTENDED",
		Addons: map[string]*EKSAddon{}, PodIdentities: map[string]*EKSPodIdentity{}, NodeGroups: map[string]*EKSNodeGroup{},
		Fargate: map[string]*EKSFargate{}, Access: map[string]*EKSAccess{}, Providers: map[string]*EKSProvider{},
	}
	switch {
	case !regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`).MatchString(name):
		return nil, invalidEKS("The cluster name %q is not valid", name)
	case !slices.Contains(versions, c.Version):
		return nil, invalidEKS("unsupported Kubernetes version %s", c.Version)
	case !a.assumable(c.RoleARN):
		return nil, invalidEKS("Role with arn: %s, could not be assumed because it does not exist or the trusted entity is not correct", c.RoleARN)
	}
	set(&c.SelfManagedAddons, in.BootstrapSelfManagedAddons)
	if err := c.access(in.AccessConfig); err != nil {
		return nil, err
	}
	if err := c.options(in); err != nil {
		return nil, err
	}
	tags, err := eksTags(in.Tags)
	if err != nil {
		return nil, err
	}
	c.Tags = tags
	if err := a.connectEKS(c, in.ResourcesVpcConfig); err != nil {
		return nil, err
	}
	if c.Family == "ipv6" {
		if vpc := a.VPC(c.VPC); vpc.IPv6 == nil {
			return nil, invalidEKS("The VPC %s has no IPv6 CIDR block", c.VPC)
		}
	}
	a.state.EKS.Clusters[name] = c
	return &eks.CreateClusterOutput{Cluster: a.eksClusterOut(c)}, nil
}

// access takes how users of a cluster are told apart.
func (c *EKSCluster) access(in *types.CreateAccessConfigRequest) error {
	if in == nil {
		return nil
	}
	if in.AuthenticationMode != "" {
		if !slices.Contains(in.AuthenticationMode.Values(), in.AuthenticationMode) {
			return invalidEKS("unsupported authentication mode %s", in.AuthenticationMode)
		}
		c.Authentication = string(in.AuthenticationMode)
	}
	set(&c.CreatorIsAdmin, in.BootstrapClusterCreatorAdminPermissions)
	return nil
}

// connectEKS puts a cluster into its subnets: a security group of its own, and
// an interface in each subnet.
func (a *AWS) connectEKS(c *EKSCluster, in *types.VpcConfigRequest) error {
	if in == nil {
		return invalidEKS("resourcesVpcConfig is required")
	}
	if err := only("CreateCluster", in, "SubnetIds", "SecurityGroupIds", "EndpointPublicAccess", "EndpointPrivateAccess", "PublicAccessCidrs"); err != nil {
		return err
	}
	c.Public = true
	set(&c.Public, in.EndpointPublicAccess)
	set(&c.Private, in.EndpointPrivateAccess)
	if !c.Public && !c.Private {
		return invalidEKS("Private and public endpoint access cannot be disabled at the same time")
	}
	c.Subnets, c.Groups, c.PublicCIDRs = slices.Clone(in.SubnetIds), slices.Clone(in.SecurityGroupIds), slices.Clone(in.PublicAccessCidrs)
	if len(c.PublicCIDRs) == 0 {
		c.PublicCIDRs = []string{"0.0.0.0/0"}
	}
	zones := map[string]bool{}
	for _, id := range c.Subnets {
		s := a.Subnet(id)
		if s == nil || !a.known(s.Thing) {
			return invalidEKS("The subnet ID '%s' does not exist", id)
		}
		if c.VPC != "" && s.VPC != c.VPC {
			return invalidEKS("Subnets specified must belong to the same VPC")
		}
		c.VPC, zones[s.Zone] = s.VPC, true
	}
	if len(zones) < 2 {
		return invalidEKS("Subnets specified must be in at least two different AZs")
	}
	if _, err := a.groupsFor(c.VPC, c.Groups); err != nil {
		return invalidEKS("%s", err)
	}
	g := a.newGroup(a.VPC(c.VPC), fmt.Sprintf("eks-cluster-sg-%s-%d", c.Name, 1_000_000_000+a.serial()),
		"EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.",
		map[string]string{"Name": "eks-cluster-sg-" + c.Name, "aws:eks:cluster-name": c.Name, "kubernetes.io/cluster/" + c.Name: "owned"})
	g.Ingress = []Rule{{ID: a.id("sgr"), Protocol: "-1", From: -1, To: -1, Group: g.ID}}
	c.Group = g.ID
	for _, id := range c.Subnets {
		a.newInterface(id, "Amazon EKS "+c.Name, "interface", c.ARN, append([]string{g.ID}, c.Groups...))
	}
	return nil
}

func (a *AWS) eksClusterOut(c *EKSCluster) *types.Cluster {
	out := &types.Cluster{
		Name: aws.String(c.Name), Arn: aws.String(c.ARN), Version: aws.String(c.Version), PlatformVersion: aws.String(c.Platform), RoleArn: aws.String(c.RoleARN),
		Status: c.status(a.now()), CreatedAt: aws.Time(c.Born), Tags: maps.Clone(c.Tags), Health: &types.ClusterHealth{Issues: []types.ClusterIssue{}},
		ResourcesVpcConfig: &types.VpcConfigResponse{
			VpcId: aws.String(c.VPC), SubnetIds: slices.Clone(c.Subnets), SecurityGroupIds: slices.Clone(c.Groups), EndpointPublicAccess: c.Public,
			EndpointPrivateAccess: c.Private, PublicAccessCidrs: slices.Clone(c.PublicCIDRs), ClusterSecurityGroupId: aws.String(c.Group),
		},
		KubernetesNetworkConfig: &types.KubernetesNetworkConfigResponse{IpFamily: types.IpFamily(c.Family)},
		Logging:                 c.loggingOut(), UpgradePolicy: &types.UpgradePolicyResponse{SupportType: types.SupportType(c.Support)},
		AccessConfig: &types.AccessConfigResponse{AuthenticationMode: types.AuthenticationMode(c.Authentication), BootstrapClusterCreatorAdminPermissions: aws.Bool(c.CreatorIsAdmin)},
	}
	if c.Family == "ipv6" {
		out.KubernetesNetworkConfig.ServiceIpv6Cidr = aws.String(c.ServiceCIDR)
	} else {
		out.KubernetesNetworkConfig.ServiceIpv4Cidr = aws.String(c.ServiceCIDR)
	}
	if c.Key != "" {
		out.EncryptionConfig = []types.EncryptionConfig{{Resources: []string{"secrets"}, Provider: &types.Provider{KeyArn: aws.String(c.Key)}}}
	}
	if out.Status != types.ClusterStatusCreating { // AWS does not tell before
		key := c.key()
		out.Endpoint = aws.String("https://" + c.host(a.o.Region))
		out.Identity = &types.Identity{Oidc: &types.OIDC{Issuer: aws.String("https://oidc.eks." + a.o.Region + ".amazonaws.com/id/" + key)}}
		out.CertificateAuthority = &types.Certificate{Data: aws.String(base64.StdEncoding.EncodeToString([]byte("certificate of " + c.ARN)))}
	}
	return out
}

func (a *AWS) describeEKSCluster(in *eks.DescribeClusterInput) (*eks.DescribeClusterOutput, error) {
	c, err := a.eksCluster(in.Name)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeClusterOutput{Cluster: a.eksClusterOut(c)}, nil
}

func (a *AWS) listEKSClusters(in *eks.ListClustersInput) (*eks.ListClustersOutput, error) {
	var names []string
	for _, c := range byKey(a.state.EKS.Clusters) {
		if a.visible(c.Born) {
			names = append(names, c.Name)
		}
	}
	part, next, err := eksPage(a, names, in.NextToken, in.MaxResults)
	return &eks.ListClustersOutput{Clusters: part, NextToken: next}, err
}

func (a *AWS) deleteEKSCluster(in *eks.DeleteClusterInput) (*eks.DeleteClusterOutput, error) {
	c, err := a.eksCluster(in.Name)
	if err != nil {
		return nil, err
	}
	if s := c.status(a.now()); s != types.ClusterStatusActive {
		return nil, &types.ResourceInUseException{Message: aws.String(fmt.Sprintf("Cluster has an ongoing operation: it is %s", s)), ClusterName: in.Name}
	}
	// AWS names what is in the way: "Cluster has nodegroups attached".
	if len(c.NodeGroups) > 0 {
		return nil, &types.ResourceInUseException{Message: aws.String("Cluster has nodegroups attached"), ClusterName: in.Name}
	}
	if len(c.Fargate) > 0 {
		return nil, &types.ResourceInUseException{Message: aws.String("Cluster has fargate profiles attached"), ClusterName: in.Name}
	}
	c.Deleted = a.now()
	return &eks.DeleteClusterOutput{Cluster: a.eksClusterOut(c)}, nil
}

// inventoryEKS lists the clusters and what hangs on them.
func (a *AWS) inventoryEKS() (lines []string) {
	for _, c := range byKey(a.state.EKS.Clusters) {
		line := "EKSCluster " + c.Name
		if !c.Deleted.IsZero() {
			line += " " + string(c.status(a.now()))
		}
		lines = append(lines, line)
		for _, d := range byKey(c.Addons) {
			lines = append(lines, "EKSAddon "+c.Name+"/"+d.Name)
		}
		for _, p := range byKey(c.PodIdentities) {
			lines = append(lines, "EKSPodIdentity "+c.Name+"/"+p.Namespace+"/"+p.ServiceAccount)
		}
		lines = append(lines, c.inventory()...)
	}
	slices.Sort(lines)
	return lines
}

// detailedEKS is inventoryEKS with what the things are like.
func (a *AWS) detailedEKS() (lines []string) {
	for _, c := range byKey(a.state.EKS.Clusters) {
		lines = append(lines, lineOf("EKSCluster "+c.Name, "version", c.Version, "role", c.RoleARN, "subnets", a.allCalled(c.Subnets), "tags", flat(c.Tags)))
		for _, d := range byKey(c.Addons) {
			lines = append(lines, lineOf("EKSAddon "+c.Name+"/"+d.Name, "version", d.Version, "role", d.RoleARN, "tags", flat(d.Tags)))
		}
		for _, p := range byKey(c.PodIdentities) {
			lines = append(lines, lineOf("EKSPodIdentity "+c.Name+"/"+p.Namespace+"/"+p.ServiceAccount, "role", p.RoleARN, "tags", flat(p.Tags)))
		}
		lines = append(lines, a.detailedNodes(c)...)
	}
	slices.Sort(lines)
	return lines
}

// host is the name at which the API server answers.
func (c *EKSCluster) host(region string) string {
	return c.key() + ".gr7." + region + ".eks.amazonaws.com"
}

// key is what EKS makes names of a cluster of.
func (c *EKSCluster) key() string {
	sum := sha256.Sum256([]byte(c.ARN))
	return strings.ToUpper(hex.EncodeToString(sum[:16]))
}

// Clusters returns all clusters, in no order.
func (a *AWS) Clusters() iter.Seq[*EKSCluster] { return maps.Values(a.state.EKS.Clusters) }

// ClusterNamed returns the cluster of a name, or nil.
func (a *AWS) ClusterNamed(name string) *EKSCluster { return a.state.EKS.Clusters[name] }
