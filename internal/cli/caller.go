package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// printRefusal prints what to do if AWS has refused the caller.
func printRefusal(ctx context.Context, e *env.Env, cmd *cobra.Command, err error) {
	var lacks *plan.PermissionError
	if errors.As(err, &lacks) && lacks.Permissions.Policy != nil && cmd.Name() != "plan" { // a plan contains it
		var policy strings.Builder
		_ = render.Encode(&policy, render.JSON, lacks.Permissions.Policy) // a struct of strings
		e.Story("Attach this policy to get the missing permissions:\n\n%s", policy.String())
	}
	if lacks != nil && cmd.Name() == "create" {
		e.Story("IAM does not know session policies and conditions of service control policies. If its answer is wrong, --check=false goes on without it.")
	}
	a := reconcile.CallerRefusalOf(err)
	if !a.Any() {
		return
	}
	profile := ""
	if f := cmd.Flag("profile"); f != nil {
		profile = f.Value.String()
	}
	s := e.CredentialSource(context.WithoutCancel(ctx), profile)
	switch {
	case a.Expired && s.SSO:
		e.Story("The credentials of %s have expired. Log in again:\n\n  %s\n", s.Name, s.Login)
	case a.Expired:
		e.Story("The credentials of %s have expired: get new ones. If they have not, check the clock of this machine.", s.Name)
	case a.Invalid:
		e.Story(
			"AWS does not accept the access key of %s: it may be deleted or inactive, its secret key may be wrong, or the region is not enabled in the account.",
			s.Name,
		)
	case !upstream(cmd):
		e.Story("The caller lacks %s. To see the policy that a cluster needs:\n\n  %s cluster policy -f FILE\n", lacking(a.Denied), name)
	}
}

// lacking lists actions, with the statements of the policy that allow them.
func lacking(actions []string) string {
	var parts []string
	for _, action := range actions {
		if sid := reconcile.StatementOf(action); sid != "" {
			action += " (statement " + sid + " of the policy)"
		}
		parts = append(parts, action)
	}
	return strings.Join(parts, ", ")
}
