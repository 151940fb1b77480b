package eks

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	pkgeks "github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

// Cluster is an EKS cluster (CAPA: AWSManagedControlPlane).
type Cluster struct {
	Name       string
	Version    string // "1.34"; "" for EKS's default, and then for whatever there is
	Role       *graph.Ref[iam.RoleState]
	Subnets    []*graph.Ref[ec2.SubnetState]
	Groups     []*graph.Ref[ec2.SecurityGroupState]
	ClusterTag string // the tag that says whose it is: kubernetes.io/cluster/NAME

	Public, Private       *bool    // where the API server is reached; nil leaves it as it is
	PublicCIDRs           []string // sorted; from where; empty is everywhere
	IPv6                  bool
	ServiceCIDR           string   // IPv4; "" for AWS's choice
	Logging               []string // types of logs that are kept, sorted
	Key                   string   // ARN of the KMS key for secrets; "" for AWS's own
	Authentication        string   // CONFIG_MAP, API_AND_CONFIG_MAP or API; "" for AWS's default
	CreatorIsAdmin        *bool
	SkipSelfManagedAddons bool   // EKS installs neither the VPC CNI nor CoreDNS nor kube-proxy by itself
	Support               string // EXTENDED or STANDARD; "" leaves it as it is
	Tags                  cloud.Tags
}

// ClusterState is a control plane that exists.
type ClusterState struct {
	identity.Object                   // the ID is its ARN
	Name, Status, Version             string
	Endpoint, CA, Issuer, ServiceCIDR string // "" until it is active
	RoleARN, VPC, Group               string // the group is the one that EKS made for nodes
	Subnets, Groups, PublicCIDRs      []string
	Public, Private, IPv6             bool
	Logging                           []string
	Key, Authentication, Support      string
	OutdatedNodeGroup                 string // a node group that is too old for the version that is wanted, and its version
}

var (
	_ graph.Managed[ClusterState] = (*Cluster)(nil)
	_ graph.Timed                 = (*Cluster)(nil)
)

// Needs implements graph.Desired.
func (e *Cluster) Needs() []graph.Edge {
	needs := graph.On(e.Role)
	for _, s := range e.Subnets {
		needs = append(needs, graph.Exists(s)...)
	}
	for _, g := range e.Groups {
		needs = append(needs, graph.Exists(g)...)
	}
	return needs
}

// Takes implements graph.Timed.
func (e *Cluster) Takes() (create, remove time.Duration) { return clusterCreateTime, clusterDeleteTime }

// Find implements graph.Desired. A cluster of that name that is not marked as
// this one's is somebody else's, whatever Cluster API makes of it.
func (e *Cluster) Find(ctx context.Context, c *cloud.Clients) (*ClusterState, error) {
	s, err := ClusterByName(ctx, c, e.Name)
	switch {
	case s == nil || err != nil:
		return nil, err
	case s.Tags[e.ClusterTag] != cloud.Owned && s.Tags[c.OwnerTag()] != cloud.Owned:
		return nil, fmt.Errorf("there is an EKS cluster named %s that does not carry the tag %s=%s: give this one another name in spec.eksClusterName", e.Name, e.ClusterTag, cloud.Owned)
	}
	s.OutdatedNodeGroup, err = e.outdatedNodeGroup(ctx, c, s)
	return s, err
}

// kubeletSkew is how many minor versions nodes may be older than their control
// plane, by Kubernetes' version skew policy from 1.28 on.
const kubeletSkew = 3

// outdatedNodeGroup names a node group that the version which is wanted would leave
// outdatedNodeGroup. EKS refuses that on the way, when it is too late.
func (e *Cluster) outdatedNodeGroup(ctx context.Context, c *cloud.Clients, have *ClusterState) (string, error) {
	if minor(e.Version) <= minor(have.Version) || cloud.IsBrief(ctx) {
		return "", nil
	}
	names, err := nodeGroupNames(ctx, c, e.Name)
	for _, name := range names {
		g, err := NodeGroupByName(ctx, c, e.Name, name)
		if err != nil {
			return "", err
		}
		if g != nil && g.Version != "" && minor(e.Version)-minor(g.Version) > kubeletSkew {
			return fmt.Sprintf("%s with node group %s of %s", have.Version, name, g.Version), nil
		}
	}
	return "", err
}

