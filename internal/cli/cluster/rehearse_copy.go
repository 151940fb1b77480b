package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// planned is what a plan in the account itself says.
type planned struct {
	plan plan.Plan
	err  error
}

// copyAccount plans in the account, which shows what the manifest touches, and makes a copy
// of the account.
func (o *rehearseOptions) copyAccount(ctx context.Context, m *reconcile.Manifest, folder string) (p *planned, err error) {
	s, err := o.open(ctx, m.Region())
	if err != nil {
		return nil, err
	}
	defer s.Close(&err)
	asked := account.NewAsked()
	s.target.Config = asked.Listen(s.target.Config)
	s.target.Cost, s.target.CheckPermissions = o.cost.value == "on", true
	if m.Summary().AssumesRole {
		o.Env.Story("note: the copy is of the caller's account, and not of the one of the identity in the manifest, if that is another one")
	}
	p = &planned{}
	if p.plan, p.err = reconcile.Open(m, s.target).Plan(ctx); p.err != nil {
		if ctx.Err() != nil {
			return nil, p.err
		}
		if !errors.As(p.err, new(*plan.RefusedError)) { // the copy refuses it for the same reasons
			o.Env.Story("note: there is no plan in the account itself, so that the copy may lack something: %s", env.Valid(p.err.Error()))
		}
	}
	return p, o.CopyOf(ctx, s.Account, asked, folder, o.save)
}

// exists reports whether something of the cluster exists in the account.
func (p *planned) exists() bool {
	return p != nil && slices.ContainsFunc(p.plan.Steps, func(s plan.Step) bool {
		return s.CloudID != "" && s.Action != plan.Existing && s.Action != plan.Create
	})
}

// compare says in what the plan in the copy differs from the one in the account.
func (p *planned) compare(f *flags, copied plan.Plan) {
	if p == nil || p.err != nil {
		return
	}
	if p.exists() {
		f.Env.Story(
			"note: the cluster exists: its API server is not in the copy, so that the rehearsal does not wait for it, and the boot data of machine pools counts as changed",
		)
	}
	var differ []string
	for _, s := range p.plan.Steps {
		at := slices.IndexFunc(copied.Steps, func(c plan.Step) bool { return c.Resource == s.Resource })
		if at < 0 || copied.Steps[at].Action != s.Action {
			differ = append(differ, string(s.Resource))
		}
	}
	if len(differ) > 0 {
		f.Env.Story("warning: the plan in the copy differs from the one in the account: %s", text.Several(differ))
	}
}
