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

// allArchitectures is the value of --architecture that lists the images of all architectures.
const allArchitectures = "all"

type listOptions struct {
	account.Flags
	os, version, owner string
	allRegions         bool
	arch, output       choice
}

func newList(e *env.Env) *cobra.Command {
	o := &listOptions{
		Flags:  account.Flags{Env: e},
		arch:   choice{ami.X8664, ami.X8664, []string{ami.X8664, ami.Arm64, allArchitectures}, "unknown architecture"},
		output: choice{"table", "table", []string{"table", "json", "yaml"}, "unknown printer type"},
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the published machine images",
		Long: `List the newest machine image of every Kubernetes version, operating system and
region. They are for x86_64 machines, unless --architecture says otherwise.

The default versions are those of the four newest minor releases, from dl.k8s.io; if
that is not reachable, all versions with images. The default regions are those that
are enabled in the account, unless --region or the environment sets one.

If a region does not answer, the images of the others are printed, and the exit code
is 1.`,
		Example: `  clusterawsadm ami list --kubernetes-version v1.34.2 --os ubuntu-24.04
  clusterawsadm ami list --region eu-central-1 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	p := cmd.Flags()
	o.Add(p, "", "AWS_REGION, AWS_DEFAULT_REGION or DEFAULT_AWS_REGION; otherwise all")
	p.BoolVar(&o.allRegions, "all-regions", false, "list all regions, even if the environment sets one")
	p.StringVar(&o.os, "os", "", "operating system (default: all)")
	p.StringVar(&o.version, "kubernetes-version", "", "Kubernetes version, with or without a v (default: the supported versions)")
	p.StringVar(&o.owner, "owner-id", "", "account that owns the images, or self (default: "+ami.Owner+")")
	p.Var(&o.arch, "architecture", "architecture: x86_64, arm64 or all")
	p.VarP(&o.output, "output", "o", "output format: table, json, yaml")
	complete(cmd, "os", ami.OperatingSystems())
	complete(cmd, "architecture", o.arch.of)
	complete(cmd, "output", o.output.of)
	return cmd
}

func (o *listOptions) run(ctx context.Context) (err error) {
	if o.allRegions && o.Region != "" {
		return env.Usagef("use --region or --all-regions, not both")
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
		o.Env.Story("the list of supported Kubernetes versions is not available, so all versions with images are listed (%v)", found.Releases)
	}
	if len(found.Failed) == len(q.Regions) {
		return fmt.Errorf("no region answered: %w", o.failures(found.Failed))
	}
	if err := o.print(ctx, a, q, found); err != nil {
		return err
	}
	if len(found.Failed) > 0 {
		return fmt.Errorf("%d of %d regions did not answer and are missing: %w", len(found.Failed), len(q.Regions), o.failures(found.Failed))
	}
	return nil
}

func (o *listOptions) query(ctx context.Context, a *account.Account) ami.Query {
	q := ami.Query{Owner: cmp.Or(o.owner, ami.Owner), Version: o.version, Regions: o.regions(ctx, a), Progress: o.progress()}
	if o.os != "" {
		q.OS = []string{o.os}
	}
	if o.arch.value != allArchitectures {
		q.Architectures = []string{o.arch.value}
	}
	if !a.Simulated() { // a simulated account has no real images
		q.Releases = func(ctx context.Context) ([]string, error) { return ami.Supported(ctx, o.Env.HTTP) }
	}
	return q
}

// open opens the account, in any region if none is set.
func (o *listOptions) open(ctx context.Context) (*account.Account, error) {
	a, err := o.OpenPlain(ctx, "")
	if errors.Is(err, account.ErrNoRegion) {
		return o.OpenPlain(ctx, account.DefaultRegion)
	}
	return a, err
}

// regions returns the region of --region, or all regions of the account.
func (o *listOptions) regions(ctx context.Context, a *account.Account) []string {
	if one := o.RegionOr(""); one != "" && !o.allRegions {
		if o.Region == "" {
			o.Env.Story("listing region %s of the environment only; for all regions use --all-regions", one)
		}
		return []string{one}
	}
	all, err := ami.Regions(ctx, a.Config)
	if err != nil {
		all = ami.BuiltInRegions()
		o.Env.Story("the list of the enabled regions is not available, so the %d regions with published images are listed (%v)", len(all), err)
	}
	return all
}

// progress shows on a terminal how many regions have answered.
func (o *listOptions) progress() func(done, total int, region string, err error) {
	if !o.Env.ErrIsTerminal {
		return nil
	}
	return func(done, total int, _ string, _ error) {
		text := fmt.Sprintf(render.ClearLine+"%d of %d regions", done, total)
		if done == total {
			text = render.ClearLine
		}
		_, _ = fmt.Fprint(o.Env.Err, text) // a failed write to the terminal is ignored
	}
}

// failures joins the errors of all regions that failed, in order.
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
	header, rows := []string{"KUBERNETES VERSION", "REGION", "OS", "NAME", "AMI ID"}, make([][]string, len(found.Images))
	for n, i := range found.Images {
		rows[n] = []string{i.Version, i.Region, i.OS, i.Name, i.ID}
	}
	if o.arch.value == allArchitectures {
		// Scripts take the ID from the last column.
		header = slices.Insert(header, 4, "ARCHITECTURE")
		for n, i := range found.Images {
			rows[n] = slices.Insert(rows[n], 4, i.Architecture)
		}
	}
	return render.Table(o.Env.Out, header, rows)
}

// hint lists the images of the first region that answers, if nothing was found.
func (o *listOptions) hint(ctx context.Context, a *account.Account, q ami.Query, found ami.Listing) {
	region := q.Regions[slices.IndexFunc(q.Regions, func(r string) bool { return found.Failed[r] == nil })]
	known, err := ami.Known(ctx, a.Config, region, q.Owner)
	switch {
	case err != nil: // the hint is optional
	case len(known.Versions) == 0:
		o.Env.Story("account %s has no images named capa-ami-* in %s, or none that this account can see", q.Owner, region)
	default:
		o.Env.Story(
			"account %[2]s has images in %[1]s for Kubernetes %[3]s and %[4]s",
			region,
			q.Owner,
			strings.Join(spans(known.Versions), ", "),
			strings.Join(known.OS, ", "),
		)
	}
}

// spans shortens a long sorted list of versions: of a minor version, it has the first and the last
// patch, and how many there are.
func spans(versions []string) (short []string) {
	const long = 12
	if len(versions) <= long {
		return versions
	}
	minor := func(v string) string { return v[:max(0, strings.LastIndexByte(v, '.'))] }
	for begin := 0; begin < len(versions); {
		end := begin
		for end+1 < len(versions) && minor(versions[end+1]) == minor(versions[begin]) {
			end++
		}
		text := versions[begin]
		if end > begin {
			text = fmt.Sprintf("%s to %s (%d)", versions[begin], versions[end], end-begin+1)
		}
		short, begin = append(short, text), end+1
	}
	return short
}
