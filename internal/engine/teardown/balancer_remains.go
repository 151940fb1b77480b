package teardown

import (
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
)

func goingBalancers(ctx context.Context, c *cloud.Clients) ([]elb.LoadBalancerState, error) {
	return elb.BalancersOf(ctx, c, goes)
}

func goingClassic(ctx context.Context, c *cloud.Clients) ([]elb.ClassicLoadBalancerState, error) {
	return elb.ClassicOf(ctx, c, goes)
}

func goingTargetGroups(ctx context.Context, c *cloud.Clients) (out []elb.TargetGroupState, err error) {
	all, err := elb.TargetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	tags := make([]cloud.Tags, len(all))
	err = elb.AllAtOnce(len(all), func(i int) (err error) {
		tags[i], err = elb.Tags(ctx, c, all[i].ID)
		return err
	})
	for i, s := range all {
		if s.Tags = tags[i]; goes(c, s.Tags) {
			out = append(out, s)
		}
	}
	return out, err
}

func remainingBalancers(ctx context.Context, c *cloud.Clients) (out Remains, err error) {
	groups, err := goingTargetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range groups {
		out = append(out, remain("target-group", RankUnderneath, s, s.Object, 0, listed(s.ID, goingTargetGroups), (&elb.TargetGroup{}).Delete).inside(c, s.Tags))
	}
	balancers, err := goingBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range balancers {
		out = append(out, remain("load-balancer", RankOnTop, s, s.Object, 0, listed(s.ID, goingBalancers), (&elb.LoadBalancer{}).Delete).inside(c, s.Tags))
	}
	classic, err := goingClassic(ctx, c)
	for _, s := range classic {
		out = append(out, remain("load-balancer", RankOnTop, s, s.Object, 0, listed(s.ID, goingClassic), (&elb.ClassicLoadBalancer{}).Delete).inside(c, s.Tags))
	}
	return out, err
}
