package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
)

// ClusterSummary is one cluster of an account, found by its tags.
type ClusterSummary struct {
	Name   string         `json:"name"`
	Region string         `json:"region"`
	Kinds  map[string]int `json:"resources"` // number of resources of each kind

	EKS          bool       `json:"eks"`                  // EKS runs the control plane
	Version      string     `json:"kubernetes,omitempty"` // of Kubernetes; "" if it is not known
	ControlPlane Machines   `json:"controlPlane"`         // none in EKS
	Workers      Machines   `json:"workers"`
	Status       string     `json:"status"`          // "running", "pending", "no control plane"; of EKS: "active", "creating"…
	Since        *time.Time `json:"since,omitempty"` // creation of the EKS cluster, or of the oldest machine of the control plane
}

// Machines are numbers of machines. For a managed node group of EKS, All is the number of nodes that
// it wants.
type Machines struct {
	Running int `json:"running"`
	All     int `json:"all"`
}

// List finds the clusters of the region of the target by their tags.
func List(ctx context.Context, t Target) ([]ClusterSummary, error) {
	c, ctx := cloud.New(t.Config, "", t.options()), cloud.ReadOnly(ctx)
	c.Snapshot()
	ctx = cloud.InSnapshot(ctx)
	all, err := teardown.Clusters(ctx, c)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	overviews, err := discover.Overviews(ctx, c)
	if cloud.Denied(err) && t.Warn != nil { // who may only read tags gets the names
		t.Warn(fmt.Sprintf("version, machines and status of the clusters are not known: %v", err))
	} else if err != nil {
		return nil, err
	}
	var out []ClusterSummary
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if invalid := CheckName(name); invalid != nil { // somebody else has set the tag
			if t.Warn != nil {
				t.Warn("not listed: " + invalid.Error())
			}
			continue
		}
		s := ClusterSummary{Name: name, Region: t.Config.Region, Kinds: all[name]}
		if err == nil {
			s.describe(overviews[name])
		}
		out = append(out, s)
	}
	return out, nil
}

// describe adds what is known of a cluster; o is nil if it has no machines.
func (s *ClusterSummary) describe(o *discover.Overview) {
	if o == nil {
		o = &discover.Overview{}
	}
	s.EKS, s.Version, s.ControlPlane, s.Workers = o.EKS, o.Version, Machines(o.ControlPlane), Machines(o.Workers)
	if !o.Since.IsZero() {
		s.Since = &o.Since
	}
	switch plane := o.ControlPlane; {
	case o.EKS:
		s.Status = strings.ToLower(o.Status)
	case plane.All == 0:
		s.Status = "no control plane"
	case plane.Running < plane.All:
		s.Status = "pending"
	default:
		s.Status = "running"
	}
}

// Regions lists the regions that are enabled in the account.
func Regions(ctx context.Context, t Target) (names []string, err error) {
	out, err := cloud.New(t.Config, "", t.options()).EC2.DescribeRegions(ctx, &ec2.DescribeRegionsInput{})
	if err != nil {
		return nil, err
	}
	for _, r := range out.Regions {
		names = append(names, *r.RegionName)
	}
	slices.Sort(names)
	return names, nil
}
