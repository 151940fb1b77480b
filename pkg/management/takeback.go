package management

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/management"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// Takeback takes a cluster back from the controllers of a management cluster: one that was handed
// over, or one that they have made. From, Namespace, Name, Target and Write are required.
type Takeback struct {
	From            *Cluster
	Namespace, Name string // of the Cluster object

	// Target returns the account of the cluster for its manifest.
	Target func(ctx context.Context, m *reconcile.Manifest) (cluster.Target, error)
	// Load reads the manifest and, after it, the Secrets of the cluster; nil is reconcile.Load.
	Load func(ctx context.Context, sources []input.Source) (*reconcile.Manifest, error)
	// File is the name of the manifest in messages; "" is the name of the cluster with ".yaml".
	File string

	// Check is called with the manifest before anything is changed; an error ends the takeback. It may be nil.
	Check func(ctx context.Context, manifest []byte) error
	// Confirm is called before the Cluster is paused, with the steps that do more than to record what
	// exists; an error ends the takeback. It may be nil.
	Confirm func(ctx context.Context, steps []plan.Step) error
	// Write stores the manifest, which has no secrets, when the cluster is taken back.
	Write func(manifest []byte) error

	// Earlier is the manifest that an earlier run has written; nil if there is none. With it, a takeback of
	// a cluster whose objects do not exist any more is done if a plan of the manifest is empty.
	Earlier []byte
	// Keep leaves the objects in the management cluster, paused.
	Keep bool
	// Tell is called with what was done; it may be nil.
	Tell func(text string)
}

// Run takes the cluster back, in these steps:
//
//   - It pauses the Cluster object, and makes a manifest of the objects.
//   - It copies the cluster's certificates and keys from the management cluster to the secrets store of
//     the cluster, and tags the cluster's resources in AWS, so that runs find both.
//   - It checks that a plan of the manifest is empty, and writes the manifest.
//   - It removes the objects and their finalizers from the management cluster. Nothing in AWS is deleted.
//
// It can be stopped at any time, and run again.
//
// If the cluster is not as its objects say, the error is a RefusedError, and nothing was changed.
func (t Takeback) Run(ctx context.Context) error {
	if t.File == "" {
		t.File = t.Name + ".yaml"
	}
	found, err := t.From.c.Takeback(ctx, t.Namespace, t.Name)
	if errors.As(err, new(*management.MissingError)) && t.takenBefore(ctx) {
		t.tell("an earlier run has taken cluster %s back: a plan of %s is empty", t.Name, t.File)
		return nil
	}
	if err != nil {
		return &plan.RefusedError{Reasons: []error{err}}
	}
	if found.Taken() {
		t.tell("an earlier run has taken cluster %s back, and has begun to remove its objects", t.Name)
		return t.remove(ctx, found)
	}
	steps, err := t.plan(ctx, found)
	if err == nil && t.Confirm != nil {
		err = t.Confirm(ctx, steps)
	}
	if err == nil {
		err = t.pause(ctx, found)
	}
	if err != nil {
		return err
	}
	if err := t.take(ctx, found, steps); err != nil {
		return errors.Join(err, found.Undo(context.WithoutCancel(ctx)))
	}
	return t.remove(ctx, found)
}

func (t Takeback) tell(format string, args ...any) {
	if t.Tell != nil {
		t.Tell(fmt.Sprintf(format, args...))
	}
}

// takenBefore reports whether an earlier run has taken the cluster back and ended before it
// could say so: its manifest exists, a plan of it is empty, and no management cluster manages
// the cluster.
func (t Takeback) takenBefore(ctx context.Context) bool {
	if len(t.Earlier) == 0 {
		return false
	}
	m, c, err := t.open(ctx, input.Source{Name: t.File, Data: t.Earlier})
	if err != nil || m.Name() != t.Name {
		return false
	}
	// A run that has nothing to do changes nothing, and neither does one that is declined.
	_, err = c.Apply(ctx, cluster.Options{Confirm: func(plan.Plan) (bool, error) { return false, nil }})
	return err == nil
}

