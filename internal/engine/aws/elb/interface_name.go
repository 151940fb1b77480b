package elb

import (
	"context"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/identity"
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

// WithInterface returns the kind, the ID and the tags of the load balancer, of any owner, that has
// a name in the descriptions of its network interfaces; nil if there is none.
func WithInterface(ctx context.Context, c *cloud.Clients, name string) (of string, lb *identity.Object, err error) {
	all, err := LoadBalancers(ctx, c)
	if err != nil {
		return "", nil, err
	}
	for _, lb := range all {
		if InterfaceName(lb.ID) == name {
			tags, err := describeTags(ctx, c, lb.ID)
			return LoadBalancerKind, &identity.Object{ID: lb.ID, Tags: tags}, err
		}
	}
	classic, err := ClassicLoadBalancers(ctx, c)
	for _, lb := range classic {
		if lb.ID == name {
			tags, err := describeClassicTags(ctx, c, lb.ID)
			return ClassicLoadBalancerKind, &identity.Object{ID: lb.ID, Tags: tags}, err
		}
	}
	return "", nil, err
}
