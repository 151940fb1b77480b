package topology

import (
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

const (
	// TokenTTL is how long machines may use a join token once it is created or,
	// where there are pools, renewed: long enough for a slow run, and no longer.
	TokenTTL = 2 * time.Hour
	// tokenLeft is how long a token has to be valid yet for a machine that is
	// about to be launched: it boots, and kubeadm join tries for 20 minutes.
	tokenLeft = 30 * time.Minute
	// How old the value of a token may be when a run launches machines, and when
	// only pools use it: a plan is not to find a change in them every day.
	tokenDay, tokenWeek = 24 * time.Hour, 7 * 24 * time.Hour
	// tokenTag marks machines of the control plane that keep the token valid.
	tokenTag = "clusterawsadm/keeps-join-token"
)

// addJoinToken adds the token with which machines join a cluster that exists
// already, whoever created it: one that Cluster API created does not know this token.
// It is nil where no machine joins with it. A run that only asks AWS cannot know
// whether a token is valid.
func addJoinToken(g *graph.Graph, p platform, api *incluster.API, plan machinePlan) *incluster.CurrentToken {
	if !p.asks() || !p.hasControlPlane() {
		return nil
	}
	token := &incluster.JoinToken{API: api, TTL: TokenTTL, Least: tokenLeft, Most: tokenWeek, After: graph.On(p.bucket)}
	used := false
	for _, x := range plan.groups {
		for _, at := range x.launch {
			if x.kubeadm != nil && boot.ByToken(x.kubeadm) && !at.initializes {
				used, token.Most = true, tokenDay
			}
		}
	}
	for _, pool := range p.m.Pools {
		if pool.Scaling == nil || pool.Bootstrap.Kubeadm == nil || !boot.ByToken(&pool.Bootstrap.Kubeadm.Spec) {
			continue
		}
		used = true
		if x := p.poolGroup(pool, nil); backendOf(x) == boot.UserData {
			token.Inline = true
		} else {
			token.Shared = append(token.Shared, p.poolData(x))
		}
	}
	if !used {
		return nil
	}
	return &incluster.CurrentToken{Ref: graph.Add(g, "join-token", token), Token: token}
}
