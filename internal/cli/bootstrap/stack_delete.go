package bootstrap

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
)

func newDeleteStack(e *env.Env) *cobra.Command {
	f := newStackFlags(e, "delete-cloudformation-stack")
	cmd := &cobra.Command{
		Use:   "delete-cloudformation-stack",
		Short: "Delete the CloudFormation stack of the IAM objects",
		Long: `Delete the CloudFormation stack of the IAM objects, and wait until it is deleted.
Only spec.stackName and spec.region of the configuration are used.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return deleteStack(cmd.Context(), f) },
	}
	f.add(cmd)
	return cmd
}

func deleteStack(ctx context.Context, f *stackFlags) (err error) {
	_, a, s, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer a.Close(&err)
	e := f.env
	if _, err := fmt.Fprintf(e.Out, "Attempting to delete AWS CloudFormation stack %s\n", s.Name); err != nil {
		return err
	}
	began := a.Clock.Now()
	existed, err := s.Delete(ctx)
	switch {
	case err != nil:
		return f.advise(err)
	case !existed:
		e.Story("stack %s does not exist in %s: nothing was deleted", s.Name, s.Region)
	default:
		e.Story("stack %s in %s is deleted, in %s", s.Name, s.Region, a.Clock.Since(began).Round(time.Second))
	}
	return nil
}
