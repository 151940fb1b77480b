package adopt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/runcommand"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/diagnose"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/discover"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// reading limits the time for what is read on machines and from the stores of their boot data.
const reading = 5 * time.Minute

// readStoredBootData reads what AWS stores of the boot data of pools, and of the newest machine
// of every group. It says what cannot be read, and goes on. Machines delete some of it when they
// have booted.
func (i *Imported) readStoredBootData(ctx context.Context, c *cloud.Clients, found *discover.SelfManaged) {
	ctx, cancel := c.Clock.WithTimeout(cloud.Optional(ctx), reading, nil)
	defer cancel()
	found.Booted = map[string]*boot.Booted{}
	missing := diagnose.Reasons{}
	for _, p := range found.Pools {
		data, err := bootdata.Stored(ctx, c, p.Template.UserData)
		addBooted(found, missing, p.Template.ID, data, err)
	}
	for _, id := range found.Newest() {
		data, err := storedOf(ctx, c, id)
		addBooted(found, missing, id, data, err)
	}
	i.leaveOutBootData(missing)
}

// readNodeBootData reads what the nodes of an EKS cluster boot with: those of node groups with a
// launch template of the cluster's own, of Auto Scaling groups, and machines.
func (i *Imported) readNodeBootData(ctx context.Context, c *cloud.Clients, found *discover.EKS) {
	ctx, cancel := c.Clock.WithTimeout(cloud.Optional(ctx), reading, nil)
	defer cancel()
	found.Booted = map[string]*boot.BootedEKS{}
	missing := diagnose.Reasons{}
	add := func(id string, data []byte, err error) {
		if errors.Is(err, bootdata.ErrDeleted) {
			return // a comment at the bootstrap configuration says that it is not known
		}
		var b *boot.BootedEKS
		if err == nil {
			b, err = boot.ParseBootedEKS(data, secretIn)
		}
		if err != nil {
			missing.Add(id, err)
			return
		}
		found.Booted[id] = b
	}
	templates := slices.Collect(maps.Values(found.Templates))
	for _, p := range found.Workers.Pools {
		templates = append(templates, p.Template)
	}
	for _, t := range templates {
		if len(t.UserData) > 0 { // otherwise EKS makes it
			data, err := bootdata.Stored(ctx, c, t.UserData)
			add(t.ID, data, err)
		}
	}
	for _, id := range found.Workers.Newest() {
		data, err := storedOf(ctx, c, id)
		add(id, data, err)
	}
	i.leaveOutBootData(missing)
}

// compareNodeTemplates finds the node groups whose nodes do not boot with what the manifest says.
func (i *Imported) compareNodeTemplates(ctx context.Context, templates map[string]ec2.TemplateContent) error {
	if len(templates) == 0 {
		return nil
	}
	changed, err := i.changedTemplates(ctx)
	for _, group := range slices.Sorted(maps.Keys(templates)) {
		if changed[ec2.LaunchTemplateKind+"/"+plan.ID(templates[group].Name)] {
			i.Templates = append(i.Templates, cluster.TemplateDifference{Group: group, Pool: true, Fields: []string{"bootstrap"}})
		}
	}
	return err
}

// storedOf reads what AWS stores of the boot data of a machine.
func storedOf(ctx context.Context, c *cloud.Clients, machine string) ([]byte, error) {
	data, err := ec2.InstanceUserData(ctx, c, machine)
	if cloud.Denied(err) {
		return nil, errors.New("the caller lacks ec2:DescribeInstanceAttribute")
	}
	if err != nil {
		return nil, err
	}
	return bootdata.Stored(ctx, c, data)
}

// addBooted adds what a machine, or the machines of a pool, boot with. What AWS has deleted is
// not missing: a comment at the bootstrap configuration says that it is not known.
func addBooted(found *discover.SelfManaged, missing diagnose.Reasons, id string, data []byte, err error) {
	if errors.Is(err, bootdata.ErrDeleted) {
		return
	}
	var b *boot.Booted
	if err == nil {
		b, err = boot.ParseBooted(data, secretIn)
	}
	if err != nil {
		missing.Add(id, err)
		return
	}
	found.Booted[id] = b
}

func (i *Imported) leaveOutBootData(missing diagnose.Reasons) {
	for _, line := range missing.Lines() {
		i.LeftOut = append(i.LeftOut, "boot data of "+line)
	}
}

// readBootData reads what the newest machine of every group has booted with, on the machine,
// unless AWS stores it. It says what cannot be read, and goes on.
func (i *Imported) readBootData(ctx context.Context, c *cloud.Clients, found *discover.SelfManaged) {
	ctx, cancel := c.Clock.WithTimeout(cloud.Optional(ctx), reading, nil)
	defer cancel()
	machines := slices.DeleteFunc(found.Newest(), func(id string) bool { return found.Booted[id] != nil })
	if len(machines) == 0 {
		return
	}
	reader, err := runcommand.NewReader(c)
	if err != nil {
		i.LeftOut = append(i.LeftOut, fmt.Sprintf("boot data of all machines: %v", err))
		return
	}
	missing := diagnose.Reasons{}
	for id, out := range reader.Read(ctx, machines, runcommand.UserData()) {
		addBooted(found, missing, id, out.Data, out.Err)
	}
	i.leaveOutBootData(missing)
}

// secretIn reports whether a text may contain a secret.
func secretIn(text string) bool { return diagnose.Redacted(text) != text }
