// Package eks has the commands below "eks".
package eks

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/format"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

// none is the message for an empty table.
const none = "No EKS addons found"

// New returns the command with its subcommands.
func New(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "eks", Short: "Show the add-ons of EKS clusters, and create tokens for them"}
	addons := &cobra.Command{Use: "addons", Short: "List the add-ons of EKS clusters"}
	addons.AddCommand(newAvailable(e), newInstalled(e))
	cmd.AddCommand(addons, newToken(e))
	return cmd
}

type options struct {
	account.Flags
	cluster string
	output  format.Flag
}

func (o *options) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.cluster, "cluster-name", "n", "", "`NAME` of the cluster in EKS (required)")
	_ = cmd.MarkFlagRequired("cluster-name") // fails only for an unknown flag
	o.Add(cmd.Flags(), "r", "from the environment")
	o.output.Add(cmd)
}

func newAvailable(e *env.Env) *cobra.Command {
	o := &options{Flags: account.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:   "list-available",
		Short: "List the add-ons that EKS offers for a cluster",
		Long: `List all versions of all add-ons that EKS offers for the Kubernetes version of a
cluster.`,
		Example: `  clusterawsadm eks addons list-available -n demo
  clusterawsadm eks addons list-available -n demo -o json | jq -r '.addons[] | select(.compatibilities[].defaultVersion) | .name + " " + .version'`,
		Args: cobra.ArbitraryArgs, // upstream ignores arguments
		RunE: func(cmd *cobra.Command, _ []string) error { return o.available(cmd.Context()) },
	}
	o.add(cmd)
	return cmd
}

// availableList is the JSON output.
type availableList struct {
	Cluster string               `json:"cluster"`
	Addons  []eks.AvailableAddon `json:"addons"`
}

func (o *options) available(ctx context.Context) (err error) {
	a, err := o.OpenPlain(ctx, "")
	if err != nil {
		return err
	}
	defer a.Close(&err)
	all, kubernetes, err := eks.Available(ctx, a.Config, o.cluster)
	if err != nil {
		return err
	}
	if f, ok := o.output.ForPrograms(); ok {
		if all == nil {
			all = []eks.AvailableAddon{}
		}
		return render.Encode(o.Env.Out, f, availableList{o.cluster, all})
	}
	if len(all) == 0 {
		return o.say(none)
	}
	o.Env.Story("Available addons for cluster %s, Kubernetes %s:", o.cluster, kubernetes)
	rows := make([][]string, len(all))
	for i, d := range all {
		compatibilities := make([]string, len(d.Compatibilities))
		for i, c := range d.Compatibilities {
			compatibilities[i] = fmt.Sprintf("Cluster version: %s, default: %t, platform versions: %q", c.ClusterVersion, c.DefaultVersion, c.PlatformVersions)
		}
		rows[i] = []string{d.Name, d.Type, d.Version, listed(d.Architecture), listed(compatibilities)}
	}
	return render.Table(o.Env.Out, []string{"NAME", "TYPE", "VERSION", "ARCHITECTURES", "COMPATIBILITIES"}, rows)
}

// listed formats a list as in upstream's tables.
func listed(list []string) string { return "[" + strings.Join(list, " ") + "]" }

func newInstalled(e *env.Env) *cobra.Command {
	o := &options{Flags: account.Flags{Env: e}}
	cmd := &cobra.Command{
		Use:     "list-installed",
		Short:   "List the add-ons that are installed in a cluster",
		Example: `  clusterawsadm eks addons list-installed -n demo -o json | jq '.addons[] | select(.HealthIssues != [])'`,
		Args:    cobra.ArbitraryArgs, // upstream ignores arguments
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.installed(cmd.Context()) },
	}
	o.add(cmd)
	return cmd
}

// installedList is the JSON output.
type installedList struct {
	Cluster string               `json:"cluster"`
	Addons  []eks.InstalledAddon `json:"addons"`
}

func (o *options) installed(ctx context.Context) (err error) {
	a, err := o.OpenPlain(ctx, "")
	if err != nil {
		return err
	}
	defer a.Close(&err)
	all, err := eks.Installed(ctx, a.Config, o.cluster)
	if err != nil {
		return err
	}
	if f, ok := o.output.ForPrograms(); ok {
		return render.Encode(o.Env.Out, f, installedList{o.cluster, all})
	}
	if len(all) == 0 {
		return o.say(none)
	}
	o.Env.Story("Installed addons for cluster %s:", o.cluster)
	rows := make([][]string, len(all))
	for i, d := range all {
		role := ""
		if d.RoleARN != nil {
			role = *d.RoleARN
		}
		rows[i] = []string{d.Name, d.Version, d.Status, d.CreatedAt.UTC().String(), d.ModifiedAt.UTC().String(), role, strconv.Itoa(len(d.HealthIssues))}
	}
	return render.Table(o.Env.Out, []string{"NAME", "VERSION", "STATUS", "CREATED", "MODIFIED", "SA ARN", "ISSUES"}, rows)
}

func (o *options) say(line string) error {
	_, err := fmt.Fprintln(o.Env.Out, line)
	return err
}
