package awssim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKSAddon is an add-on that EKS manages in a cluster.
type EKSAddon struct {
	Name, Version, ARN, RoleARN, Configuration, Token string
	Tags                                              map[string]string
	Born, Modified                                    time.Time
	Ready                                             time.Time // what was asked for last is done
	Updated                                           bool      // that was an update
	Conflict                                          bool      // it met something of its kind that EKS did not install
	Deleted                                           time.Time // when deletion was asked for; zero: not
}

func (a *AWS) simulateEKSAddons() {
	on(a, a.describeAddonVersions, "AddonName", "KubernetesVersion", "Types", "Owners", "Publishers", "MaxResults", "NextToken")
	on(a, a.listAddons, "ClusterName", "MaxResults", "NextToken")
	on(a, a.describeAddon, "ClusterName", "AddonName")
	on(a, a.createAddon, "ClusterName", "AddonName", "AddonVersion", "ServiceAccountRoleArn", "ConfigurationValues", "ResolveConflicts", "Tags", "ClientRequestToken")
	on(a, a.updateAddon, "ClusterName", "AddonName", "AddonVersion", "ServiceAccountRoleArn", "ConfigurationValues", "ResolveConflicts", "ClientRequestToken")
	on(a, a.deleteAddon, "ClusterName", "AddonName", "Preserve")
}

// describeAddonVersions lists the catalogue. It does not know of clusters.
func (a *AWS) describeAddonVersions(in *eks.DescribeAddonVersionsInput) (*eks.DescribeAddonVersionsOutput, error) {
	if in.KubernetesVersion != nil && !slices.Contains(eksVersions(), *in.KubernetesVersion) {
		return nil, invalidEKS("unsupported Kubernetes version %s", *in.KubernetesVersion)
	}
	if in.AddonName != nil && catalogued(*in.AddonName) == nil {
		// An add-on that has no version for a cluster gives an empty list; what
		// AWS says of one that does not exist is not verified.
		return nil, invalidEKS("Addon specified is not supported")
	}
	among := func(values []string, v string) bool { return len(values) == 0 || slices.Contains(values, v) }
	var list []types.AddonInfo
	for _, e := range addonCatalogue() {
		if in.AddonName != nil && e.name != *in.AddonName || !among(in.Types, e.kind) || !among(in.Owners, e.owner) || !among(in.Publishers, e.publisher()) {
			continue
		}
		info := types.AddonInfo{AddonName: aws.String(e.name), Type: aws.String(e.kind), Owner: aws.String(e.owner), Publisher: aws.String(e.publisher())}
		for _, v := range e.versions {
			if shown, ok := v.out(aws.ToString(in.KubernetesVersion), e.name); ok {
				info.AddonVersions = append(info.AddonVersions, shown)
			}
		}
		if len(info.AddonVersions) > 0 {
			list = append(list, info)
		}
	}
	part, next, err := eksPage(a, list, in.NextToken, in.MaxResults)
	return &eks.DescribeAddonVersionsOutput{Addons: part, NextToken: next}, err
}

