package eks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Addon is an add-on of a cluster.
type Addon struct {
	Name, Version, ARN, RoleARN, Configuration, Token string
	Tags                                              map[string]string
	Born, Modified                                    time.Time
	Ready                                             time.Time // end of the last operation
	Updated                                           bool      // the last operation was an update
	Conflict                                          bool      // EKS found a self-managed installation
	Deleted                                           time.Time // start of the deletion; zero: none
}

func (svc *Service) simulateAddons() {
	core.On(svc.Account, svc.describeAddonVersions, "AddonName", "KubernetesVersion", "Types", "Owners", "Publishers", "MaxResults", "NextToken")
	core.On(svc.Account, svc.listAddons, "ClusterName", "MaxResults", "NextToken")
	core.On(svc.Account, svc.describeAddon, "ClusterName", "AddonName")
	core.On(svc.Account, svc.createAddon, "ClusterName", "AddonName", "AddonVersion", "ServiceAccountRoleArn", "ConfigurationValues", "ResolveConflicts", "Tags", "ClientRequestToken")
	core.On(svc.Account, svc.updateAddon, "ClusterName", "AddonName", "AddonVersion", "ServiceAccountRoleArn", "ConfigurationValues", "ResolveConflicts", "ClientRequestToken")
	core.On(svc.Account, svc.deleteAddon, "ClusterName", "AddonName", "Preserve")
}

// describeAddonVersions returns the catalogue, whatever the clusters. A call for one add-on
// and one version of Kubernetes also returns the versions that are plausible.
func (svc *Service) describeAddonVersions(in *eks.DescribeAddonVersionsInput) (*eks.DescribeAddonVersionsOutput, error) {
	if in.KubernetesVersion != nil && !slices.Contains(SupportedVersions(), *in.KubernetesVersion) {
		return nil, invalid("unsupported Kubernetes version %s", *in.KubernetesVersion)
	}
	if in.AddonName != nil && catalogued(*in.AddonName) == nil {
		// For an add-on without a compatible version, the list is empty; the error for an
		// unknown add-on is not verified.
		return nil, invalid("Addon specified is not supported")
	}
	among := func(values []string, v string) bool { return len(values) == 0 || slices.Contains(values, v) }
	var list []types.AddonInfo
	for _, e := range addonCatalogue() {
		if in.AddonName != nil && e.name != *in.AddonName || !among(in.Types, e.kind) || !among(in.Owners, e.owner) || !among(in.Publishers, e.publisher()) {
			continue
		}
		info := types.AddonInfo{AddonName: aws.String(e.name), Type: aws.String(e.kind), Owner: aws.String(e.owner), Publisher: aws.String(e.publisher())}
		versions := e.versions
		if in.AddonName != nil && in.KubernetesVersion != nil {
			versions = slices.Concat(versions, e.plausible(*in.KubernetesVersion))
		}
		for _, v := range versions {
			if shown, ok := v.out(aws.ToString(in.KubernetesVersion), e.name); ok {
				info.AddonVersions = append(info.AddonVersions, shown)
			}
		}
		if len(info.AddonVersions) > 0 {
			list = append(list, info)
		}
	}
	part, next, err := page(svc, list, in.NextToken, in.MaxResults)
	return &eks.DescribeAddonVersionsOutput{Addons: part, NextToken: next}, err
}

