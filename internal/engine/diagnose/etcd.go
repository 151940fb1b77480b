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
		var left []ec2.InstanceState
		stopped := false
		for _, id := range had {
			if m := all.ByID[id]; m != nil && !m.IsTerminating() {
				left, stopped = append(left, *m), stopped || m.Stopped
			}
		}
		if len(left) < wanted || stopped {
			return []string{quorum(left, wanted)}, ""
		}
		return nil, ""
	}
}

// quorum says how many of its members etcd needs, and which machines of the control plane are left. EC2 reboots only those that run.
func quorum(left []ec2.InstanceState, wanted int) string {
	var all []string
	var stopped []ec2.InstanceState
	for _, m := range left {
		all = append(all, m.ID)
		if m.Stopped {
			stopped = append(stopped, m)
		}
	}
	slices.Sort(all)
	need, machines, start := plan.Quorum(wanted), strings.Join(all, ", "), ""
	if len(stopped) > 0 {
		start = fmt.Sprintf("start %s with '%s', ", text.Count(len(stopped), "stopped machine"), ec2.StartCommand("", stopped...))
	}
	if len(left) < need {
		return fmt.Sprintf("etcd has lost its quorum, if it had %s: it needs %d, and only %s (%s). Another run does not repair that. "+
			"The data is on the machines that are left: do not terminate them. The next run says what can be done", text.Count(wanted, "member"), need, existOf(len(left)), machines)
	}
	return fmt.Sprintf("etcd needs %d of its %s to answer, and %s left (%s): %sreboot one that does not respond with "+
		"'aws ec2 reboot-instances --instance-ids ID', and do not terminate any: they have the data", need, text.Count(wanted, "member"), areLeft(len(left)), machines, start)
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
