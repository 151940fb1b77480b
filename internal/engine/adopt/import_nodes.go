package adopt

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// readNodes asks the API server at an endpoint for the labels and taints of the Nodes of machines and
// pools.
func readNodes(ctx context.Context, c *cloud.Clients, client *kube.Client, endpoint string, found *discover.SelfManaged) error {
	ctx, cancel := c.Clock.WithTimeout(ctx, patience, nil)
	defer cancel()
	list, all, err := incluster.ListMarks(ctx, client)
	if err != nil {
		return unasked(endpoint, err)
	}
	found.Nodes = map[string]incluster.Marks{}
	add := func(machine string, node *incluster.NodeState) {
		if node != nil {
			found.Nodes[machine] = all[node.Name]
		}
	}
	for _, m := range found.Machines {
		add(m.ID, list.Of(m))
	}
	for _, p := range found.Pools {
		for _, i := range p.Group.Instances {
			add(i.ID, list.On(i.ID))
		}
	}
	return nil
}

// readEKSNodes does the same for the machines and Auto Scaling groups of an EKS cluster. If it
// cannot ask the API server, it adds the reason to found.Unread.
func readEKSNodes(ctx context.Context, c *cloud.Clients, found *discover.EKS) {
	if len(found.Workers.Machines)+len(found.Workers.Pools) == 0 {
		return
	}
	client, err := found.Cluster.Client(c)
	if err != nil {
		err = unasked(found.Cluster.Endpoint, err)
	} else {
		err = readNodes(ctx, c, client, found.Cluster.Endpoint, found.Workers)
	}
	if err != nil {
		found.Unread = append(found.Unread, "labels and taints of the Nodes of machines and Auto Scaling groups, because "+err.Error())
	}
}