// Diff implements graph.Desired. EKS takes one change at a time: Update makes
// the first, and what is left shows when it is done.
func (e *Cluster) Diff(have *ClusterState) (d graph.Diff) {
	if have.Status == string(types.ClusterStatusFailed) {
		d.Fixed("status", have.Status, string(types.ClusterStatusActive))
		d.Advise("EKS could not make it; delete the cluster and create it anew")
		return d
	}
	d.Await("status", have.Status, string(types.ClusterStatusActive))
	d.Fixed("ipFamily", family(have.IPv6), family(e.IPv6))
	if e.ServiceCIDR != "" {
		d.Fixed("serviceCIDR", have.ServiceCIDR, e.ServiceCIDR)
	}
	d.Fixed("role", have.RoleARN, e.Role.CloudID())
	e.diffVersion(have, &d)
	e.diffAccess(have, &d)
	d.Lines("logging", have.Logging, e.Logging)
	switch {
	case have.Key == "" && e.Key != "":
		d.Set("encryptionKey", "", e.Key)
	case have.Key != "":
		d.Fixed("encryptionKey", have.Key, e.Key)
	}
	if e.Support != "" && (have.Support != "" || have.ID == "") { // emulators do not know it
		d.Set("upgradePolicy", have.Support, e.Support)
	}
	d.Advise("write into the manifest what there is, or make another cluster")
	d.Tags(have.Tags, e.Tags)
	return d
}

func family(ipv6 bool) string {
	if ipv6 {
		return "ipv6"
	}
	return "ipv4"
}

// diffVersion notes every minor version on the way: EKS takes one at a time,
// and none back.
func (e *Cluster) diffVersion(have *ClusterState, d *graph.Diff) {
	from, to := minor(have.Version), minor(e.Version)
	switch {
	case e.Version == "":
		return
	case have.ID == "":
		d.Set("version", "", e.Version)
		return
	case have.OutdatedNodeGroup != "":
		d.Fixed("version", have.OutdatedNodeGroup, e.Version)
		d.Advise(fmt.Sprintf("nodes may be %d minor versions older than the control plane: upgrade both in smaller steps", kubeletSkew))
		return
	case from > to:
		d.Fixed("version", have.Version, e.Version)
		d.Advise("EKS does not go back; set spec.version of the AWSManagedControlPlane to " + have.Version)
	}
	for v := from; v < to; v++ {
		d.Set("version", fmt.Sprintf("1.%d", v), fmt.Sprintf("1.%d", v+1))
	}
}

