package diagnose

import (
	"context"
	"regexp"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// JoinFailed returns what the console of a machine says about attempts to join that have
// failed for a reason that another machine may not meet; "" for none. It changes nothing.
func JoinFailed(ctx context.Context, c *cloud.Clients, n *incluster.Node) (string, error) {
	q := newMachineCheck(c, n.Machine, n.Parts)
	if q == nil {
		return "", nil
	}
	text, err := q.consoleText(cloud.ReadOnly(ctx))
	if err != nil {
		return "", err
	}
	if known, _ := q.known(text); known != nil && !known.another {
		return "", nil
	}
	failed := regexp.MustCompile(regexp.QuoteMeta(boot.JoinFailed) + ` \d+ failed|` + regexp.QuoteMeta(boot.JoinGaveUp))
	last := ""
	for _, line := range text {
		if at := failed.FindStringIndex(line); at != nil {
			last = shortLine(line[at[0]:])
		}
	}
	return last, nil
}
