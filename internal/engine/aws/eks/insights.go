package eks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// describe returns an insight as one sentence.
func describe(i cluster.UpgradeInsight) string {
	s := fmt.Sprintf("%s (Kubernetes %s): %s", i.Name, i.Version, strings.TrimSuffix(i.Reason, "."))
	return s + text.Prefixed("; ", strings.Join(i.Uses, "; ")) + text.Prefixed(". ", i.Advice)
}

// UpgradeInsights lists the insights with errors and warnings for versions of Kubernetes. EKS
// refreshes them once a day ("Cluster insights", EKS user guide).
func UpgradeInsights(ctx context.Context, c *cloud.Clients, name string, versions []string) ([]cluster.UpgradeInsight, error) {
	if len(versions) == 0 {
		return nil, nil
	}
	key := "EKS insights " + name + " " + strings.Join(versions, " ")
	return cloud.Remember(ctx, c, key, func(ctx context.Context) (found []cluster.UpgradeInsight, err error) {
		p := eks.NewListInsightsPaginator(c.EKS, &eks.ListInsightsInput{ClusterName: &name, Filter: &types.InsightsFilter{
			Categories: []types.Category{types.CategoryUpgradeReadiness}, KubernetesVersions: versions,
			Statuses: []types.InsightStatusValue{types.InsightStatusValueError, types.InsightStatusValueWarning},
		}})
		all, err := cloud.Pages(ctx, p, func(o *eks.ListInsightsOutput) []types.InsightSummary { return o.Insights })
		for _, s := range all {
			i, err := readInsight(ctx, c, name, s)
			if err != nil {
				return nil, err
			}
			found = append(found, i)
		}
		slices.SortFunc(found, func(a, b cluster.UpgradeInsight) int {
			return strings.Compare(a.Version+" "+a.Name, b.Version+" "+b.Name)
		})
		return found, err
	})
}

// readInsight reads the details of an insight. Without the permission for them, it has its name only.
func readInsight(ctx context.Context, c *cloud.Clients, name string, s types.InsightSummary) (cluster.UpgradeInsight, error) {
	i := cluster.UpgradeInsight{Name: aws.ToString(s.Name), Version: aws.ToString(s.KubernetesVersion)}
	if s.InsightStatus != nil {
		i.Status, i.Reason = string(s.InsightStatus.Status), aws.ToString(s.InsightStatus.Reason)
	}
	out, err := c.EKS.DescribeInsight(ctx, &eks.DescribeInsightInput{ClusterName: &name, Id: s.Id})
	if cloud.Denied(err) || cloud.NotFound(err) {
		return i, nil
	}
	if err != nil {
		return i, err
	}
	i.Advice = aws.ToString(out.Insight.Recommendation)
	if summary := out.Insight.CategorySpecificSummary; summary != nil {
		for _, d := range summary.DeprecationDetails {
			i.Uses = append(i.Uses, useOf(d))
		}
	}
	return i, nil
}

// useOf returns the use of an API as text: "/apis/policy/v1beta1/… (1.25 removes it; use /apis/policy/v1/…): by kubectl/v1.23".
func useOf(d types.DeprecationDetail) string {
	s := aws.ToString(d.Usage)
	if v := aws.ToString(d.StopServingVersion); v != "" {
		s += " (" + v + " removes it" + text.Prefixed("; use ", aws.ToString(d.ReplacedWith)) + ")"
	}
	var clients []string
	for _, c := range d.ClientStats {
		clients = append(clients, aws.ToString(c.UserAgent))
	}
	return s + text.Prefixed(", used by ", strings.Join(clients, ", "))
}
