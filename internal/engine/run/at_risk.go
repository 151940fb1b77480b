package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/iam"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kms"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// warnOfUninstalled warns if the plan uninstalls the chart of the pod network or of the cloud controller manager, and nothing takes its place.
func (l *Looking) warnOfUninstalled() {
	n := l.Built.Resource(incluster.HelmLeftoversKind)
	if n == nil || l.Cluster.Manifest == nil {
		return
	}
	have, _ := n.Observed().(*incluster.HelmLeftoversState)
	if have == nil {
		return
	}
	for _, r := range have.Releases {
		switch m := l.Cluster.Manifest; {
		case manifest.IsPodNetworkChart(r.Chart) && !m.HasPodNetwork():
			l.Warn("the run uninstalls the pod network (%s/%s, chart %s), and the manifest has no other: Nodes become NotReady, and new pods get no addresses; "+
				"to keep it, put its HelmChartProxy back, or repeat its --chart", r.Namespace, r.Name, r.Chart)
		case manifest.IsCloudControllerChart(r.Chart) && !m.HasCloudController():
			l.Warn(
				"the run uninstalls the cloud controller manager (%s/%s), and the manifest has no other: new Nodes stay tainted, and Services get no load balancers; "+
					"to keep it, put its HelmChartProxy back, or repeat its --chart",
				r.Namespace,
				r.Name,
			)
		}
	}
}

// warnOfKey warns if the KMS key of an existing EKS cluster cannot be used: "If the KMS key is deleted, there's no path to recovery for the
// cluster" ("Encrypt Kubernetes secrets with KMS on existing clusters", EKS user guide).
func (l *Looking) warnOfKey(ctx context.Context) error {
	s, _ := l.existingEKS()
	if s == nil || s.Key == "" {
		return nil
	}
	why, err := kms.Refusal(cloud.InSnapshot(cloud.ReadOnly(ctx)), l.Cloud, s.Key)
	if cloud.Denied(err) {
		return nil
	}
	if why != "" && err == nil {
		l.Warn("the EKS cluster %s needs its key, and without it, it cannot be recovered: %s", s.Name, why)
	}
	return err
}

// warnOfNodeAccess warns about node groups whose nodes cannot join, because their role has no valid access entry. EKS creates the entry together with
// the node group, and never again. It is bound to the unique ID of the role: the entry of a deleted role is not valid for a new role of the same name
// ("Create access entries", EKS user guide; https://github.com/terraform-aws-modules/terraform-aws-eks/issues/3329).
func (l *Looking) warnOfNodeAccess(ctx context.Context) error {
	c, groups := l.existingEKS()
	if c == nil || len(groups) == 0 || c.Authentication == string(types.AuthenticationModeConfigMap) {
		return nil
	}
	principals, err := eks.AccessPrincipals(cloud.InSnapshot(cloud.ReadOnly(ctx)), l.Cloud, c.Name)
	if err != nil {
		return err
	}
	for _, g := range groups {
		entry := func(verb, more string) string {
			return fmt.Sprintf("aws eks %s-access-entry --region %s --cluster-name %s --principal-arn %s%s", verb, l.Cloud.Region, c.Name, g.RoleARN, more)
		}
		typed := " --type " + eks.EntryOfLinux
		if strings.HasPrefix(g.ImageType, "WINDOWS") {
			typed = " --type " + eks.EntryOfWindows
		}
		id := plan.ID(iam.RoleKind + "/" + iam.RoleName(g.RoleARN))
		made := slices.ContainsFunc(l.Plan.Steps, func(s plan.Step) bool { return s.Resource == id && s.Action == plan.Create })
		switch has := slices.Contains(principals, g.RoleARN); {
		case made && has:
			l.Warn("the role of the node group %s was deleted, and its access entry is bound to that role: nodes do not join with the role of the same name that the "+
				"run creates, before the entry is made again: '%s', and '%s'", g.Name, entry("delete", ""), entry("create", typed))
		case !has && c.Authentication == string(types.AuthenticationModeApi):
			l.Warn("the role of the node group %s has no access entry: the API server refuses its nodes, which become NotReady: '%s'", g.Name, entry("create", typed))
		}
	}
	return nil
}

// existingEKS returns the EKS cluster, nil if it does not exist, and its existing node groups.
func (l *Looking) existingEKS() (c *eks.ClusterState, groups []eks.NodeGroupState) {
	for _, n := range l.Built.Resources() {
		switch x := n.Observed().(type) {
		case *eks.ClusterState:
			if x != nil {
				c = x
			}
		case *eks.NodeGroupState:
			if x != nil && !x.Deleting() {
				groups = append(groups, *x)
			}
		}
	}
	return c, groups
}
