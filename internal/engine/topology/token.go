package topology

import (
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

const (
	// TokenTTL is how long machines may use a token to join once it is made or,
	// where there are pools, kept: time for a slow run, not for a thief.
	TokenTTL = 2 * time.Hour
	// tokenLeft is how long a token has to be valid yet for a machine that is
	// about to be launched: it boots, and kubeadm join tries for 20 minutes.
	tokenLeft = 30 * time.Minute
	// How old the value of a token may be when a run launches machines, and when
	// it is there for pools alone: a plan is not to find something to do in them
	// every day.
	tokenDay, tokenWeek = 24 * time.Hour, 7 * 24 * time.Hour
	// keeperTag marks machines of the control plane that keep the token valid.
	keeperTag = "clusterawsadm/keeps-join-token"
)

// joinToken makes a machine that joins a cluster which is there already wait
// for a token that is valid, or made to be. A run that asks AWS alone cannot
// know. Whoever made the cluster: one that Cluster API did knows no token of
// ours.
func (b *builder) joinToken(g group, d *bootdata.Data) {
	if !b.o.Wait.asks() || !b.othersControl() || d.Machine.Role == boot.Init || !boot.ByToken(g.kubeadm) {
		return
	}
	if b.token == nil {
		b.renewal = &incluster.JoinToken{API: b.reach("--wait=infrastructure"), TTL: TokenTTL, Least: tokenLeft, Most: tokenWeek, After: graph.On(b.store)}
		b.token = graph.Add(b.Graph, "join-token", b.renewal)
	}
	d.Token, d.Renewal = b.token, b.renewal
	switch {
	case !g.pool:
		b.renewal.Most = tokenDay
	case d.Backend == boot.UserData:
		b.renewal.Inline = true
	default:
		b.renewal.Shared = append(b.renewal.Shared, d)
	}
}

// grows reports whether machines of kubeadm are added by Auto Scaling, when
// nothing of ours runs.
func (b *builder) grows() bool {
	return slices.ContainsFunc(b.m.Pools, func(p manifest.Pool) bool {
		return p.Scaling != nil && p.Bootstrap.Kubeadm != nil && boot.ByToken(&p.Bootstrap.Kubeadm.Spec)
	})
}

// keeps has a new machine of the control plane keep the token valid, for
// clusters that grow by themselves.
func (b *builder) keeps(g group, r *ec2.Instance, d *bootdata.Data) {
	if !g.controlPlane || g.kubeadm == nil || !b.grows() {
		return
	}
	d.Machine.Spec = boot.KeepToken(*g.kubeadm, TokenTTL)
	r.Tags = r.Tags.With(cloud.Tags{keeperTag: "true"})
	b.kept = true
}

// keepers looks for machines of the control plane that keep the token valid.
func (b *builder) keepers() {
	for _, m := range b.inv.Machines {
		b.kept = b.kept || m.Tags[keeperTag] != "" && m.Status != "shutting-down"
	}
}
