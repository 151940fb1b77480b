package report

import (
	"fmt"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// foldErrors makes one error of those of many machines of a group that have the same text.
func foldErrors(all []string) (out []string) {
	count := map[string]int{}
	for _, text := range all {
		count[commonError(text)]++
	}
	for _, text := range all {
		key := commonError(text)
		switch n := count[key]; {
		case n > render.FewMachines:
			out = append(out, fmt.Sprintf("%d × %s", n, key))
			count[key] = 0
		case n > 0:
			out = append(out, text)
		}
	}
	return out
}

// commonError is an error without the name of the machine at its beginning:
// "machine/md-0/17: failed" becomes "machine/md-0/…: failed".
func commonError(text string) string {
	end := strings.IndexAny(text, " :")
	if end < 0 {
		return text
	}
	if g := plan.ID(text[:end]).Group(); g != "" {
		return g + "/…" + text[end:]
	}
	return text
}
