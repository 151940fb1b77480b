// Package resource has the commands below "resource".
package resource

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/format"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/internal/resources"
)

// New returns the command with its subcommands.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "resource", Short: "Show the AWS resources of clusters"}
	cmd.AddCommand(newList(e))
	return cmd
}

type listOptions struct {
	account.Flags
	resources.Options
	output format.Flag
}

func newList(e *env.Env) *cobra.Command {
	o := &listOptions{Flags: account.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the AWS resources of a cluster by tag",
		Long: `List the resources that Cluster API Provider AWS created for a cluster in a region:
those with the tag "sigs.k8s.io/cluster-api-provider-aws/cluster/NAME" and the
value "owned". With --all also those with the tag "kubernetes.io/cluster/NAME":
load balancers, volumes and security groups of the cloud controller and of CSI
drivers, and resources that are shared with the cluster.

IAM roles and instance profiles are not listed, because they have no region. The
list of the AWS tagging API is delayed: new resources may be missing for minutes,
and deleted resources may be listed for hours. 'clusterawsadm cluster describe NAME'
reads the state from each AWS service.`,
		Example: `  clusterawsadm resource list -n demo
  clusterawsadm resource list -n demo --all -o json | jq -r '.aws_resources[] | select(.ownership == "owned") | .arn'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVarP(&o.Cluster, "cluster-name", "n", "", "`NAME` of the cluster (required)")
	_ = cmd.MarkFlagRequired("cluster-name") // fails only for an unknown flag
	cmd.Flags().BoolVar(&o.All, "all", false, "also list resources of the cloud controller, and resources that are shared with the cluster")
	o.Add(cmd.Flags(), "r", "from the environment")
	o.output.Add(cmd)
	return cmd
}

// answer is the JSON output.
type answer struct {
	Cluster   string               `json:"cluster_name"`
	Resources []resources.Resource `json:"aws_resources"`
}

func (o *listOptions) run(ctx context.Context) (err error) {
	a, err := o.OpenPlain(ctx, "")
	if err != nil {
		return err
	}
	defer a.Close(&err)
	f, forPrograms := o.output.ForPrograms()
	if err := o.begin(forPrograms, a.Config.Region); err != nil {
		return err
	}
	all, err := resources.List(ctx, a.Config, o.Options)
	if err != nil {
		return err
	}
	if forPrograms {
		if all == nil {
			all = []resources.Resource{}
		}
		return render.Encode(o.Env.Out, f, answer{o.Cluster, all})
	}
	return o.table(all)
}

// begin prints what the command searches for: before a table on stdout, as upstream does,
// and not before JSON, which has to stay parseable.
func (o *listOptions) begin(forPrograms bool, region string) error {
	const line = "Attempting to fetch resources created by CAPA for cluster:%s present in %s"
	if forPrograms {
		o.Env.Story(line, o.Cluster, region)
		return nil
	}
	_, err := fmt.Fprintf(o.Env.Out, line+"\n\n", o.Cluster, region)
	return err
}

func (o *listOptions) table(all []resources.Resource) error {
	if len(all) == 0 {
		what := "created by CAPA"
		if o.All {
			what = "of the cluster"
		}
		_, err := fmt.Fprintf(o.Env.Out, "Could not find any AWS resource %s\n", what)
		return err
	}
	if _, err := fmt.Fprintln(o.Env.Out, "Following resources are found: "); err != nil {
		return err
	}
	headers := []string{"PARTITION", "SERVICE", "REGION", "ACCOUNTID", "RESOURCE", "ARN"}
	if o.All {
		headers = append(headers, "OWNERSHIP")
	}
	rows := make([][]string, len(all))
	for i, r := range all {
		rows[i] = []string{r.Partition, r.Service, r.Region, r.AccountID, r.Resource, r.ARN}
		if o.All {
			rows[i] = append(rows[i], r.Ownership)
		}
	}
	return render.Table(o.Env.Out, headers, rows)
}
