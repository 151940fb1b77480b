package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Etcd returns the diagnosis of a check of etcd's members that does not end, because the API server
// does not answer: etcd may have no quorum. had are the machines of the control plane when the run
// began, and wanted is how many the manifest has.
func Etcd(had []string, wanted int) graph.Diagnosis {
	return func(ctx context.Context, c *cloud.Clients) (findings []string, look string) {
		all, err := ec2.InstanceInventory(ctx, c)
		if err != nil {
			return []string{fmt.Sprintf("machines of the control plane: %v", err)}, ""
		}
		var running []string
		for _, id := range had {
			if m := all.ByID[id]; m != nil && !m.IsTerminating() {
				running = append(running, id)
			}
		}
		if len(running) < wanted {
			return []string{quorum(running, wanted)}, ""
		}
		return nil, ""
	}
}

// quorum says how many of its members etcd needs, and which machines of the control plane are left.
func quorum(running []string, wanted int) string {
	slices.Sort(running)
	need := plan.Quorum(wanted)
	machines := strings.Join(running, ", ")
	if len(running) < need {
		return fmt.Sprintf("etcd has lost its quorum, if it had %s: it needs %d, and only %s (%s). Another run does not repair that. "+
			"The data is on the machines that are left: do not terminate them. The next run says what can be done", text.Count(wanted, "member"), need, existOf(len(running)), machines)
	}
	return fmt.Sprintf("etcd needs %d of its %s to answer, and %s left (%s): reboot one that does not respond with "+
		"'aws ec2 reboot-instances --instance-ids ID', and do not terminate any: they have the data", need, text.Count(wanted, "member"), areLeft(len(running)), machines)
}

func existOf(n int) string {
	if n == 1 {
		return "1 machine exists"
	}
	return fmt.Sprintf("%d machines exist", n)
}

func areLeft(n int) string {
	if n == 1 {
		return "1 machine is"
	}
	return fmt.Sprintf("%d machines are", n)
}
