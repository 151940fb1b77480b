package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// applying is the phase that carries out the plan.
type applying struct{ *planning }

// Apply creates the cluster of the manifest, or updates it. It can be stopped at any
// time, and run again.
func (c *Cluster) Apply(ctx context.Context, o cluster.Options) (cluster.Result, error) {
	l := &Looking{Session: Begin(c, o.Observe), pricing: newPricing(c.Target.Cost && o.Confirm != nil)}
	p := &planning{Looking: l}
	if err := p.Lock(ctx, "create"); err != nil {
		return p.result(err)
	}
	defer p.Unlock(ctx)
	p.planned = o.Planned
	defer p.pricing.stop()
	if err := p.Look(ctx); err != nil {
		return p.result(err)
	}
	if err := p.CheckManager(); err != nil {
		return p.result(err)
	}
	if err := p.preflight(ctx); err != nil {
		return p.result(err)
	}
	recipients, err := p.prepareBackup(ctx)
	if err != nil {
		return p.result(err)
	}
	if o.Confirm != nil && !p.Plan.Empty() {
		p.pricing.finish(l)
	}
	if err := p.agree(ctx, o); err != nil {
		return p.result(err)
	}
	if p.startedByHand {
		if err := p.Cloud.Lock.SetStopped(ctx, nil); err != nil {
			return p.result(fmt.Errorf("record that the cluster runs: %w", err))
		}
	}
	if p.Plan.Empty() {
		return p.result(p.recordTagKeys(ctx, p.Built.TagKeys)) // an earlier run may have died before it did
	}
	if err := p.backUpFirst(ctx, recipients); err != nil {
		return p.result(err)
	}
	return p.result(applying{p}.apply(ctx))
}

// agree asks for the confirmation, and records the saved plan that the run carries out from now on.
func (p *planning) agree(ctx context.Context, o cluster.Options) error {
	shown := p.public()
	shown.Continues = p.Cloud.Lock.Continues(o.Planned)
	if err := p.confirmed(o.Confirm, shown); err != nil || o.Planned == "" || p.Plan.Empty() {
		return err
	}
	if err := p.Cloud.Lock.SetPlan(ctx, o.Planned); err != nil {
		return fmt.Errorf("record the plan that is carried out: %w", err)
	}
	return nil
}

// Apply carries out the plan.
func (l *Looking) Apply(ctx context.Context) error {
	return applying{&planning{Looking: l}}.apply(ctx)
}

// apply carries out the plan. If it fails only because of machines that can be replaced, it
// carries out a second plan, which replaces them. It does so once.
func (a applying) apply(ctx context.Context) error {
	done, built := a.Plan, a.Built
	if err := a.recordTagKeys(ctx, a.Inventory.TagKeys.And(built.TagKeys)); err != nil {
		return err
	}
	failure := a.executor.Apply(ctx, built.Graph)
	if failure == nil {
		return a.recordTagKeys(ctx, built.TagKeys)
	}
	again, err := a.replaceFailedJoins(ctx, failure)
	if !again && err == nil && ctx.Err() == nil {
		again, err = a.becameUnhealthy(ctx, failure)
	}
	if err == nil && again {
		err = a.preflight(ctx)
	}
	switch {
	case err != nil:
		return errors.Join(err, failure)
	case !again:
		a.Plan, a.Built = done, built
		return failure
	}
	a.Plan.Steps = append(done.Steps, a.Plan.Steps...)
	if err := a.executor.Apply(ctx, a.Built.Graph); err != nil {
		return err
	}
	return a.recordTagKeys(ctx, a.Built.TagKeys)
}

// recordTagKeys writes the record of the keys of tags, if it differs. Before its first write, a run adds the keys that it will set to the record. At
// its end, it removes the keys that no resource has any more.
func (l *Looking) recordTagKeys(ctx context.Context, keys secrets.TagKeys) error {
	if keys.String() == l.Inventory.TagKeys.String() {
		return nil
	}
	if err := keys.Write(ctx, l.Cloud); err != nil {
		if cloud.Expired(err) {
			err = &cloud.LoginError{Err: err}
		}
		return fmt.Errorf("record the keys of tags: %w", err)
	}
	l.Inventory.TagKeys = keys
	return nil
}
