package topology

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/ordered"
)

// templateOf names what the machines of a group are made from: their version,
// what kubeadm is told, and what AWS cannot change once they run. What is mended
// in place, CoreDNS among it, is no reason to replace them.
func templateOf(g group) string {
	spec := g.spec.DeepCopy()
	spec.AdditionalTags, spec.AdditionalSecurityGroups, spec.InstanceMetadataOptions, spec.ProviderID, spec.InstanceID = nil, nil, nil, nil, nil
	kubeadm := g.kubeadm.DeepCopy()
	if kubeadm != nil && g.controlPlane {
		kubeadm.InitConfiguration = bootstrapv1.InitConfiguration{} // it has been, and the others join
		kubeadm.ClusterConfiguration.DNS = bootstrapv1.DNS{}
	}
	var words []string
	parts := []any{spec, kubeadm, g.zone}
	if g.eks != nil {
		parts = append(parts, g.eks.Config, g.eks.Nodeadm)
	}
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return "" // no type of these fails
		}
		words = append(words, string(text))
	}
	words = append(words, g.version, string(g.data))
	return suffix(words...) + suffix(append(words, "")...)
}

// outdated takes the machines out of their places that are to be replaced.
func (b *builder) outdated(g group, taken map[int]existing) (old []ec2.InstanceState) {
	if !b.rolls(g) {
		return nil
	}
	for i, e := range taken {
		if b.outdatedBecause(g, e.state) != "" {
			old = append(old, e.state)
			delete(taken, i)
		}
	}
	ordered.By(old, func(x, y ec2.InstanceState) int {
		return cmp.Or(x.LaunchedAt.Compare(y.LaunchedAt), cmp.Compare(x.Tags[cloud.ResourceTag], y.Tags[cloud.ResourceTag]))
	})
	return old
}

// remarkOn tells of machines that stay though they are outdated, and notes those
// of which nobody knows.
func (b *builder) remarkOn(g group, taken map[int]existing) {
	outdated := 0
	for _, e := range taken {
		switch {
		case g.onDelete && b.outdatedBecause(g, e.state) != "":
			outdated++
		case !g.onDelete && e.state.Tags[cloud.TemplateTag] == "":
			b.untold = append(b.untold, e.state.ID)
		}
	}
	if outdated > 0 {
		b.remark("%s: %s outdated; by the strategy OnDelete one is replaced when somebody terminates it", g.origin, isOrAre(outdated, "machine"))
	}
}

func isOrAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// outdatedBecause says why a machine is to be replaced; "" if it is not. One that
// does not say which template it was made from was made by Cluster API, or
// before it was noted: it stays. rollout.after asks for machines that were
// launched since, as "clusterctl alpha rollout restart" does; and what kubeadm
// gives a machine of the control plane to serve with, rollout.before has
// replaced in time.
func (b *builder) outdatedBecause(g group, m ec2.InstanceState) string {
	have, now := m.Tags[cloud.TemplateTag], b.inv.Now
	switch {
	case have != "" && have != g.template:
		return "made from another template"
	case now.IsZero() || m.LaunchedAt.IsZero():
	case !g.after.IsZero() && !now.Before(g.after) && m.LaunchedAt.Before(g.after):
		return "launched before rollout.after, " + g.after.UTC().Format(time.RFC3339)
	case g.renew > 0 && !now.Before(b.expiry(m).Add(-g.renew)):
		return "its certificates expire on " + b.expiry(m).Format(time.DateOnly)
	}
	return ""
}

// day is that of Cluster API, in which it counts the validity of certificates.
const day = 24 * time.Hour

// expiry is when the certificates of a machine of the control plane expire, at
// the earliest: kubeadm makes them when it has booted.
func (b *builder) expiry(m ec2.InstanceState) time.Time {
	config, _ := b.clusterConfiguration()
	return m.LaunchedAt.Add(time.Duration(cmp.Or(config.CertificateValidityPeriodDays, 365)) * day).UTC()
}

// warnOfExpiry tells of a control plane whose certificates expire within two
// months, where the manifest does not say when to renew them.
func (b *builder) warnOfExpiry(g group, taken map[int]existing) {
	if !g.controlPlane || g.renew > 0 || b.inv.Now.IsZero() {
		return
	}
	var first time.Time
	for _, e := range taken {
		if at := b.expiry(e.state); !e.state.LaunchedAt.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() && b.inv.Now.After(first.Add(-60*day)) {
		b.remark("%s: certificates of the control plane expire on %s; rollout.before.certificatesExpiryDays says when machines are replaced for it", g.origin, first.Format(time.DateOnly))
	}
}

// places chooses the places of a group's machines: those that are taken, as
// many as there are to be, and the lowest that are free for the rest. Of too
// many those of the highest places go, or as the manifest says.
func places(count int, taken map[int]existing, occupied map[int]bool, order clusterv1.MachineSetDeletionOrder) (stay, fresh []int) {
	stay = slices.Sorted(maps.Keys(taken))
	age := func(i, j int) int { return taken[i].state.LaunchedAt.Compare(taken[j].state.LaunchedAt) }
	switch order {
	case clusterv1.NewestMachineSetDeletionOrder:
		slices.SortStableFunc(stay, age)
	case clusterv1.OldestMachineSetDeletionOrder:
		slices.SortStableFunc(stay, func(i, j int) int { return age(j, i) })
	}
	stay = stay[:min(count, len(stay))]
	slices.Sort(stay)
	for i := 0; len(stay)+len(fresh) < count; i++ {
		if _, ok := taken[i]; !ok && !occupied[i] {
			fresh = append(fresh, i)
		}
	}
	return stay, fresh
}