// out is a version as AWS shows it to those who ask about a version of
// Kubernetes, or about all ("").
func (v addonVersion) out(kubernetes, addon string) (types.AddonVersionInfo, bool) {
	info := types.AddonVersionInfo{
		AddonVersion: aws.String(v.version), Architecture: []string{"amd64", "arm64"}, ComputeTypes: []string{"ec2", "auto", "hybrid"},
		RequiresIamPermissions: slices.Contains([]string{"vpc-cni", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-mountpoint-s3-csi-driver", "amazon-cloudwatch-observability"}, addon),
	}
	for _, k := range slices.Backward(eksVersions()) {
		if v.runsOn(k) && (kubernetes == "" || kubernetes == k) {
			info.Compatibilities = append(info.Compatibilities, types.Compatibility{
				ClusterVersion: aws.String(k), DefaultVersion: slices.Contains(v.defaultOf, k), PlatformVersions: []string{"*"},
			})
		}
	}
	return info, len(info.Compatibilities) > 0
}

func (a *AWS) listAddons(in *eks.ListAddonsInput) (*eks.ListAddonsOutput, error) {
	c, err := a.eksCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range byKey(c.Addons) {
		if a.visible(d.Born) {
			names = append(names, d.Name)
		}
	}
	part, next, err := eksPage(a, names, in.NextToken, in.MaxResults)
	return &eks.ListAddonsOutput{Addons: part, NextToken: next}, err
}

// eksAddon returns the add-on that a call names.
func (a *AWS) eksAddon(cluster, name *string) (*EKSCluster, *EKSAddon, error) {
	c, err := a.eksCluster(cluster)
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

// hasNodes reports whether instances of a cluster run.
func (a *AWS) hasNodes(c *EKSCluster) bool {
	for i := range a.Instances() {
		if _, ok := i.Tags["kubernetes.io/cluster/"+c.Name]; ok && a.instanceRuns(i) {
			return true
		}
	}
	return false
}

// addonStatus is the state of an add-on, and what is wrong with it. One that
// is a Deployment cannot run without nodes; a DaemonSet is content.
func (a *AWS) addonStatus(c *EKSCluster, d *EKSAddon) (types.AddonStatus, []types.AddonIssue) {
	issue := func(code types.AddonIssueCode, message string) []types.AddonIssue {
		return []types.AddonIssue{{Code: code, Message: aws.String(message)}}
	}
	e := catalogued(d.Name)
	switch {
	case !d.Deleted.IsZero():
		return types.AddonStatusDeleting, []types.AddonIssue{}
	case a.now().Before(d.Ready) && d.Updated:
		return types.AddonStatusUpdating, []types.AddonIssue{}
	case a.now().Before(d.Ready):
		return types.AddonStatusCreating, []types.AddonIssue{}
	case d.Conflict && d.Updated:
		return types.AddonStatusUpdateFailed, issue(types.AddonIssueCodeConfigurationConflict, "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode.")
	case d.Conflict:
		return types.AddonStatusCreateFailed, issue(types.AddonIssueCodeConfigurationConflict, "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode.")
	case e != nil && e.deployment && !a.hasNodes(c):
		return types.AddonStatusDegraded, issue(types.AddonIssueCodeInsufficientNumberOfReplicas,
			"The add-on is unhealthy because it doesn't have the desired number of replicas.")
	}
	return types.AddonStatusActive, []types.AddonIssue{}
}

func (a *AWS) addonOut(c *EKSCluster, d *EKSAddon) *types.Addon {
	status, issues := a.addonStatus(c, d)
	out := &types.Addon{
		AddonName: aws.String(d.Name), AddonArn: aws.String(d.ARN), AddonVersion: aws.String(d.Version), ClusterName: aws.String(c.Name), Status: status,
		ServiceAccountRoleArn: text(d.RoleARN), ConfigurationValues: text(d.Configuration), CreatedAt: aws.Time(d.Born), ModifiedAt: aws.Time(d.Modified),
		Tags: maps.Clone(d.Tags), Health: &types.AddonHealth{Issues: issues},
	}
	if e := catalogued(d.Name); e != nil {
		out.Owner, out.Publisher = aws.String(e.owner), aws.String(e.publisher())
	}
	return out
}

func (a *AWS) describeAddon(in *eks.DescribeAddonInput) (*eks.DescribeAddonOutput, error) {
	c, d, err := a.eksAddon(in.ClusterName, in.AddonName)
	if err != nil {
		return nil, err
	}
	return &eks.DescribeAddonOutput{Addon: a.addonOut(c, d)}, nil
}

// addonVersionFor returns the version that a call asks for, or the default one
// of the cluster's version.
func addonVersionFor(c *EKSCluster, name string, asked *string) (string, error) {
	e := catalogued(name)
	if e == nil {
		return "", invalidEKS("Addon specified is not supported")
	}
	for _, v := range e.versions {
		if v.runsOn(c.Version) && (v.version == aws.ToString(asked) || asked == nil && slices.Contains(v.defaultOf, c.Version)) {
			return v.version, nil
		}
	}
	return "", invalidEKS("Addon version specified is not supported")
}

func (a *AWS) addonRole(arn *string) error {
	if arn != nil && !a.assumable(*arn) {
		return invalidEKS("The role %s does not exist", *arn)
	}
	return nil
}

// selfManaged reports whether a cluster came with an add-on that EKS does not
// manage.
func (c *EKSCluster) selfManaged(name string) bool {
	return c.SelfManagedAddons && slices.Contains([]string{"vpc-cni", "coredns", "kube-proxy"}, name)
}

func (a *AWS) createAddon(in *eks.CreateAddonInput) (*eks.CreateAddonOutput, error) {
	c, err := a.activeEKSCluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	name := aws.ToString(in.AddonName)
	if old, ok := c.Addons[name]; ok {
		if old.Token == aws.ToString(in.ClientRequestToken) && old.Deleted.IsZero() {
			return &eks.CreateAddonOutput{Addon: a.addonOut(c, old)}, nil
		}
		return nil, &types.ResourceInUseException{Message: aws.String("Addon already exists."), ClusterName: in.ClusterName, AddonName: in.AddonName}
	}
	version, err := addonVersionFor(c, name, in.AddonVersion)
	if err != nil {
		return nil, err
	}
	if err := a.addonRole(in.ServiceAccountRoleArn); err != nil {
		return nil, err
	}
	tags, err := eksTags(in.Tags)
	if err != nil {
		return nil, err
	}
	h := a.hash()
	d := &EKSAddon{
		Name: name, Version: version, ARN: a.regionalARN("eks", fmt.Sprintf("addon/%s/%s/%s-%s", c.Name, name, h[:8], strings.Join([]string{h[8:12], h[12:16], "4000", "000000000000"}, "-"))),
		RoleARN: aws.ToString(in.ServiceAccountRoleArn), Configuration: aws.ToString(in.ConfigurationValues), Token: aws.ToString(in.ClientRequestToken),
		Tags: tags, Born: a.now(), Modified: a.now(), Ready: a.now().Add(EKSAddonTakes),
		// AWS may find that nothing conflicts, and take it over. Here it never does.
		Conflict: c.selfManaged(name) && in.ResolveConflicts != types.ResolveConflictsOverwrite,
	}
	c.Addons[name] = d
	return &eks.CreateAddonOutput{Addon: a.addonOut(c, d)}, nil
}

func (a *AWS) updateAddon(in *eks.UpdateAddonInput) (*eks.UpdateAddonOutput, error) {
	if _, err := a.activeEKSCluster(in.ClusterName); err != nil {
		return nil, err
	}
	c, d, err := a.eksAddon(in.ClusterName, in.AddonName)
	if err != nil {
		return nil, err
	}
	if status, _ := a.addonStatus(c, d); !d.Deleted.IsZero() || a.now().Before(d.Ready) {
		return nil, busyEKS("Addon %s cannot be updated as it is currently in %s state", d.Name, status)
	}
	if in.AddonVersion != nil {
		if d.Version, err = addonVersionFor(c, d.Name, in.AddonVersion); err != nil {
			return nil, err
		}
	}
	if err := a.addonRole(in.ServiceAccountRoleArn); err != nil {
		return nil, err
	}
	set(&d.RoleARN, in.ServiceAccountRoleArn)
	set(&d.Configuration, in.ConfigurationValues)
	d.Updated, d.Modified, d.Ready = true, a.now(), a.now().Add(EKSAddonTakes)
	d.Conflict = d.Conflict && in.ResolveConflicts != types.ResolveConflictsOverwrite
	return &eks.UpdateAddonOutput{Update: &types.Update{
		Id: aws.String(a.hash()), Status: types.UpdateStatusInProgress, Type: types.UpdateTypeAddonUpdate, CreatedAt: aws.Time(a.now()),
	}}, nil
}

func (a *AWS) deleteAddon(in *eks.DeleteAddonInput) (*eks.DeleteAddonOutput, error) {
	c, d, err := a.eksAddon(in.ClusterName, in.AddonName)
	if err != nil {
		return nil, err
	}
	if !d.Deleted.IsZero() || a.now().Before(d.Ready) {
		status, _ := a.addonStatus(c, d)
		return nil, busyEKS("Addon %s cannot be deleted as it is currently in %s state", d.Name, status)
	}
	d.Deleted = a.now()
	return &eks.DeleteAddonOutput{Addon: a.addonOut(c, d)}, nil
}
