package look

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/runcommand"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// reading limits the time for the logs that are on machines.
const reading = 5 * time.Minute

// readMachineLogs reads the journal of the kubelet and the log of cloud-init on machines, by
// their IDs, where Systems Manager reaches them. names are the names of their files, by ID.
func readMachineLogs(ctx context.Context, l *cluster.Logs, c *cloud.Clients, names map[string]string) {
	if len(names) == 0 {
		return
	}
	ctx, cancel := c.Clock.WithTimeout(cloud.Optional(ctx), reading, nil)
	defer cancel()
	reader, err := runcommand.NewReader(c)
	if err != nil {
		l.Missing = append(l.Missing, fmt.Sprintf("kubelet and cloud-init logs of all machines: %v", err))
		return
	}
	ids, missing := slices.SortedFunc(maps.Keys(names), func(x, y string) int { return strings.Compare(names[x], names[y]) }), diagnose.Reasons{}
	for _, x := range []struct {
		folder  string
		command runcommand.Command
	}{{"kubelet", runcommand.KubeletLog(c.Now())}, {"cloud-init", runcommand.CloudInitLog()}} {
		outputs := reader.Read(ctx, ids, x.command)
		for _, id := range ids {
			file := path.Join(x.folder, names[id]+".txt")
			if err := outputs[id].Err; err != nil {
				missing.Add(file, err)
				continue
			}
			add(l, file, string(outputs[id].Data), nil)
		}
	}
	l.Missing = append(l.Missing, missing.Lines()...)
}
