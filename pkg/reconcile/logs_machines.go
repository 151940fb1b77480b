package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/runcommand"
)

// reading limits the time for the logs that are on machines.
const reading = 5 * time.Minute

// readMachines reads the journal of the kubelet and the log of cloud-init on machines, by
// their IDs, where Systems Manager reaches them. names are the names of their files, by ID.
func (l *Logs) readMachines(ctx context.Context, c *cloud.Clients, names map[string]string) {
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(cloud.Optional(ctx), reading)
	defer cancel()
	why := map[string][]string{} // files, by the reason why they are missing
	err := l.readOnline(ctx, c, names, func(file string, err error) { why[err.Error()] = append(why[err.Error()], file) })
	if err != nil {
		l.Missing = append(l.Missing, fmt.Sprintf("kubelet and cloud-init logs of all machines: %v", err))
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		slices.Sort(why[reason])
		l.Missing = append(l.Missing, strings.Join(why[reason], ", ")+": "+reason)
	}
}

// readOnline reads the logs of the machines that Systems Manager reaches, and says for each file
// that is missing why it is.
func (l *Logs) readOnline(ctx context.Context, c *cloud.Clients, names map[string]string, missing func(file string, err error)) error {
	reader, err := runcommand.NewReader(c)
	if err != nil {
		return err
	}
	ids := slices.SortedFunc(maps.Keys(names), func(x, y string) int { return strings.Compare(names[x], names[y]) })
	online, err := reader.Online(ctx, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		if !online[id] {
			missing("kubelet and cloud-init logs of "+names[id], errors.New(runcommand.Unreached))
		}
		return !online[id]
	})
	for _, x := range []struct {
		folder  string
		command runcommand.Command
	}{{"kubelet", runcommand.KubeletLog(c.Now())}, {"cloud-init", runcommand.CloudInitLog()}} {
		outputs := reader.Read(ctx, ids, x.command)
		for _, id := range ids {
			file := path.Join(x.folder, names[id]+".txt")
			if err := outputs[id].Err; err != nil {
				missing(file, err)
				continue
			}
			l.add(file, string(outputs[id].Data), nil)
		}
	}
	return nil
}
