package elb

import (
	"context"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// InterfaceName returns the name of a load balancer in the descriptions of its network
// interfaces: the last part of its ARN, such as "net/NAME/0123456789abcdef". The ID of a
// Classic Load Balancer is its name.
func InterfaceName(id string) string {
	if _, name, is := strings.Cut(id, ":loadbalancer/"); is {
		return name
	}
	return id
}

// InterfaceNames returns the names of all load balancers of the region, of any owner, in
// the descriptions of their network interfaces.
func InterfaceNames(ctx context.Context, c *cloud.Clients) (names []string, err error) {
	all, err := LoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, lb := range all {
		names = append(names, InterfaceName(lb.ID))
	}
	classic, err := ClassicLoadBalancers(ctx, c)
	for _, lb := range classic {
		names = append(names, lb.ID)
	}
	return names, err
}
