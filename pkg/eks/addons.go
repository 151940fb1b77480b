// Package eks lists the add-ons of EKS clusters, associates service accounts with IAM
// roles, and creates tokens and kubeconfigs for users.
package eks

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"golang.org/x/sync/errgroup"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// parallel is the number of add-ons to describe at the same time.
const parallel = 8

// AvailableAddon is a version of an add-on that is available for a cluster. The JSON
// names are those of upstream's clusterawsadm.
type AvailableAddon struct {
	Name            string          `json:"name"`
	Type            string          `json:"type"` // "networking", "storage", …
	Version         string          `json:"version"`
	Architecture    []string        `json:"architecture"`
	Compatibilities []Compatibility `json:"compatibilities"`
}

// Compatibility is a Kubernetes version with which a version of an add-on is compatible.
type Compatibility struct {
	ClusterVersion   string   `json:"clusterVersion"`
	DefaultVersion   bool     `json:"defaultVersion"` // used if no version is given
	PlatformVersions []string `json:"platformVersions"`
}

// Available returns all versions of all add-ons that EKS offers for the Kubernetes
// version of a cluster, and that version, "1.34". The order is that of EKS: by add-on,
// the newest version first.
func Available(ctx context.Context, cfg aws.Config, cluster string) (all []AvailableAddon, kubernetes string, err error) {
	c := eks.NewFromConfig(awshttp.Checked(cfg))
	found, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &cluster})
	if err != nil {
		return nil, "", explain(err, cluster, cfg.Region, "look up cluster")
	}
	kubernetes = aws.ToString(found.Cluster.Version)
	pages := eks.NewDescribeAddonVersionsPaginator(c, &eks.DescribeAddonVersionsInput{KubernetesVersion: &kubernetes})
	ctx = awshttp.Listing(ctx)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kubernetes, fmt.Errorf("list the add-ons for Kubernetes %s: %w", kubernetes, err)
		}
		for _, a := range page.Addons {
			for _, v := range a.AddonVersions {
				all = append(all, available(a, v))
			}
		}
	}
	return all, kubernetes, nil
}

func available(a types.AddonInfo, v types.AddonVersionInfo) AvailableAddon {
	out := AvailableAddon{
		Name: aws.ToString(a.AddonName), Type: aws.ToString(a.Type), Version: aws.ToString(v.AddonVersion),
		Architecture: filled(v.Architecture), Compatibilities: []Compatibility{},
	}
	for _, c := range v.Compatibilities {
		out.Compatibilities = append(out.Compatibilities, Compatibility{aws.ToString(c.ClusterVersion), c.DefaultVersion, filled(c.PlatformVersions)})
	}
	return out
}

// filled returns an empty list for nil, for JSON.
func filled(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// InstalledAddon is an add-on of a cluster. The JSON names are those of upstream's
// clusterawsadm.
type InstalledAddon struct {
	Name         string
	Version      string
	AddonARN     string
	RoleARN      *string // of its service account; nil means the role of the node
	Status       string
	Tags         map[string]string
	HealthIssues []HealthIssue
	CreatedAt    time.Time
	ModifiedAt   time.Time
}

// HealthIssue is a health issue of an add-on.
type HealthIssue struct {
	Code        string
	Message     string
	ResourceIDs []string
}

// Installed returns the add-ons of a cluster, in the order of EKS. An add-on that is
// deleted in the meantime is omitted.
func Installed(ctx context.Context, cfg aws.Config, cluster string) ([]InstalledAddon, error) {
	c := eks.NewFromConfig(awshttp.Checked(cfg))
	var names []string
	pages := eks.NewListAddonsPaginator(c, &eks.ListAddonsInput{ClusterName: &cluster})
	ctx = awshttp.Listing(ctx)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, explain(err, cluster, cfg.Region, "list add-ons of cluster")
		}
		names = append(names, page.Addons...)
	}
	found := make([]*types.Addon, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, name := range names {
		g.Go(func() error {
			out, err := c.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: &cluster, AddonName: &name})
			switch {
			case cloud.NotFound(err):
				return nil
			case err != nil:
				return fmt.Errorf("look up add-on %s of cluster %s: %w", name, cluster, err)
			}
			found[i] = out.Addon
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := make([]InstalledAddon, 0, len(found))
	for _, a := range found {
		if a != nil {
			all = append(all, installed(a))
		}
	}
	return all, nil
}

func installed(a *types.Addon) InstalledAddon {
	out := InstalledAddon{
		Name: aws.ToString(a.AddonName), Version: aws.ToString(a.AddonVersion), AddonARN: aws.ToString(a.AddonArn), RoleARN: a.ServiceAccountRoleArn,
		Status: string(a.Status), Tags: a.Tags, HealthIssues: []HealthIssue{}, CreatedAt: aws.ToTime(a.CreatedAt), ModifiedAt: aws.ToTime(a.ModifiedAt),
	}
	if a.Health == nil { // a new add-on may have no health yet
		return out
	}
	for _, i := range a.Health.Issues {
		out.HealthIssues = append(out.HealthIssues, HealthIssue{string(i.Code), aws.ToString(i.Message), filled(i.ResourceIds)})
	}
	return out
}

// explain adds the operation to an error, and a hint if the cluster does not exist.
func explain(err error, cluster, region, what string) error {
	if cloud.NotFound(err) {
		return fmt.Errorf("there is no EKS cluster %s in %s; its name in EKS may differ from that of its Cluster object "+
			"(spec.eksClusterName of the AWSManagedControlPlane): %w", cluster, region, err)
	}
	return fmt.Errorf("%s %s: %w", what, cluster, err)
}
