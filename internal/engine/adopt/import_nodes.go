package adopt

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// readCharts asks for the releases of Helm charts that runs have installed. Who may not read Secrets has installed none.
func readCharts(ctx context.Context, c *cloud.Clients, client *kube.Client, endpoint string, found *discover.SelfManaged) (err error) {
	ctx, cancel := c.Clock.WithTimeout(ctx, patience, nil)
	defer cancel()
	if found.Charts, err = incluster.Releases(ctx, client); apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return unasked(endpoint, err)
	}
	return nil
}

// readEKSNodes reads the Nodes of the machines and Auto Scaling groups of an EKS cluster, and its charts. If it
// cannot ask the API server, it adds the reason to found.Unread.
func readEKSNodes(ctx context.Context, c *cloud.Clients, found *discover.EKS) {
	what := "Helm charts that runs have installed"
	client, err := found.Cluster.Client(c)
	if err != nil {
		err = unasked(found.Cluster.Endpoint, err)
	} else {
		err = readCharts(ctx, c, client, found.Cluster.Endpoint, found.Workers)
	}
	if len(found.Workers.Machines)+len(found.Workers.Pools) > 0 {
		what = "labels and taints of the Nodes of machines and Auto Scaling groups"
		if err == nil {
			err = readNodes(ctx, c, client, found.Cluster.Endpoint, found.Workers)
		} else {
			what += ", and Helm charts that runs have installed"
		}
	}
	if err != nil {
		found.Unread = append(found.Unread, what+", because "+err.Error())
	}
}
