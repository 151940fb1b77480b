package cluster

import (
	"cmp"
	"context"

	"github.com/clusterawsadm/clusterawsadm/internal/crash"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// identity returns who calls AWS, when it is known.
type identity struct {
	profile string
	answer  <-chan cluster.Caller
}

// askWho asks AWS who calls it, while the command does something else. Without an answer, the
// command does not show it: it is told of refused credentials by its other calls.
func (f *flags) askWho(ctx context.Context, c *reconcile.Cluster) identity {
	answer := make(chan cluster.Caller, 1)
	go func() {
		defer close(answer)
		_ = crash.Catch(func() error {
			who, err := c.Caller(ctx)
			if err == nil {
				answer <- who
			}
			return err
		})
	}()
	return identity{cmp.Or(f.Profile, f.Env.Getenv("AWS_PROFILE")), answer}
}

// in returns a view of a plan that says who has made it.
func (i identity) in(v render.PlanView) render.PlanView {
	who := <-i.answer
	v.Account, v.Caller, v.Profile = who.Account, who.ARN, i.profile
	return v
}