// out converts a version for answers about one version of Kubernetes, or about all ("").
func (v addonVersion) out(kubernetes, addon string) (types.AddonVersionInfo, bool) {
	info := types.AddonVersionInfo{
		AddonVersion: aws.String(v.version), Architecture: []string{"amd64", "arm64"}, ComputeTypes: []string{"ec2", "auto", "hybrid"},
		RequiresIamPermissions: slices.Contains([]string{"vpc-cni", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-mountpoint-s3-csi-driver", "amazon-cloudwatch-observability"}, addon),
	}
	for _, k := range slices.Backward(SupportedVersions()) {
		if v.runsOn(k) && (kubernetes == "" || kubernetes == k) {
			info.Compatibilities = append(info.Compatibilities, types.Compatibility{
				ClusterVersion: aws.String(k), DefaultVersion: slices.Contains(v.defaultOf, k), PlatformVersions: []string{"*"},
			})
		}
	}
	return info, len(info.Compatibilities) > 0
}

func (svc *Service) listAddons(in *eks.ListAddonsInput) (*eks.ListAddonsOutput, error) {
	c, err := svc.cluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range core.ByKey(c.Addons) {
		if svc.Visible(d.Born) {
			names = append(names, d.Name)
		}
	}
	part, next, err := page(svc, names, in.NextToken, in.MaxResults)
	return &eks.ListAddonsOutput{Addons: part, NextToken: next}, err
}

// addon returns an add-on of a cluster.
func (svc *Service) addon(cluster, name *string) (*Cluster, *Addon, error) {
	c, err := svc.cluster(cluster)
	if err != nil {
		return nil, nil, err
	}
	d, ok := c.Addons[aws.ToString(name)]
	if !ok {
		return nil, nil, &types.ResourceNotFoundException{
			Message: aws.String(fmt.Sprintf("No addon: %s found in cluster: %s", aws.ToString(name), c.Name)), ClusterName: cluster, AddonName: name,
		}
	}
	return c, d, nil
}

// hasNodes reports whether a cluster has running instances.
func (svc *Service) hasNodes(c *Cluster) bool {
	for i := range svc.ec2.Instances() {
		if _, ok := i.Tags["kubernetes.io/cluster/"+c.Name]; ok && svc.ec2.InstanceRuns(i) {
			return true
		}
	}
	return false
}

// addonStatus returns the status and the health issues of an add-on. A Deployment is
// degraded without nodes; a DaemonSet is not.
func (svc *Service) addonStatus(c *Cluster, d *Addon) (types.AddonStatus, []types.AddonIssue) {
	issue := func(code types.AddonIssueCode, message string) []types.AddonIssue {
		return []types.AddonIssue{{Code: code, Message: aws.String(message)}}
	}
	e := catalogued(d.Name)
	switch {
	case !d.Deleted.IsZero():
		return types.AddonStatusDeleting, []types.AddonIssue{}
	case svc.Now().Before(d.Ready) && d.Updated:
		return types.AddonStatusUpdating, []types.AddonIssue{}
	case svc.Now().Before(d.Ready):
		return types.AddonStatusCreating, []types.AddonIssue{}
	case d.Conflict && d.Updated:
		return types.AddonStatusUpdateFailed, issue(types.AddonIssueCodeConfigurationConflict, "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode.")
	case d.Conflict:
		return types.AddonStatusCreateFailed, issue(types.AddonIssueCodeConfigurationConflict, "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode.")
	case e != nil && e.deployment && !svc.hasNodes(c):
		return types.AddonStatusDegraded, issue(types.AddonIssueCodeInsufficientNumberOfReplicas,
			"The add-on is unhealthy because it doesn't have the desired number of replicas.")
	}
	return types.AddonStatusActive, []types.AddonIssue{}
}

func (svc *Service) addonOut(c *Cluster, d *Addon) *types.Addon {
	status, issues := svc.addonStatus(c, d)
	out := &types.Addon{
		AddonName: aws.String(d.Name), AddonArn: aws.String(d.ARN), AddonVersion: aws.String(d.Version), ClusterName: aws.String(c.Name), Status: status,
		ServiceAccountRoleArn: core.Text(d.RoleARN), ConfigurationValues: core.Text(d.Configuration), CreatedAt: aws.Time(d.Born), ModifiedAt: aws.Time(d.Modified),
		Tags: maps.Clone(d.Tags), Health: &types.AddonHealth{Issues: issues},
	}
	if e := catalogued(d.Name); e != nil {
		out.Owner, out.Publisher = aws.String(e.owner), aws.String(e.publisher())
	}
	return out
}

func (svc *Service) describeAddon(in *eks.DescribeAddonInput) (*eks.DescribeAddonOutput, error) {
	c, d, err := svc.addon(in.ClusterName, in.AddonName)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeAddonOutput{Addon: svc.addonOut(c, d)}, nil
}

// addonVersionFor returns the version in a call, or the default for the cluster's
// version.
func addonVersionFor(c *Cluster, name string, asked *string) (string, error) {
	e := catalogued(name)
	if e == nil {
		return "", invalid("Addon specified is not supported")
	}
	for _, v := range e.versions {
		if v.runsOn(c.Version) && (v.version == aws.ToString(asked) || asked == nil && slices.Contains(v.defaultOf, c.Version)) {
			return v.version, nil
		}
	}
	isAsked := func(v addonVersion) bool { return v.version == aws.ToString(asked) }
	if known := slices.ContainsFunc(e.versions, isAsked); !known && slices.ContainsFunc(e.plausible(c.Version), isAsked) {
		return *asked, nil
	}
	return "", invalid("Addon version specified is not supported")
}

func (svc *Service) addonRole(arn *string) error {
	if arn != nil && !svc.iam.Assumable(*arn) {
		return invalid("The role %s does not exist", *arn)
	}
	return nil
}

// selfManaged reports whether a cluster was created with a self-managed installation of
// an add-on.
func (c *Cluster) selfManaged(name string) bool {
	return c.SelfManagedAddons && slices.Contains([]string{"vpc-cni", "coredns", "kube-proxy"}, name)
}

func (svc *Service) createAddon(in *eks.CreateAddonInput) (*eks.CreateAddonOutput, error) {
	c, err := svc.activeCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	name := aws.ToString(in.AddonName)
	if old, ok := c.Addons[name]; ok {
		if old.Token == aws.ToString(in.ClientRequestToken) && old.Deleted.IsZero() {
			return &eks.CreateAddonOutput{Addon: svc.addonOut(c, old)}, nil
		}
		return nil, &types.ResourceInUseException{Message: aws.String("Addon already exists."), ClusterName: in.ClusterName, AddonName: in.AddonName}
	}
	version, err := addonVersionFor(c, name, in.AddonVersion)
	if err != nil {
		return nil, err
	}
	if err := svc.addonRole(in.ServiceAccountRoleArn); err != nil {
		return nil, err
	}
	tags, err := checkTags(in.Tags)
	if err != nil {
		return nil, err
	}
	h := svc.Hash()
	d := &Addon{
		Name: name, Version: version, ARN: svc.RegionalARN("eks", fmt.Sprintf("addon/%s/%s/%s-%s", c.Name, name, h[:8], strings.Join([]string{h[8:12], h[12:16], "4000", "000000000000"}, "-"))),
		RoleARN: aws.ToString(in.ServiceAccountRoleArn), Configuration: aws.ToString(in.ConfigurationValues), Token: aws.ToString(in.ClientRequestToken),
		Tags: tags, Born: svc.Now(), Modified: svc.Now(), Ready: svc.Now().Add(AddonTakes),
		// AWS may detect that nothing conflicts; here there is always a conflict.
		Conflict: c.selfManaged(name) && in.ResolveConflicts != types.ResolveConflictsOverwrite,
	}
	c.Addons[name] = d
	return &eks.CreateAddonOutput{Addon: svc.addonOut(c, d)}, nil
}

func (svc *Service) updateAddon(in *eks.UpdateAddonInput) (*eks.UpdateAddonOutput, error) {
	if _, err := svc.activeCluster(in.ClusterName); err != nil {
		return nil, err
	}
	c, d, err := svc.addon(in.ClusterName, in.AddonName)
	if err != nil {
		return nil, err
	}
	if status, _ := svc.addonStatus(c, d); !d.Deleted.IsZero() || svc.Now().Before(d.Ready) {
		return nil, busy("Addon %s cannot be updated as it is currently in %s state", d.Name, status)
	}
	if in.AddonVersion != nil {
		if d.Version, err = addonVersionFor(c, d.Name, in.AddonVersion); err != nil {
			return nil, err
		}
	}
	if err := svc.addonRole(in.ServiceAccountRoleArn); err != nil {
		return nil, err
	}
	core.Set(&d.RoleARN, in.ServiceAccountRoleArn)
	core.Set(&d.Configuration, in.ConfigurationValues)
	d.Updated, d.Modified, d.Ready = true, svc.Now(), svc.Now().Add(AddonTakes)
	d.Conflict = d.Conflict && in.ResolveConflicts != types.ResolveConflictsOverwrite
	return &eks.UpdateAddonOutput{Update: &types.Update{
		Id: aws.String(svc.Hash()), Status: types.UpdateStatusInProgress, Type: types.UpdateTypeAddonUpdate, CreatedAt: aws.Time(svc.Now()),
	}}, nil
}

func (svc *Service) deleteAddon(in *eks.DeleteAddonInput) (*eks.DeleteAddonOutput, error) {
	c, d, err := svc.addon(in.ClusterName, in.AddonName)
	if err != nil {
		return nil, err
	}
	if !d.Deleted.IsZero() || svc.Now().Before(d.Ready) {
		status, _ := svc.addonStatus(c, d)
		return nil, busy("Addon %s cannot be deleted as it is currently in %s state", d.Name, status)
	}
	d.Deleted = svc.Now()
	return &eks.DeleteAddonOutput{Addon: svc.addonOut(c, d)}, nil
}