// open loads a manifest, and opens its cluster.
func (t Takeback) open(ctx context.Context, sources ...input.Source) (*reconcile.Manifest, *reconcile.Cluster, error) {
	load := t.Load
	if load == nil {
		load = func(_ context.Context, sources []input.Source) (*reconcile.Manifest, error) {
			return reconcile.Load(sources, input.LoadOptions{}) //nolint:contextcheck // it reads what is in memory
		}
	}
	m, err := load(ctx, sources)
	if err != nil {
		return nil, nil, err
	}
	target, err := t.Target(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	target.Wait = plan.Infrastructure
	if m.MostWait() != plan.Infrastructure {
		target.Wait = plan.APIServer // it knows from which template a machine was made
	}
	return m, reconcile.Open(m, target), nil
}

// read makes the manifest of the objects, and opens the cluster with it and its keys.
func (t Takeback) read(ctx context.Context, found *management.Takeback) (manifest []byte, c *reconcile.Cluster, err error) {
	if manifest, err = reconcile.ManifestOf(found.Objects()); err != nil {
		return nil, nil, err
	}
	if t.Check != nil {
		if err := t.Check(ctx, manifest); err != nil {
			return nil, nil, err
		}
	}
	keys, err := management.Documents(found.Secrets())
	if err != nil {
		return nil, nil, err
	}
	_, c, err = t.open(ctx, input.Source{Name: t.File, Data: manifest}, input.Source{Name: "the Secrets of the cluster", Data: keys})
	if errors.As(err, new(*input.InvalidError)) {
		err = fmt.Errorf("the manifest of the objects: %w", err)
	}
	return manifest, c, err
}

// manager identifies the management cluster.
func (t Takeback) manager(ctx context.Context) (plan.Manager, error) {
	id, err := t.From.c.ID(ctx)
	return plan.Manager{ID: id, Name: t.From.Name()}, err
}

// plan returns what the takeback changes in AWS, besides keys and tags. If it would be refused,
// that is the error.
func (t Takeback) plan(ctx context.Context, found *management.Takeback) ([]plan.Step, error) {
	_, c, err := t.read(ctx, found)
	if err != nil {
		return nil, err
	}
	manager, err := t.manager(ctx)
	if err != nil {
		return nil, err
	}
	return c.PlanTakeback(ctx, manager)
}

// pause pauses the Cluster, and reads its objects again when no controller works on them
// any more.
func (t Takeback) pause(ctx context.Context, found *management.Takeback) error {
	if err := found.Pause(ctx); err != nil {
		return err
	}
	t.tell("paused Cluster %s", t.Name)
	if err := found.AwaitPause(ctx); err != nil {
		return errors.Join(err, found.Undo(context.WithoutCancel(ctx)))
	}
	return found.Refresh(ctx)
}

// take takes the cluster back, and writes the manifest.
func (t Takeback) take(ctx context.Context, found *management.Takeback, steps []plan.Step) error {
	manifest, c, err := t.read(ctx, found)
	if err != nil {
		return err
	}
	manager, err := t.manager(ctx)
	if err != nil {
		return err
	}
	res, err := c.Takeback(ctx, manager, steps)
	if err != nil {
		return err
	}
	if n := res.Plan.Count(plan.Create, plan.Update) - len(steps); n > 0 {
		t.tell("recorded %s of the cluster: keys and tags", text.Count(n, "resource"))
	}
	if _, c, err = t.open(ctx, input.Source{Name: t.File, Data: manifest}); err != nil {
		return err
	}
	p, err := c.Plan(ctx)
	if err != nil {
		return err
	}
	if !p.Empty() {
		return &plan.HalfwayError{Err: errors.New("a plan of the manifest is not empty: the cluster has changed in the meantime; run it again")}
	}
	if err := t.Write(manifest); err != nil {
		return &plan.HalfwayError{Err: fmt.Errorf("the cluster is taken back, and its manifest is not written: %w", err)}
	}
	t.tell("wrote %s; a plan of it is empty", t.File)
	return nil
}

// remove removes the objects, unless they are kept.
func (t Takeback) remove(ctx context.Context, found *management.Takeback) error {
	if t.Keep {
		t.tell("the objects stay in %s, paused: a controller that works on them again would fight with other commands", t.From.Name())
		return nil
	}
	n, err := found.Remove(ctx)
	if err != nil {
		return &plan.HalfwayError{Err: err}
	}
	t.tell("removed %s from %s; nothing in AWS was deleted", text.Count(n, "object"), t.From.Name())
	return nil
}
