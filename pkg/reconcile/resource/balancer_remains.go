package resource

import (
	"context"
	"sync"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
)

// whose says whether tags are of what is looked for.
type whose func(*cloud.Clients, cloud.Tags) bool

// allAtOnce does something for each of n, all at the same time, so that they
// share calls; it returns the error of one of those that failed.
func allAtOnce(n int, do func(int) error) error {
	var wg sync.WaitGroup
	failed := make(chan error, n)
	for i := range n {
		wg.Go(func() {
			if err := do(i); err != nil {
				failed <- err
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// balancersOf lists the load balancers that are of those looked for.
func balancersOf(ctx context.Context, c *cloud.Clients, of whose) (out []LoadBalancerState, err error) {
	all, err := loadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	tags := make([]cloud.Tags, len(all))
	err = allAtOnce(len(all), func(i int) (err error) {
		tags[i], err = tagsELB(ctx, c, all[i].ID)
		return err
	})
	for i, s := range all {
		if s.Tags = tags[i]; of(c, s.Tags) {
			out = append(out, s)
		}
	}
	return out, err
}

// classicOf lists the classic load balancers that are of those looked for.
func classicOf(ctx context.Context, c *cloud.Clients, of whose) (out []ClassicLoadBalancerState, err error) {
	all, err := classicLoadBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	tags := make([]cloud.Tags, len(all))
	err = allAtOnce(len(all), func(i int) (err error) {
		tags[i], err = classicTagsOf(ctx, c, all[i].ID)
		return err
	})
	for i, s := range all {
		if s.Tags = tags[i]; of(c, s.Tags) {
			out = append(out, s)
		}
	}
	return out, err
}

func goingBalancers(ctx context.Context, c *cloud.Clients) ([]LoadBalancerState, error) {
	return balancersOf(ctx, c, goes)
}

func goingClassic(ctx context.Context, c *cloud.Clients) ([]ClassicLoadBalancerState, error) {
	return classicOf(ctx, c, goes)
}

func goingTargetGroups(ctx context.Context, c *cloud.Clients) (out []TargetGroupState, err error) {
	all, err := targetGroups(ctx, c)
	if err != nil {
		return nil, err
	}
	tags := make([]cloud.Tags, len(all))
	err = allAtOnce(len(all), func(i int) (err error) {
		tags[i], err = tagsELB(ctx, c, all[i].ID)
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
		out = append(out, remain("target-group", RankUnderneath, s, s.Object, 0, listed(s.ID, goingTargetGroups), (&TargetGroup{}).Delete).inside(c, s.Tags))
	}
	balancers, err := goingBalancers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range balancers {
		out = append(out, remain("load-balancer", RankOnTop, s, s.Object, 0, listed(s.ID, goingBalancers), (&LoadBalancer{}).Delete).inside(c, s.Tags))
	}
	classic, err := goingClassic(ctx, c)
	for _, s := range classic {
		out = append(out, remain("load-balancer", RankOnTop, s, s.Object, 0, listed(s.ID, goingClassic), (&ClassicLoadBalancer{}).Delete).inside(c, s.Tags))
	}
	return out, err
}
