package eks

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"sigs.k8s.io/yaml"

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
	OnFargate                                         bool      // a Fargate profile has selected its pods when they were created
	Preserve                                          bool      // its Kubernetes objects stay after the deletion
	Failure                                           string    // of the last operation; see Faults
	Updates                                           []*Update // in the order of the calls
	Last                                              *Settings // before the update that is in progress or has failed
	Reverted                                          bool      // the last update has changed nothing; see Faults
	Deletion
}

// Settings are what an update of an add-on changes.
type Settings struct{ Version, RoleARN, Configuration string }

// settings returns the current settings of an add-on. A failed update has not changed them.
func (d *Addon) settings(now time.Time) Settings {
	if d.Last != nil && (d.Failure != "" || d.Conflict || d.Reverted) && !now.Before(d.Ready) {
		return *d.Last
	}
	return Settings{d.Version, d.RoleARN, d.Configuration}
}

func (svc *Service) simulateAddons() {
	core.On(svc.Account, svc.describeAddonVersions, "AddonName", "KubernetesVersion", "Types", "Owners", "Publishers", "MaxResults", "NextToken")
	core.On(svc.Account, svc.describeAddonConfiguration, "AddonName", "AddonVersion")
	core.On(svc.Account, svc.listAddons, "ClusterName", "MaxResults", "NextToken")
	core.On(svc.Account, svc.describeAddon, "ClusterName", "AddonName")
	core.On(
		svc.Account,
		svc.createAddon,
		"ClusterName",
		"AddonName",
		"AddonVersion",
		"ServiceAccountRoleArn",
		"ConfigurationValues",
		"PodIdentityAssociations",
		"ResolveConflicts",
		"Tags",
		"ClientRequestToken",
	)
	core.On(
		svc.Account,
		svc.updateAddon,
		"ClusterName",
		"AddonName",
		"AddonVersion",
		"ServiceAccountRoleArn",
		"ConfigurationValues",
		"PodIdentityAssociations",
		"ResolveConflicts",
		"ClientRequestToken",
	)
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
		AddonVersion: aws.String(v.version),
		Architecture: []string{"amd64", "arm64"},
		ComputeTypes: []string{"ec2", "auto", "hybrid"},
		RequiresIamPermissions: slices.Contains(
			[]string{"vpc-cni", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-mountpoint-s3-csi-driver", "amazon-cloudwatch-observability"},
			addon,
		),
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
	part, next, err := page(svc, visible(svc, c.Addons, func(d *Addon) time.Time { return d.Born }), in.NextToken, in.MaxResults)
	return &eks.ListAddonsOutput{Addons: part, NextToken: next}, err
}

// addon returns an add-on of a cluster.
func (svc *Service) addon(cluster, name *string) (*Cluster, *Addon, error) {
	return part(svc.cluster, cluster, func(c *Cluster) map[string]*Addon { return c.Addons }, name,
		&types.ResourceNotFoundException{
			Message: aws.String(fmt.Sprintf("No addon: %s found in cluster: %s", aws.ToString(name), aws.ToString(cluster))), ClusterName: cluster, AddonName: name,
		})
}

// schedules reports whether a Node takes the pods of an add-on's Deployment: it has joined, the
// cluster has a pod network, and the pods tolerate its taints
// (https://github.com/aws/containers-roadmap/issues/1389).
func (svc *Service) schedules(c *Cluster, d *Addon) bool {
	if svc.HasNetwork != nil && !svc.HasNetwork(c) {
		return false
	}
	for i := range svc.ec2.Instances() {
		_, ok := i.Tags["kubernetes.io/cluster/"+c.Name]
		if !ok || !svc.ec2.InstanceRuns(i) || i.Boot == nil || i.Boot.Joined.IsZero() || i.Boot.Failed != "" {
			continue
		}
		g := c.NodeGroups[i.Tags["eks:nodegroup-name"]]
		if g == nil || !slices.ContainsFunc(g.Taints, func(t Taint) bool { return t.Effect != "PREFER_NO_SCHEDULE" && !d.tolerates(t) }) {
			return true
		}
	}
	return false
}

// tolerates reports whether the pods of an add-on tolerate a taint, by the tolerations in its
// configuration. Those of CoreDNS by default are for control planes and CriticalAddonsOnly.
func (d *Addon) tolerates(t Taint) bool {
	type toleration struct{ Key, Operator, Value, Effect string }
	var given struct {
		Tolerations []toleration
		Controller  struct{ Tolerations []toleration } // of the CSI drivers
	}
	_ = yaml.Unmarshal([]byte(d.Configuration), &given) // without a configuration there are none
	for _, x := range append(given.Tolerations, given.Controller.Tolerations...) {
		effect := map[string]string{"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}[x.Effect]
		if (x.Key == "" || x.Key == t.Key) && (x.Operator == "Exists" || x.Key != "" && x.Value == t.Value) && (effect == "" || effect == t.Effect) {
			return true
		}
	}
	return t.Key == "CriticalAddonsOnly"
}

// addonStatus returns the status and the health issues of an add-on. A Deployment is
// degraded without nodes; a DaemonSet is not.
func (svc *Service) addonStatus(c *Cluster, d *Addon) (types.AddonStatus, []types.AddonIssue) {
	issue := func(code types.AddonIssueCode, message string) []types.AddonIssue {
		return []types.AddonIssue{{Code: code, Message: aws.String(message)}}
	}
	e := catalogued(d.Name)
	switch {
	case d.deletionFailed(svc.Now(), AddonTakes):
		code, message, _ := strings.Cut(d.DeleteFailure, ": ")
		return types.AddonStatusDeleteFailed, issue(types.AddonIssueCode(code), message)
	case !d.Deleted.IsZero():
		return types.AddonStatusDeleting, []types.AddonIssue{}
	case svc.Now().Before(d.Ready) && d.Updated:
		return types.AddonStatusUpdating, []types.AddonIssue{}
	case svc.Now().Before(d.Ready):
		return types.AddonStatusCreating, []types.AddonIssue{}
	case d.Conflict && d.Updated:
		return types.AddonStatusUpdateFailed, issue(types.AddonIssueCodeConfigurationConflict, conflicts)
	case d.Failure != "":
		code, message, _ := strings.Cut(d.Failure, ": ")
		if d.Updated {
			return types.AddonStatusUpdateFailed, issue(types.AddonIssueCode(code), message)
		}
		return types.AddonStatusCreateFailed, issue(types.AddonIssueCode(code), message)
	case d.Conflict:
		return types.AddonStatusCreateFailed, issue(types.AddonIssueCodeConfigurationConflict, conflicts)
	case svc.state.Faults.DegradeAddon != "":
		code, message, _ := strings.Cut(svc.state.Faults.DegradeAddon, ": ")
		return types.AddonStatusDegraded, issue(types.AddonIssueCode(code), message)
	case e != nil && e.deployment && !d.OnFargate && (!svc.schedules(c, d) || svc.HasServices != nil && !svc.HasServices(c)):
		return types.AddonStatusDegraded, issue(types.AddonIssueCodeInsufficientNumberOfReplicas,
			"The add-on is unhealthy because it doesn't have the desired number of replicas.")
	}
	return types.AddonStatusActive, []types.AddonIssue{}
}

func (svc *Service) addonOut(c *Cluster, d *Addon) *types.Addon {
	status, issues := svc.addonStatus(c, d)
	now := d.settings(svc.Now())
	out := &types.Addon{
		AddonName:    aws.String(d.Name),
		AddonArn:     aws.String(d.ARN),
		AddonVersion: aws.String(now.Version),
		ClusterName:  aws.String(c.Name),
		Status:       status,
		ServiceAccountRoleArn: core.Text(
			now.RoleARN,
		),
		ConfigurationValues: core.Text(now.Configuration),
		CreatedAt:           aws.Time(d.Born),
		ModifiedAt:          aws.Time(d.Modified),
		Tags:                maps.Clone(d.Tags),
		Health:              &types.AddonHealth{Issues: issues},

		PodIdentityAssociations: svc.identitiesOf(c, d),
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
	if arn != nil && !strings.Contains(*arn, ":"+svc.Number()+":") {
		return core.Fail("AccessDeniedException", "Cross-account pass role is not allowed.") // "Using an IAM role to pass", IAM user guide
	}
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
	if err := checkConfiguration(aws.ToString(in.AddonName), in.ConfigurationValues); err != nil {
		return nil, err
	}
	if err := svc.checkIdentities(c, name, version, in.PodIdentityAssociations); err != nil {
		return nil, err
	}
	tags, err := checkTags(in.Tags)
	if err != nil {
		return nil, err
	}
	h := svc.Hash()
	d := &Addon{
		Name:    name,
		Version: version,
		ARN: svc.RegionalARN(
			"eks",
			fmt.Sprintf("addon/%s/%s/%s-%s", c.Name, name, h[:8], strings.Join([]string{h[8:12], h[12:16], "4000", "000000000000"}, "-")),
		),
		RoleARN:       aws.ToString(in.ServiceAccountRoleArn),
		Configuration: stored(aws.ToString(in.ConfigurationValues)),
		Token:         aws.ToString(in.ClientRequestToken),
		Tags:          tags,
		Born:          svc.Now(),
		Modified:      svc.Now(),
		Ready:         svc.Now().Add(AddonTakes),
		Failure:       svc.state.Faults.CreateAddon,
		// AWS may detect that nothing conflicts; here there is always a conflict.
		Conflict: c.selfManaged(name) && in.ResolveConflicts != types.ResolveConflictsOverwrite,
	}
	d.OnFargate = svc.onFargate(c, d)
	c.Addons[name] = d
	svc.setIdentities(c, d, in.PodIdentityAssociations)
	return &eks.CreateAddonOutput{Addon: svc.addonOut(c, d)}, nil
}

// onFargate reports whether an active Fargate profile selects the pods of an add-on that are
// created now. Pods that none selects are not scheduled on Fargate later ("How do I resolve
// Fargate pods that are stuck in Pending status?", AWS re:Post). CoreDNS runs on EC2 unless its
// configuration says otherwise ("Get started with AWS Fargate for your cluster", EKS user guide).
func (svc *Service) onFargate(c *Cluster, d *Addon) bool {
	var given struct{ ComputeType string }
	marks := map[string]string{}
	if d.Name == "coredns" {
		if err := yaml.Unmarshal([]byte(d.Configuration), &given); err != nil || given.ComputeType != "Fargate" {
			return false
		}
		marks = map[string]string{"k8s-app": "kube-dns", "eks.amazonaws.com/component": "coredns"}
	}
	for _, f := range c.Fargate {
		if f.status(svc.Now()) != types.FargateProfileStatusActive {
			continue
		}
		for _, s := range f.Selectors {
			namespace, err := path.Match(s.Namespace, "kube-system")
			fits := err == nil && namespace
			for k, v := range s.Labels {
				fits = fits && marks[k] == v
			}
			if fits {
				return true
			}
		}
	}
	return false
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
	before := d.settings(svc.Now())
	if in.ResolveConflicts != "" && !slices.Contains(in.ResolveConflicts.Values(), in.ResolveConflicts) {
		return nil, invalid("unsupported value %s of resolveConflicts", in.ResolveConflicts)
	}
	version := before.Version
	if in.AddonVersion != nil {
		if version, err = addonVersionFor(c, d.Name, in.AddonVersion); err != nil {
			return nil, err
		}
	}
	if err := svc.addonRole(in.ServiceAccountRoleArn); err != nil {
		return nil, err
	}
	if err := checkConfiguration(aws.ToString(in.AddonName), in.ConfigurationValues); err != nil {
		return nil, err
	}
	if err := svc.checkIdentities(c, d.Name, version, in.PodIdentityAssociations); err != nil {
		return nil, err
	}
	// A role that the call does not name stays: github.com/hashicorp/terraform-provider-aws,
	// issue 30645.
	d.Version, d.RoleARN, d.Configuration = version, before.RoleARN, before.Configuration
	core.Set(&d.RoleARN, in.ServiceAccountRoleArn)
	if !svc.state.Faults.Reverts {
		svc.setIdentities(c, d, in.PodIdentityAssociations)
	}
	core.Set(&d.Configuration, in.ConfigurationValues)
	d.Configuration = stored(d.Configuration)
	d.Updated, d.Modified, d.Ready, d.Last = true, svc.Now(), svc.Now().Add(AddonTakes), &before
	if before.Version != d.Version || before.Configuration != d.Configuration || d.Failure != "" { // other pods
		d.OnFargate = svc.onFargate(c, d)
	}
	d.Conflict = d.Conflict && in.ResolveConflicts != types.ResolveConflictsOverwrite
	d.Failure, d.Reverted = svc.state.Faults.Update, svc.state.Faults.Reverts
	u := &Update{
		Operation: svc.begin(types.UpdateTypeAddonUpdate, AddonTakes, params(map[types.UpdateParamType]string{types.UpdateParamTypeAddonVersion: d.Version})...),
	}
	if d.Conflict {
		u.Failure = string(types.ErrorCodeConfigurationConflict) + ": " + conflicts
	}
	d.Updates = append(d.Updates, u)
	return &eks.UpdateAddonOutput{Update: u.out()}, nil
}

// stored returns a configuration as EKS stores it: without the end of its last line
// (github.com/aws-controllers-k8s/community, issue 2877).
func stored(configuration string) string { return strings.TrimRight(configuration, "\n") }

// conflicts is the message of EKS for objects that somebody else has made.
const conflicts = "Conflicts found when trying to apply. Will not continue due to resolve conflicts mode."

func (svc *Service) deleteAddon(in *eks.DeleteAddonInput) (*eks.DeleteAddonOutput, error) {
	c, d, err := svc.addon(in.ClusterName, in.AddonName)
	if err != nil {
		return nil, err
	}
	if !d.Deleted.IsZero() && !d.deletionFailed(svc.Now(), AddonTakes) || svc.Now().Before(d.Ready) {
		status, _ := svc.addonStatus(c, d)
		return nil, busy("Addon %s cannot be deleted as it is currently in %s state", d.Name, status)
	}
	d.Deleted, d.Preserve, d.DeleteFailure = svc.Now(), in.Preserve, svc.state.Faults.DeleteAddon
	return &eks.DeleteAddonOutput{Addon: svc.addonOut(c, d)}, nil
}
