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
	missing := func(what string, err error) {
		i.LeftOut = append(i.LeftOut, fmt.Sprintf("what %s booted with: %v", what, err))
	}
	machines := found.Newest()
	reader, err := runcommand.NewReader(c)
	if err != nil {
		missing("the machines", err)
		return
	}
	found.Booted = map[string]*boot.Booted{}
	for id, out := range reader.Read(ctx, machines, runcommand.UserData()) {
		if out.Err != nil {
			missing(id, out.Err)
			continue
		}
		b, err := boot.ParseBooted(out.Data, secretIn)
		if err != nil {
			missing(id, err)
			continue
		}
		found.Booted[id] = b
	}
}

// secretIn reports whether a text may contain a secret.
func secretIn(text string) bool { return diagnose.Redacted(text) != text }
