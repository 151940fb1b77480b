package report

import (
	"cmp"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// path finds the critical path: the resource that was ready last, the one that it waited for
// last, and so on.
func (h *history) path() {
	last := h.lastReady()
	if last == nil {
		return
	}
	to := last.ready
	for n, seen := last, map[*resource]bool{}; n != nil && !seen[n]; {
		seen[n] = true
		h.r.Path = append(h.r.Path, PathStep{Name: string(n.id), Row: n.row, From: n.begins(), To: to})
		h.r.Rows[n.row].Path = true
		if len(n.waited) == 0 || !n.waited[0].Last {
			break
		}
		to = n.waited[0].Ready
		n = h.known[plan.ID(n.waited[0].Name)]
	}
	slices.Reverse(h.r.Path)
}

// lastReady is the resource that was done last, or nil.
func (h *history) lastReady() *resource {
	done := slices.DeleteFunc(slices.Clone(h.all), func(n *resource) bool { return n.state != render.BoxDone || n.row < 0 })
	if len(done) == 0 {
		return nil
	}
	return slices.MaxFunc(done, func(a, b *resource) int { return cmp.Compare(a.ready, b.ready) })
}
