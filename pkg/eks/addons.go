// Package eks asks EKS about the add-ons of a cluster, binds service accounts
// to IAM roles, and makes what lets users into a cluster: tokens and
// kubeconfigs.
package eks

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"golang.org/x/sync/errgroup"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// parallel is how many add-ons are looked at at once.
const parallel = 8

// AvailableAddon is one version of an add-on that a cluster can have. The
// names in JSON are those that clusterawsadm has always printed.
type AvailableAddon struct {
	Name            string          `json:"name"`
	Type            string          `json:"type"` // "networking", "storage", …
	Version         string          `json:"version"`
	Architecture    []string        `json:"architecture"`
	Compatibilities []Compatibility `json:"compatibilities"`
}

// Compatibility is a version of Kubernetes that a version of an add-on runs on.
type Compatibility struct {
	ClusterVersion   string   `json:"clusterVersion"`
	DefaultVersion   bool     `json:"defaultVersion"` // the one that is taken when none is named
	PlatformVersions []string `json:"platformVersions"`
}

// Available lists every version of every add-on that EKS offers for the
// Kubernetes version of a cluster, and that version, "1.34". The order is that
// of EKS: by add-on, the newest version first.
func Available(ctx context.Context, cfg aws.Config, cluster string) (all []AvailableAddon, kubernetes string, err error) {
	c := eks.NewFromConfig(cfg)
	found, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &cluster})
	if err != nil {
		return nil, "", explain(err, cluster, cfg.Region, "look up cluster")
	}
	kubernetes = aws.ToString(found.Cluster.Version)
	pages := eks.NewDescribeAddonVersionsPaginator(c, &eks.DescribeAddonVersionsInput{KubernetesVersion: &kubernetes})
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

// filled makes an empty list of none, since that is what JSON is to say.
func filled(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// InstalledAddon is an add-on of a cluster. The names in JSON are those that
// clusterawsadm has always printed.
type InstalledAddon struct {
	Name         string
	Version      string
	AddonARN     string
	RoleARN      *string // of its service account; nil: that of the node
	Status       string
	Tags         map[string]string
	HealthIssues []HealthIssue
	CreatedAt    time.Time
	ModifiedAt   time.Time
}

// HealthIssue is something that is wrong with an add-on.
type HealthIssue struct {
	Code        string
	Message     string
	ResourceIDs []string
}

// Installed lists the add-ons of a cluster, in the order in which EKS lists
// their names. One that is removed meanwhile is left out.
func Installed(ctx context.Context, cfg aws.Config, cluster string) ([]InstalledAddon, error) {
	c := eks.NewFromConfig(cfg)
	var names []string
	pages := eks.NewListAddonsPaginator(c, &eks.ListAddonsInput{ClusterName: &cluster})
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

// explain says what was to be done with a cluster, and, where there is none of
// the name, where it was looked for.
func explain(err error, cluster, region, what string) error {
	if cloud.NotFound(err) {
		return fmt.Errorf("there is no EKS cluster %s in %s; in EKS it may have another name than its Cluster object "+
			"(spec.eksClusterName of the AWSManagedControlPlane): %w", cluster, region, err)
	}
	return fmt.Errorf("%s %s: %w", what, cluster, err)
}
