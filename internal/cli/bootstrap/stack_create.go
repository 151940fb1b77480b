package bootstrap

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap"
	"github.com/clusterawsadm/clusterawsadm/pkg/bootstrap/stack"
)

type createStack struct {
	*stackFlags
	dryRun, replace bool
}

func newCreateStack(e *env.Env) *cobra.Command {
	c := &createStack{stackFlags: newStackFlags(e, "create-cloudformation-stack")}
	cmd := &cobra.Command{
		Use:     "create-cloudformation-stack",
		Aliases: []string{"update-cloudformation-stack"},
		Short:   "Create or update the CloudFormation stack of the IAM objects",
		Long: `Create or update the CloudFormation stack of the IAM objects, and wait until AWS
has finished. A stack that is up to date is not changed.

IAM is global: one stack is enough for all regions. IAM objects with the same names
that are not part of the stack are reported before anything is changed.

The region of the stack comes from --region, from spec.region of the configuration
or from the environment, in this order.`,
		Example: `  clusterawsadm bootstrap iam create-cloudformation-stack --dry-run
  clusterawsadm bootstrap iam create-cloudformation-stack --config iam.yaml --region eu-west-1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.add(cmd)
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&c.replace, "replace-failed", false, "delete and recreate a stack that AWS cannot update")
	return cmd
}

func (c *createStack) run(ctx context.Context) (err error) {
	config, a, s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer a.Close(&err)
	body, err := config.Template().YAML()
	if err != nil {
		return err
	}
	w := stack.Wanted{Template: string(body), Tags: config.Spec.StackTags, ReplaceFailed: c.replace}
	if c.dryRun {
		return c.preview(ctx, s, w)
	}
	return c.apply(ctx, config, a, s, w)
}

func (c *createStack) apply(ctx context.Context, config *bootstrap.Config, a *account.Account, s *stack.Stack, w stack.Wanted) error {
	e := c.env
	if _, err := fmt.Fprintf(e.Out, "Attempting to create AWS CloudFormation stack %s\n", config.Spec.StackName); err != nil {
		return err
	}
	began := a.Clock.Now()
	outcome, err := s.Apply(ctx, w)
	if err != nil {
		return c.advise(err)
	}
	if outcome == stack.Unchanged {
		e.Story("stack %s in %s is up to date: nothing to change", s.Name, s.Region)
	} else {
		e.Story("stack %s in %s is %s, in %s", s.Name, s.Region, outcome, a.Clock.Since(began).Round(time.Second))
	}
	all, err := s.Resources(ctx)
	if err != nil {
		return err
	}
	return render.StackResources(e.Out, all)
}

// preview shows what would change. It returns the error that the command would return
// without --dry-run.
func (c *createStack) preview(ctx context.Context, s *stack.Stack, w stack.Wanted) error {
	e := c.env
	p, err := s.Preview(ctx, w)
	if err != nil {
		return err
	}
	if p.Status == "" && len(p.Steps) > 0 {
		e.Story("dry run: stack %s would be created in %s", s.Name, s.Region)
	} else if p.Status != "" {
		e.Story("dry run: stack %s in %s is in %s", s.Name, s.Region, p.Status)
	}
	if len(p.Steps) > 0 || p.Err == nil {
		if err := render.StackPreview(e.Out, p, e.OutStyle()); err != nil {
			return err
		}
	}
	return c.advise(p.Err)
}
