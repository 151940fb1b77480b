package reconcile

import (
	"context"
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/runcommand"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
)

// readBootData reads what the newest machine of every group has booted with, on the machine. It
// says what cannot be read, and goes on.
func (i *Imported) readBootData(ctx context.Context, c *cloud.Clients, found *discover.SelfManaged) {
	ctx, cancel := context.WithTimeout(cloud.Optional(ctx), reading)
	defer cancel()
	reader, err := runcommand.NewReader(c)
	if err != nil {
		i.LeftOut = append(i.LeftOut, fmt.Sprintf("boot data of all machines: %v", err))
		return
	}
	found.Booted = map[string]*boot.Booted{}
	missing := reasons{}
	for id, out := range reader.Read(ctx, found.Newest(), runcommand.UserData()) {
		b, err := (*boot.Booted)(nil), out.Err
		if err == nil {
			b, err = boot.ParseBooted(out.Data, secretIn)
		}
		if err != nil {
			missing.add(id, err)
			continue
		}
		found.Booted[id] = b
	}
	for _, line := range missing.lines() {
		i.LeftOut = append(i.LeftOut, "boot data of "+line)
	}
}

// secretIn reports whether a text may contain a secret.
func secretIn(text string) bool { return diagnose.Redacted(text) != text }
