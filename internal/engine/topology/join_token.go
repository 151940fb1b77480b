package topology

import (
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

const (
	// TokenTTL is how long a join token is valid after it is created or renewed: long
	// enough for a slow run.
	TokenTTL = 2 * time.Hour
	// tokenLeft is how long a token has to be valid when a machine is launched: the
	// machine boots, and kubeadm join tries for 20 minutes.
	tokenLeft = 30 * time.Minute
	// unkeptTTL is how long a token is valid that no machine of the control plane keeps valid: as
	// long as the certificates that kubeadm makes for such a machine by default. Before they expire,
	// the machine has to be replaced.
	unkeptTTL = 365 * 24 * time.Hour
	// The maximum age of a token when a run launches machines, and when only pools use
	// it: a plan should not show a change of the token every day.
	tokenDay, tokenWeek = 24 * time.Hour, 7 * 24 * time.Hour
	// tokenTag marks machines of the control plane that renew the token.
	tokenTag = "clusterawsadm/keeps-join-token" //nolint:gosec // a tag
)

// addJoinToken adds the token with which machines join a cluster that exists, including
// one that Cluster API created and that does not have this token. It is nil if no machine
// joins with it. A run that does not use the API server cannot know whether a token is
// valid.
func addJoinToken(g *graph.Graph, in inputs, sources bootSources, api *incluster.API, plan machinePlan) *incluster.CurrentToken {
	if !in.usesAPIServer() || !in.hasControlPlane() || in.o.Adopt { // an import makes no token
		return nil
	}
	token := &incluster.JoinToken{API: api, TTL: TokenTTL, Least: tokenLeft, Most: tokenWeek, Asks: in.o.TakesBack, After: graph.On(sources.bucket)}
	joins := slices.ContainsFunc(plan.groups, groupPlan.joinsByToken)
	if joins {
		token.Most = tokenDay
	}
	pools := in.poolsByToken()
	for _, x := range pools {
		if backendOf(x) == boot.UserData {
			token.Inline = true
		} else {
			token.Shared = append(token.Shared, in.poolData(sources, x))
		}
	}
	if !joins && len(pools) == 0 {
		return nil
	}
	if len(pools) > 0 && !plan.keepsToken {
		token.Long = unkeptTTL
	}
	return &incluster.CurrentToken{Ref: graph.Add(g, incluster.JoinTokenKind, token), Token: token}
}

// KeptJoinToken is the join token of pools that get machines again. Its value does not change, because launch templates may contain
// it. If machines of the control plane renew the token, the run does not make it valid for longer than usual.
func KeptJoinToken(api *incluster.API, machines []ec2.InstanceState, after []graph.Edge) *incluster.JoinToken {
	token := &incluster.JoinToken{API: api, TTL: TokenTTL, Least: tokenLeft, Most: tokenWeek, Inline: true, Asks: true, After: after, Long: unkeptTTL}
	if slices.ContainsFunc(machines, func(m ec2.InstanceState) bool { return m.Tags[tokenTag] != "" }) {
		token.Long = 0
	}
	return token
}

// joinsByToken reports whether the run launches a machine of the group that joins with
// the token.
func (p groupPlan) joinsByToken() bool {
	return p.kubeadm != nil && boot.ByToken(p.kubeadm) && slices.ContainsFunc(p.launch, func(at place) bool { return !at.initializes })
}

// poolsByToken lists the pools whose machines Auto Scaling launches and which join with
// the token.
func (in inputs) poolsByToken() (out []group) {
	for _, pool := range in.m.Pools {
		if pool.Scaling != nil && pool.Bootstrap.Kubeadm != nil && boot.ByToken(&pool.Bootstrap.Kubeadm.Spec) {
			out = append(out, in.poolGroup(pool, nil))
		}
	}
	return out
}

// renewsToken reports whether the machines of a group renew the token: those of the
// control plane, if Auto Scaling may launch machines between runs.
func (in inputs) renewsToken(g group) bool {
	return g.controlPlane && g.kubeadm != nil && len(in.poolsByToken()) > 0
}

// keepsToken reports whether a machine of the control plane renews the token: one of the
// inventory, or one that is launched and replaces none.
func (in inputs) keepsToken(groups []groupPlan) bool {
	return slices.ContainsFunc(in.inv.Machines, func(m ec2.InstanceState) bool { return m.Tags[tokenTag] != "" }) ||
		slices.ContainsFunc(groups, func(p groupPlan) bool { return in.renewsToken(p.group) && len(p.launch) > 0 && !p.rolls() })
}
