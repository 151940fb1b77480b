package discover

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
)

// Overview describes a cluster as far as that is possible without its manifest.
type Overview struct {
	EKS          bool
	Version      string   // of Kubernetes: "v1.34.2"; "" if it is not known
	ControlPlane Machines // none in EKS
	Stopped      int      // machines of the control plane that are stopped
	Workers      Machines // of managed node groups, All are the nodes that they want
	Status       string   // of EKS: "ACTIVE"
	Since        time.Time
}

// Machines are numbers of machines. One on which kubeadm join has failed does not count as running.
type Machines struct{ Running, All int }

// Overviews reads the clusters of a region, by the names of their Cluster objects. Since is
// the creation of an EKS cluster, or the launch of the oldest machine of a control plane.
func Overviews(ctx context.Context, c *cloud.Clients) (map[string]*Overview, error) {
	found := map[string]*Overview{}
	of := func(name string) *Overview {
		if found[name] == nil {
			found[name] = &Overview{}
		}
		return found[name]
	}
	machines, err := ec2.AllInstances(ctx, c)
	if err != nil {
		return nil, err
	}
	images := map[string][]*Overview{} // of control planes
	for _, m := range machines {
		o, count := of(ownerOf(m.Tags)), Machines{All: 1}
		if m.Status == "running" && m.Tags[cloud.JoinFailedTag] == "" {
			count.Running = 1
		}
		switch m.Tags[cloud.RoleTag] {
		case topology.RoleControlPlane:
			o.ControlPlane.add(count)
			if m.Stopped {
				o.Stopped++
			}
			images[m.Image] = append(images[m.Image], o)
			if o.Since.IsZero() || m.LaunchedAt.Before(o.Since) {
				o.Since = m.LaunchedAt
			}
		case topology.RoleNode:
			o.Workers.add(count)
		}
	}
	names, err := ec2.ImageNames(ctx, c, slices.Sorted(maps.Keys(images)))
	if err != nil {
		return nil, err
	}
	for id, name := range names {
		_, version := ec2.CAPAImage(name)
		for _, o := range images[id] {
			o.Version = max(o.Version, version)
		}
	}
	return found, addEKS(ctx, c, of)
}

func (m *Machines) add(more Machines) {
	m.Running, m.All = m.Running+more.Running, m.All+more.All
}

// addEKS adds the EKS clusters that Cluster API owns.
func addEKS(ctx context.Context, c *cloud.Clients, of func(string) *Overview) error {
	all, err := eks.Names(ctx, c)
	if err != nil {
		return err
	}
	for _, name := range all {
		s, err := eks.ClusterByName(ctx, c, name)
		if err != nil {
			return err
		}
		if s == nil || ownerOfEKS(*s) == "" {
			continue
		}
		o := of(ownerOfEKS(*s))
		o.EKS, o.Version, o.Status, o.Since = true, "v"+s.Version, s.Status, s.Created
		running, err := ec2.RunningNodes(ctx, c, name)
		if err != nil {
			return err
		}
		parts, err := eks.PartsToDelete(ctx, c, name)
		if err != nil {
			return err
		}
		for _, group := range parts.NodeGroups {
			g, err := eks.NodeGroupByName(ctx, c, name, group)
			if err != nil {
				return err
			}
			if g != nil {
				n := int(g.Desired)
				o.Workers.add(Machines{min(n, running[group]), n})
			}
		}
	}
	return nil
}