// minor is the number after the dot of a version; -1 where there is none.
func minor(version string) int {
	_, text, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	text, _, _ = strings.Cut(text, ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// authenticationModes are the modes, in the only order in which one follows
// another.
func authenticationModes() []string {
	return []string{string(types.AuthenticationModeConfigMap), string(types.AuthenticationModeApiAndConfigMap), string(types.AuthenticationModeApi)}
}

func (e *Cluster) diffAccess(have *ClusterState, d *graph.Diff) {
	if e.Public != nil {
		d.Set("endpointAccess.public", have.Public, *e.Public)
	}
	if e.Private != nil {
		d.Set("endpointAccess.private", have.Private, *e.Private)
	}
	if e.publicToAll() {
		d.Lines("endpointAccess.publicCIDRs", slices.DeleteFunc(slices.Clone(have.PublicCIDRs), isEverywhere), nil)
	} else {
		d.Lines("endpointAccess.publicCIDRs", have.PublicCIDRs, e.PublicCIDRs)
	}
	switch {
	case e.Authentication == "":
		return
	case have.Authentication == "":
		if have.ID == "" {
			d.Set("authenticationMode", "", e.Authentication)
		}
		return
	}
	modes := authenticationModes()
	from, to := slices.Index(modes, have.Authentication), slices.Index(modes, e.Authentication)
	if from > to {
		d.Fixed("authenticationMode", have.Authentication, e.Authentication)
		d.Advise("EKS does not go back to the ConfigMap; set accessConfig.authenticationMode to what there is")
	}
	for i := from; i >= 0 && i < to; i++ {
		d.Set("authenticationMode", modes[i], modes[i+1])
	}
}

func (e *Cluster) publicToAll() bool {
	return !slices.ContainsFunc(e.PublicCIDRs, func(b string) bool { return !isEverywhere(b) })
}

func isEverywhere(block string) bool { return block == ec2.AnywhereIPv4 || block == "::/0" }

// Create implements graph.Creator.
func (e *Cluster) Create(ctx context.Context, c *cloud.Clients) (*ClusterState, error) {
	in := &eks.CreateClusterInput{
		Name: &e.Name, RoleArn: aws.String(e.Role.CloudID()), Tags: e.Tags,
		ResourcesVpcConfig: &types.VpcConfigRequest{
			SubnetIds: identity.CloudIDs(e.Subnets), SecurityGroupIds: identity.CloudIDs(e.Groups), EndpointPublicAccess: e.Public, EndpointPrivateAccess: e.Private,
		},
		KubernetesNetworkConfig: e.networkConfig(), Logging: logging(e.Logging, nil), EncryptionConfig: e.encryption(),
		BootstrapSelfManagedAddons: aws.Bool(!e.SkipSelfManagedAddons),
		ClientRequestToken:         c.Token("eks-cluster", e.Name, e.Role.CloudID(), strings.Join(identity.CloudIDs(e.Subnets), ",")),
	}
	if !e.publicToAll() {
		in.ResourcesVpcConfig.PublicAccessCidrs = e.PublicCIDRs
	}
	if e.Version != "" {
		in.Version = &e.Version
	}
	if e.Authentication != "" || e.CreatorIsAdmin != nil {
		in.AccessConfig = &types.CreateAccessConfigRequest{
			AuthenticationMode: types.AuthenticationMode(e.Authentication), BootstrapClusterCreatorAdminPermissions: e.CreatorIsAdmin,
		}
	}
	if e.Support != "" {
		in.UpgradePolicy = &types.UpgradePolicyRequest{SupportType: types.SupportType(e.Support)}
	}
	out, err := c.EKS.CreateCluster(ctx, in)
	if err != nil {
		return nil, retryable(err)
	}
	s := clusterState(out.Cluster)
	s.Tags = e.Tags
	return &s, nil
}

func (e *Cluster) networkConfig() *types.KubernetesNetworkConfigRequest {
	switch {
	case e.IPv6:
		return &types.KubernetesNetworkConfigRequest{IpFamily: types.IpFamilyIpv6}
	case e.ServiceCIDR != "":
		return &types.KubernetesNetworkConfigRequest{ServiceIpv4Cidr: &e.ServiceCIDR}
	}
	return nil
}

func (e *Cluster) encryption() []types.EncryptionConfig {
	if e.Key == "" {
		return nil
	}
	return []types.EncryptionConfig{{Provider: &types.Provider{KeyArn: &e.Key}, Resources: []string{"secrets"}}}
}

// logging returns the setup that switches logs on, and those off.
func logging(on, off []string) *types.Logging {
	setup := func(names []string, enabled bool) (out []types.LogSetup) {
		if len(names) == 0 {
			return nil
		}
		s := types.LogSetup{Enabled: aws.Bool(enabled)}
		for _, n := range names {
			s.Types = append(s.Types, types.LogType(n))
		}
		return []types.LogSetup{s}
	}
	all := append(setup(on, true), setup(off, false)...)
	if len(all) == 0 {
		return nil
	}
	return &types.Logging{ClusterLogging: all}
}

// Update implements graph.Updater: the first of the changes that is still to
// be made, for EKS refuses a second one while that is under way.
func (e *Cluster) Update(ctx context.Context, c *cloud.Clients, have *ClusterState, d graph.Diff) (*ClusterState, error) {
	after := *have
	if d.HasTags() {
		var err error
		after.Object, err = setTags(ctx, c, have.Object, e.Tags)
		return &after, err
	}
	if err := e.updateFirst(ctx, c, d); err != nil {
		return nil, err
	}
	after.Status = string(types.ClusterStatusUpdating)
	return &after, nil
}

func (e *Cluster) updateFirst(ctx context.Context, c *cloud.Clients, d graph.Diff) (err error) {
	config := &eks.UpdateClusterConfigInput{Name: &e.Name}
	switch {
	case d.Has("endpointAccess.public", "endpointAccess.private", "endpointAccess.publicCIDRs"):
		config.ResourcesVpcConfig = &types.VpcConfigRequest{EndpointPublicAccess: e.Public, EndpointPrivateAccess: e.Private, PublicAccessCidrs: e.PublicCIDRs}
		if e.publicToAll() {
			config.ResourcesVpcConfig.PublicAccessCidrs = []string{ec2.AnywhereIPv4}
		}
	case d.Has("upgradePolicy"):
		config.UpgradePolicy = &types.UpgradePolicyRequest{SupportType: types.SupportType(e.Support)}
	case d.Has("authenticationMode"):
		config.AccessConfig = &types.UpdateAccessConfigRequest{AuthenticationMode: types.AuthenticationMode(nextValue(d, "authenticationMode"))}
	case d.Has("logging"):
		config.Logging = logging(d.Added("logging"), d.Removed("logging"))
	case d.Has("version"):
		_, err = c.EKS.UpdateClusterVersion(ctx, &eks.UpdateClusterVersionInput{Name: &e.Name, Version: aws.String(nextValue(d, "version"))})
		return err
	case d.Has("encryptionKey"):
		_, err = c.EKS.AssociateEncryptionConfig(ctx, &eks.AssociateEncryptionConfigInput{ClusterName: &e.Name, EncryptionConfig: e.encryption()})
		return err
	}
	_, err = c.EKS.UpdateClusterConfig(ctx, config)
	return err
}

// nextValue returns what a field is to become first.
func nextValue(d graph.Diff, field string) string {
	for _, change := range d {
		if change.Field == field {
			return change.Want
		}
	}
	return ""
}

// Delete implements graph.Deleter.
func (e *Cluster) Delete(ctx context.Context, c *cloud.Clients, have *ClusterState) error {
	if have.Status == string(types.ClusterStatusDeleting) {
		return nil
	}
	_, err := c.EKS.DeleteCluster(ctx, &eks.DeleteClusterInput{Name: &have.Name})
	return err
}

// How long EKS usually takes to create and to delete a cluster.
const (
	clusterCreateTime = 9 * time.Minute
	clusterDeleteTime = 3 * time.Minute
)

// ClusterByName returns a cluster, or nil.
func ClusterByName(ctx context.Context, c *cloud.Clients, name string) (*ClusterState, error) {
	return cloud.Remember(ctx, c, "EKS cluster "+name, func(ctx context.Context) (*ClusterState, error) {
		out, err := c.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
		if err != nil {
			return nil, cloud.IgnoreNotFound(err)
		}
		s := clusterState(out.Cluster)
		return &s, nil
	})
}

func clusterState(x *types.Cluster) ClusterState {
	s := ClusterState{
		Object: identity.Object{ID: aws.ToString(x.Arn), Tags: x.Tags}, Name: aws.ToString(x.Name), Status: string(x.Status), Version: aws.ToString(x.Version), Endpoint: aws.ToString(x.Endpoint), RoleARN: aws.ToString(x.RoleArn),
	}
	if v := x.ResourcesVpcConfig; v != nil {
		s.VPC, s.Group, s.Subnets, s.Groups = aws.ToString(v.VpcId), aws.ToString(v.ClusterSecurityGroupId), v.SubnetIds, v.SecurityGroupIds
		s.Public, s.Private, s.PublicCIDRs = v.EndpointPublicAccess, v.EndpointPrivateAccess, v.PublicAccessCidrs
	}
	if n := x.KubernetesNetworkConfig; n != nil {
		s.IPv6, s.ServiceCIDR = n.IpFamily == types.IpFamilyIpv6, aws.ToString(n.ServiceIpv4Cidr)
		if s.IPv6 {
			s.ServiceCIDR = aws.ToString(n.ServiceIpv6Cidr)
		}
	}
	s.Logging = enabledLogs(x.Logging)
	for _, k := range x.EncryptionConfig {
		if k.Provider != nil {
			s.Key = aws.ToString(k.Provider.KeyArn)
		}
	}
	if x.AccessConfig != nil {
		s.Authentication = string(x.AccessConfig.AuthenticationMode)
	}
	if x.UpgradePolicy != nil {
		s.Support = string(x.UpgradePolicy.SupportType)
	}
	if x.CertificateAuthority != nil {
		s.CA = aws.ToString(x.CertificateAuthority.Data)
	}
	if x.Identity != nil && x.Identity.Oidc != nil {
		s.Issuer = aws.ToString(x.Identity.Oidc.Issuer)
	}
	return s
}

// enabledLogs lists the types of logs that are kept.
func enabledLogs(x *types.Logging) (out []string) {
	if x == nil {
		return nil
	}
	for _, l := range x.ClusterLogging {
		for _, t := range l.Types {
			if aws.ToBool(l.Enabled) {
				out = append(out, string(t))
			}
		}
	}
	slices.Sort(out)
	return out
}

// SecurityGroup implements ec2.SecurityGroupOwner: the group that EKS has
// created for the nodes of the cluster.
func (s ClusterState) SecurityGroup() string { return s.Group }

// Client returns a client of the API server of a cluster of EKS.
func (s ClusterState) Client(c *cloud.Clients) (*kube.Client, error) {
	return c.API(s.Endpoint, func() (kube.Access, error) {
		ca, err := base64.StdEncoding.DecodeString(s.CA)
		return kube.Access{Server: s.Endpoint, CA: ca, Token: pkgeks.Tokens(c.Config, s.Name)}, err
	})
}

// clusterKind declares control planes of EKS.
func clusterKind() *kind.Any {
	return kind.Of(kind.Kind[ClusterState]{
		Name: "eks-cluster", Area: kind.AreaControlPlane, ByNameOnly: true, List: ownedClusters, Delete: &Cluster{},
		Find: func(ctx context.Context, c *cloud.Clients, s ClusterState) (*ClusterState, error) {
			return ClusterByName(ctx, c, s.Name)
		},
		Refers: func(s ClusterState) []string {
			return slices.Concat([]string{s.RoleARN, ec2.InterfacesAlias(s.VPC)}, s.Subnets, s.Groups)
		},
		Aliases: func(s ClusterState) []string { return []string{clusterAlias(s.Name), issuerAlias(s.Issuer)} },
		OwnerOf: func(s ClusterState) kind.Owner { return kind.Owner{Kubernetes: s.Name, EKS: true} },
		Status: func(s ClusterState) (state, detail string) {
			return strings.ToLower(s.Status), kind.Join(s.Version, s.Endpoint)
		},
		ReadActions: []string{"eks:DescribeCluster", "eks:ListClusters"}, Statement: kind.EKS,
		Actions: []string{"eks:AssociateEncryptionConfig", "eks:CreateCluster", "eks:DeleteCluster", "eks:TagResource", "eks:UpdateClusterConfig", "eks:UpdateClusterVersion"},
	})
}

// clusterAlias is an alias of a cluster, by which its parts refer to it.
func clusterAlias(name string) string { return "EKS cluster " + name }

// issuerAlias is an alias of a cluster, by which its OIDC provider refers to it.
func issuerAlias(url string) string { return "issuer " + strings.TrimPrefix(url, "https://") }

// Names lists the clusters of EKS in the region.
func Names(ctx context.Context, c *cloud.Clients) ([]string, error) {
	return cloud.Remember(ctx, c, "EKS clusters", func(ctx context.Context) ([]string, error) {
		p := eks.NewListClustersPaginator(c.EKS, &eks.ListClustersInput{})
		return cloud.Pages(ctx, p.HasMorePages, func(ctx context.Context) (*eks.ListClustersOutput, error) { return p.NextPage(ctx) },
			func(o *eks.ListClustersOutput) []string { return o.Clusters })
	})
}

func ownedClusters(ctx context.Context, c *cloud.Clients, _ kind.Owner) (out []ClusterState, err error) {
	names, err := Names(ctx, c)
	for _, name := range names {
		s, err := ClusterByName(ctx, c, name)
		if err != nil {
			return nil, err
		}
		if s != nil && s.IsOwned(c) {
			out = append(out, *s)
		}
	}
	return out, err
}

// Tagged returns the cluster that carries the tag of Cluster API, or nil.
func Tagged(ctx context.Context, c *cloud.Clients) (*ClusterState, error) {
	all, err := ownedClusters(ctx, c, kind.Owner{})
	if len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}
