package eks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// Insight is what EKS has found out about the upgrade of a cluster to a version of Kubernetes. EKS
// makes insights itself, from the audit log and the nodes; here a test sets them.
type Insight struct {
	ID, Name, Version      string // Version is that of Kubernetes: "1.34"
	Status                 string // PASSING, WARNING, ERROR or UNKNOWN
	Reason, Recommendation string
	Deprecated             []Deprecated
}

// Deprecated is the use of an API that a version of Kubernetes does not serve any more.
type Deprecated struct {
	Usage, ReplacedWith, StopServing string
	Clients                          []string // user agents
}

func (svc *Service) simulateInsights() {
	core.On(svc.Account, svc.listInsights, "ClusterName", "Filter", "MaxResults", "NextToken")
	core.On(svc.Account, svc.describeInsight, "ClusterName", "Id")
}

func (svc *Service) listInsights(in *eks.ListInsightsInput) (*eks.ListInsightsOutput, error) {
	c, err := svc.cluster(in.ClusterName)
	if err != nil {
		return nil, err
	}
	if in.MaxResults != nil && (*in.MaxResults < 1 || *in.MaxResults > 100) { // API reference, ListInsights
		return nil, invalid("maxResults must be between 1 and 100")
	}
	filter := in.Filter
	if filter == nil {
		filter = &types.InsightsFilter{}
	}
	for _, v := range filter.KubernetesVersions {
		if !slices.Contains(SupportedVersions(), v) {
			return nil, invalid("unsupported Kubernetes version %s", v)
		}
	}
	var list []types.InsightSummary
	for _, i := range core.ByKey(c.Insights) {
		if among(filter.Categories, types.CategoryUpgradeReadiness) && among(filter.KubernetesVersions, i.Version) &&
			among(filter.Statuses, types.InsightStatusValue(i.Status)) {
			list = append(list, types.InsightSummary{
				Id: &i.ID, Name: &i.Name, Category: types.CategoryUpgradeReadiness, KubernetesVersion: &i.Version, InsightStatus: i.status(),
			})
		}
	}
	part, next, err := page(svc, list, in.NextToken, in.MaxResults)
	return &eks.ListInsightsOutput{Insights: part, NextToken: next}, err
}

// among reports whether a filter accepts a value: an empty one accepts all.
func among[T comparable](filter []T, value T) bool {
	return len(filter) == 0 || slices.Contains(filter, value)
}

func (i *Insight) status() *types.InsightStatus {
	return &types.InsightStatus{Status: types.InsightStatusValue(i.Status), Reason: &i.Reason}
}

func (svc *Service) describeInsight(in *eks.DescribeInsightInput) (*eks.DescribeInsightOutput, error) {
	_, i, err := part(svc.cluster, in.ClusterName, func(c *Cluster) map[string]*Insight { return c.Insights }, in.Id,
		&types.ResourceNotFoundException{Message: aws.String("The insight " + aws.ToString(in.Id) + " was not found."), ClusterName: in.ClusterName})
	if err != nil {
		return nil, err
	}
	out := &types.Insight{
		Id: &i.ID, Name: &i.Name, Category: types.CategoryUpgradeReadiness, KubernetesVersion: &i.Version,
		InsightStatus: i.status(), Recommendation: &i.Recommendation,
	}
	for _, d := range i.Deprecated {
		if out.CategorySpecificSummary == nil {
			out.CategorySpecificSummary = &types.InsightCategorySpecificSummary{}
		}
		detail := types.DeprecationDetail{Usage: &d.Usage, ReplacedWith: &d.ReplacedWith, StopServingVersion: &d.StopServing}
		for _, client := range d.Clients {
			detail.ClientStats = append(detail.ClientStats, types.ClientStat{UserAgent: &client, NumberOfRequestsLast30Days: 1})
		}
		out.CategorySpecificSummary.DeprecationDetails = append(out.CategorySpecificSummary.DeprecationDetails, detail)
	}
	return &eks.DescribeInsightOutput{Insight: out}, nil
}

// unready returns the refusal of an upgrade for which EKS has an insight with the status ERROR. The
// request parameter force of UpdateClusterVersion overrides it (API reference); the text is in
// github.com/hashicorp/terraform-provider-aws, issue 42031.
func (c *Cluster) unready(version string) error {
	var names []string
	for _, i := range core.ByKey(c.Insights) {
		if i.Version == version && i.Status == string(types.InsightStatusValueError) {
			names = append(names, i.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &types.InvalidStateException{ClusterName: &c.Name, Message: aws.String(fmt.Sprintf(
		"Upgrade readiness issues detected (%s). Call ListInsights for details, or set force.", strings.Join(names, ", ")))}
}
