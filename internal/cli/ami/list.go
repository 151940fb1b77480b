package ami

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterawsadm/clusterawsadm/internal/cli/account"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/render"
	"github.com/clusterawsadm/clusterawsadm/pkg/ami"
)

type listOptions struct {
	account.Flags
	os, version, owner string
	allRegions         bool
	arch, output       choice
}

func newList(e *env.Env) *cobra.Command {
	o := &listOptions{
		Flags:  account.Flags{Env: e},
		arch:   choice{of: []string{ami.X8664, ami.Arm64}, wrong: "unknown architecture"},
		output: choice{"table", "table", []string{"table", "json", "yaml"}, "unknown printer type"},
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the machine images that there are",
		Long: `List the newest machine image of every version of Kubernetes, operating system
and region, those of x86_64 before those of arm64.

Versions are those of the four newest minors, as dl.k8s.io tells; where that is
out of reach, those that there are images of. Regions are those that the account
has switched on, unless --region or the environment names one.

A region that cannot be asked does not hide the others: they are printed, and
the exit code is 1.`,
		Example: `  clusterawsadm ami list --kubernetes-version v1.34.2 --os ubuntu-24.04
  clusterawsadm ami list --region eu-central-1 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	p := cmd.Flags()
	o.Add(p, "", "AWS_REGION, AWS_DEFAULT_REGION or DEFAULT_AWS_REGION; otherwise all")
	p.BoolVar(&o.allRegions, "all-regions", false, "all regions, whatever the environment says")
	p.StringVar(&o.os, "os", "", "operating system (default: all that images are published for)")
	p.StringVar(&o.version, "kubernetes-version", "", "version of Kubernetes, with or without a v (default: the supported ones)")
	p.StringVar(&o.owner, "owner-id", "", "account that owns the images, or self (default: "+ami.Owner+")")
	p.Var(&o.arch, "arch", "architecture: x86_64 or arm64 (default: both)")
	p.VarP(&o.output, "output", "o", "format of the answer: table, json, yaml")
	complete(cmd, "os", ami.OperatingSystems())
	complete(cmd, "arch", o.arch.of)
	complete(cmd, "output", o.output.of)
	return cmd
}

func (o *listOptions) run(ctx context.Context) (err error) {
	if o.allRegions && o.Region != "" {
		return env.Usagef("--region and --all-regions exclude each other")
	}
	a, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer a.Close(&err)
	q := o.query(ctx, a)
	found, err := ami.List(ctx, a.Config, q)
	if err != nil {
		return err
	}
	if found.Releases != nil {
		o.Env.Story("the release server does not tell the supported versions of Kubernetes, so those are listed that there are images of (%v)", found.Releases)
	}
	if len(found.Failed) == len(q.Regions) {
		return fmt.Errorf("no region could be asked: %w", o.failures(found.Failed))
	}
	if err := o.print(ctx, a, q, found); err != nil {
		return err
	}
	if len(found.Failed) > 0 {
		return fmt.Errorf("%d of %d regions could not be asked, and are missing: %w", len(found.Failed), len(q.Regions), o.failures(found.Failed))
	}
	return nil
}

func (o *listOptions) query(ctx context.Context, a *account.Account) ami.Query {
	q := ami.Query{Owner: cmp.Or(o.owner, ami.Owner), Version: o.version, Regions: o.regions(ctx, a), Progress: o.progress()}
	if o.os != "" {
		q.OS = []string{o.os}
	}
	if o.arch.value != "" {
		q.Architectures = []string{o.arch.value}
	}
	if !a.Simulated() { // which is about no real images
		q.Releases = func(ctx context.Context) ([]string, error) { return ami.Supported(ctx, o.Env.HTTP) }
	}
	return q
}

// open opens the account, in any region where none is named.
func (o *listOptions) open(ctx context.Context) (*account.Account, error) {
	a, err := o.OpenPlain(ctx, "")
	if errors.Is(err, account.ErrNoRegion) {
		return o.OpenPlain(ctx, account.DefaultRegion)
	}
	return a, err
}

// regions returns the one that is named, or all of the account.
func (o *listOptions) regions(ctx context.Context, a *account.Account) []string {
	if one := o.RegionOr(""); one != "" && !o.allRegions {
		if o.Region == "" {
			o.Env.Story("only in %s, which the environment names; for all regions add --all-regions", one)
		}
		return []string{one}
	}
	all, err := ami.Regions(ctx, a.Config)
	if err != nil {
		all = ami.BuiltInRegions()
		o.Env.Story("the account's regions are not known, so the %d are asked that images are published in (%v)", len(all), err)
	}
	return all
}

// progress paints, at a terminal, how many regions have answered.
func (o *listOptions) progress() func(done, total int, region string, err error) {
	if !o.Env.ErrIsTerminal {
		return nil
	}
	return func(done, total int, _ string, _ error) {
		text := fmt.Sprintf("\r\x1b[K%d of %d regions", done, total)
		if done == total {
			text = "\r\x1b[K"
		}
		_, _ = fmt.Fprint(o.Env.Err, text) // that nobody sees it is no reason to stop
	}
}

// failures is one error for all regions that failed: each is told, in order.
func (o *listOptions) failures(failed map[string]error) error {
	var all []error
	for _, region := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, fmt.Errorf("%s: %w", region, failed[region]))
	}
	return errors.Join(all...)
}

func (o *listOptions) print(ctx context.Context, a *account.Account, q ami.Query, found ami.Listing) error {
	if len(found.Images) == 0 {
		o.hint(ctx, a, q, found)
	}
	if o.output.value != "table" {
		list := imageList{Kind: "AWSAMIList", APIVersion: apiVersion, Items: []image{}}
		for _, i := range found.Images {
			list.Items = append(list.Items, document(i))
		}
		return encode(o.Env.Out, o.output.value, list)
	}
	if len(found.Images) == 0 {
		_, err := fmt.Fprintln(o.Env.Out, "No AMIs found")
		return err
	}
	rows := make([][]string, len(found.Images))
	for n, i := range found.Images {
		rows[n] = []string{i.Version, i.Region, i.OS, i.Name, i.ID, i.Architecture}
	}
	return render.Table(o.Env.Out, []string{"KUBERNETES VERSION", "REGION", "OS", "NAME", "AMI ID", "ARCHITECTURE"}, rows)
}

// hint tells somebody who found nothing what there is, in the first region
// that answers.
func (o *listOptions) hint(ctx context.Context, a *account.Account, q ami.Query, found ami.Listing) {
	region := q.Regions[slices.IndexFunc(q.Regions, func(r string) bool { return found.Failed[r] == nil })]
	known, err := ami.Known(ctx, a.Config, region, q.Owner)
	switch {
	case err != nil: // the answer stands without it
	case len(known.Versions) == 0:
		o.Env.Story("account %s has no images named capa-ami-* in %s that can be seen", q.Owner, region)
	default:
		o.Env.Story("in %s, account %s has images of Kubernetes %s for %s", region, q.Owner, strings.Join(known.Versions, ", "), strings.Join(known.OS, ", "))
	}
}
