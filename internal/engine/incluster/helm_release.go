package incluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// HelmReleaseKind is the name of the kind of Helm releases.
const HelmReleaseKind = "helm-release"

// HelmRelease is a Helm release in the cluster. The helm command installs and upgrades it. Its state is read from the Secrets
// in which helm stores releases.
type HelmRelease struct {
	API    *API
	Server *graph.Ref[APIServerState]

	Proxy      string // name of the HelmChartProxy, in a label of the release
	Name       string
	Namespace  string
	Chart      string // as an argument of helm: a name, "oci://…", or a folder
	Title      string // name of the chart
	Repository string // URL; "" for the other two
	Version    string // exact, or a range; "" is the newest when it is installed
	Values     map[string]any
	ValuesAt   func(host string) (map[string]any, error) // the values with the address of the API server; nil if they do not depend on it
	Once       bool                                      // not changed after the installation
	Reuse      bool                                      // values that are not in Values stay as they are in the release

	Flags        []string // of install and upgrade
	RollbackFlag bool     // a release that fails is rolled back, or uninstalled
	ForceFlag    bool     // replace objects that cannot be changed
	Timeout      time.Duration
}

var (
	_ graph.Desired[HelmReleaseState] = (*HelmRelease)(nil)
	_ graph.Creator[HelmReleaseState] = (*HelmRelease)(nil)
	_ graph.Updater[HelmReleaseState] = (*HelmRelease)(nil)
	_ graph.Checked                   = (*HelmRelease)(nil)
	_ graph.TimeLimited               = (*HelmRelease)(nil)
)

// Needs implements graph.Desired.
func (r *HelmRelease) Needs() []graph.Edge { return graph.Awaits(r.Server) }

// TimeLimit implements graph.TimeLimited: helm has its own.
func (r *HelmRelease) TimeLimit() time.Duration { return 2 * r.Timeout }

// oldestHelm is the oldest version of helm that has the flags that are used.
var oldestHelm = semver.MustParse("3.14.0") //nolint:gochecknoglobals // a constant

// Check implements graph.Checked: without helm, nothing of the plan is carried out.
func (r *HelmRelease) Check(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	_, refusal = helmOf(ctx, c.Helm)
	return refusal, nil
}

// helmOf returns the version of helm, or the reason why there is none that can be used.
func helmOf(ctx context.Context, h kube.Helm) (version semver.Version, refusal string) {
	const install = "install helm 3.14 or newer, or 4 (https://helm.sh/docs/intro/install), or remove the HelmChartProxy"
	if h == nil {
		return version, "charts are installed by the program helm, which this program has not been given: " + install
	}
	text, err := h.Version(ctx)
	if err != nil {
		return version, fmt.Sprintf("charts are installed by the program helm: %v: %s", err, install)
	}
	version, err = semver.ParseTolerant(text)
	if err != nil || version.LT(oldestHelm) {
		return version, fmt.Sprintf("helm has the version %s: %s", text, install)
	}
	return version, ""
}

// Find implements graph.Desired.
func (r *HelmRelease) Find(ctx context.Context, c *cloud.Clients) (*HelmReleaseState, error) {
	if !answers(r.Server) {
		return nil, nil // the API server does not answer yet
	}
	k, err := r.API.Client(c)
	if err != nil {
		return nil, err
	}
	have, err := findRelease(ctx, k, r.Namespace, r.Name)
	return have, r.API.retryUnavailable(ctx, err)
}

// Diff implements graph.Desired. Values that may be secret are not shown.
func (r *HelmRelease) Diff(have *HelmReleaseState) (d plan.Diff) {
	if have.Name != "" && r.Once && have.Status == deployed {
		return nil
	}
	chart := have.Chart
	if have.Name == "" {
		chart = ""
	}
	if have.Name == "" || !r.folder() {
		d.Set("chart", chart, r.Title)
	}
	if r.Version != "" && !sameVersion(have.Version, r.Version) {
		d.Set("version", have.Version, r.Version)
	}
	if have.Name == "" {
		d.Set("repository", "", orFolder(r.Repository, r.Chart))
		d.Set("namespace", "", r.Namespace)
	}
	r.diffValues(have, &d)
	if have.Name != "" {
		d.Set("status", have.Status, deployed)
	}
	return d
}

// diffValues compares the values of the chart.
func (r *HelmRelease) diffValues(have *HelmReleaseState, d *plan.Diff) {
	is, want := leaves("", have.Values), leaves("", r.known())
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(is[path], want[path]) {
			d.Set("values"+path, shown(path, is[path]), shownAs(path, is[path], want[path]))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(is)) {
		if _, wanted := want[path]; !wanted && !r.Reuse {
			d.Set("values"+path, shown(path, is[path]), "")
		}
	}
}

// known returns the values, as far as they are known.
func (r *HelmRelease) known() map[string]any {
	values, err := r.values()
	if err != nil {
		return r.Values // Create says why
	}
	return values
}

// values returns the values with the address of the API server.
func (r *HelmRelease) values() (map[string]any, error) {
	host := r.API.Endpoint.Name()
	if r.ValuesAt == nil || host == "" {
		return r.Values, nil
	}
	return r.ValuesAt(host)
}

// folder reports whether the chart is in a folder, whose name may be another than that of the chart.
func (r *HelmRelease) folder() bool {
	return r.Repository == "" && !strings.HasPrefix(r.Chart, "oci://")
}

// orFolder returns what is shown of the place of a chart.
func orFolder(repository, chart string) string {
	if repository == "" {
		return chart
	}
	return repository
}

// sameVersion reports whether an installed version is the desired one, or in the desired range.
func sameVersion(have, want string) bool {
	is, err := semver.ParseTolerant(have)
	if exact, wrong := semver.ParseTolerant(want); wrong == nil && !strings.ContainsAny(want, "*xX<>=~^| ") {
		return err == nil && is.EQ(exact)
	}
	if err != nil {
		return false
	}
	inRange, err := rangeOf(want)
	return err != nil || inRange(is) // a range of helm's that is not known here stays with helm
}

// rangeOf parses a range in the form of helm: "^1.2", "~1.2.3", "1.2.x", ">=1.2 <2".
func rangeOf(text string) (semver.Range, error) {
	m := regex.Of(`^([\^~])v?(\d+)(?:\.(\d+))?(?:\.(\d+))?$`).FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return semver.ParseRange(strings.ReplaceAll(strings.ReplaceAll(text, ",", " "), "*", "x"))
	}
	number := func(s string) uint64 { n, _ := strconv.ParseUint(s, 10, 32); return n } // digits, or none
	low := semver.Version{Major: number(m[2]), Minor: number(m[3]), Patch: number(m[4])}
	high := semver.Version{Major: low.Major + 1}
	switch {
	case m[1] == "~" && m[3] != "", m[1] == "^" && low.Major == 0 && low.Minor > 0:
		high = semver.Version{Major: low.Major, Minor: low.Minor + 1}
	case m[1] == "^" && low.Major == 0 && m[4] != "":
		high = semver.Version{Patch: low.Patch + 1}
	}
	return func(v semver.Version) bool { return v.GTE(low) && v.LT(high) }, nil
}

// leaves returns the values below a value that are no mappings, by path.
func leaves(path string, value any) map[string]any {
	all := map[string]any{}
	m, ok := value.(map[string]any)
	if !ok {
		if value != nil && path != "" {
			all[path] = value
		}
		return all
	}
	if len(m) == 0 && path != "" {
		all[path] = m
	}
	for name, below := range m {
		maps.Copy(all, leaves(path+"."+name, below))
	}
	return all
}

// secretName matches names of values that may be secret.
const secretName = `(?i)(pass|secret|token|credential|auth|cert|private|key)`

// hidden is shown for a value that may be secret.
const hidden = "(hidden)"

// shown returns what a plan shows of a value.
func shown(path string, value any) string {
	switch {
	case value == nil:
		return ""
	case regex.Of(secretName).MatchString(path):
		return hidden
	}
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if regex.Of(secretName).Match(text) {
		return hidden
	}
	return string(text)
}

// shownAs returns what a plan shows of a new value. Where both values are hidden, it says that they differ.
func shownAs(path string, have, want any) string {
	text := shown(path, want)
	if text == hidden && have != nil {
		return "(hidden, another)"
	}
	return text
}

// Create implements graph.Creator.
func (r *HelmRelease) Create(ctx context.Context, c *cloud.Clients) (*HelmReleaseState, error) {
	return nil, r.upgrade(ctx, c)
}

// Update implements graph.Updater. A release that a killed helm has left as pending is first rolled back, or
// uninstalled if it is the first: the lock of the cluster keeps out other runs.
func (r *HelmRelease) Update(ctx context.Context, c *cloud.Clients, have *HelmReleaseState, _ plan.Diff) (*HelmReleaseState, error) {
	if strings.HasPrefix(have.Status, "pending-") {
		args := []string{"uninstall", r.Name, "--namespace", r.Namespace}
		if have.Revision > 1 {
			args = []string{"rollback", r.Name, "--namespace", r.Namespace}
		}
		if err := r.run(ctx, c, args, nil); err != nil {
			return nil, err
		}
	}
	return nil, r.upgrade(ctx, c)
}

// upgrade installs the chart, or upgrades the release.
func (r *HelmRelease) upgrade(ctx context.Context, c *cloud.Clients) error {
	version, refusal := helmOf(ctx, c.Helm)
	if refusal != "" {
		return errors.New(refusal)
	}
	given, err := r.values()
	if err != nil {
		return err
	}
	values, err := json.Marshal(given)
	if err != nil {
		return err
	}
	if given == nil {
		values = []byte("{}")
	}
	args := []string{
		"upgrade", "--install", r.Name, r.Chart, "--namespace", r.Namespace, "--labels", ReleaseLabel + "=" + r.Proxy,
		"--timeout", r.Timeout.String(), "--values", "-",
	}
	if r.Repository != "" {
		args = append(args, "--repo", r.Repository)
	}
	if r.Version != "" {
		args = append(args, "--version", r.Version)
	}
	if r.RollbackFlag {
		args = append(args, rollbackFlag(version))
	}
	if r.ForceFlag {
		args = append(args, forceFlags(version)...)
	}
	return r.run(ctx, c, append(args, r.Flags...), values)
}

// rollbackFlag and forceFlags have other names in helm 4.
func rollbackFlag(version semver.Version) string {
	if version.Major >= 4 {
		return "--rollback-on-failure"
	}
	return "--atomic"
}

// forceFlags turns off server-side apply in helm 4, which refuses to replace objects with it (pkg/action/upgrade.go).
func forceFlags(version semver.Version) []string {
	if version.Major >= 4 {
		return []string{"--force-replace", "--server-side=false"}
	}
	return []string{"--force"}
}

// run runs helm. Values that may be secret are removed from the error.
func (r *HelmRelease) run(ctx context.Context, c *cloud.Clients, args []string, values []byte) error {
	err := runHelm(ctx, c, r.API, args, values)
	failed, is := errors.AsType[*cloud.ProgramError](err)
	if !is {
		return err
	}
	text := failed.Err.Error()
	for path, value := range leaves("", r.known()) {
		if secret, ok := value.(string); ok && len(secret) > 3 && regex.Of(secretName).MatchString(path) {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return &cloud.ProgramError{Command: failed.Command, Err: errors.New(text + r.troubles(ctx, c))}
}

// troubles says why pods in the namespace of the release do not run: helm says only that it has waited for too long.
func (r *HelmRelease) troubles(ctx context.Context, c *cloud.Clients) string {
	k, err := r.API.Client(c)
	if err != nil || k == nil {
		return ""
	}
	lines, err := Troubles(ctx, k, r.Namespace, true)
	if err != nil || len(lines) == 0 {
		return ""
	}
	return ". In namespace " + r.Namespace + ": " + strings.Join(lines, "; ")
}

// runHelm runs helm against the API server of the cluster.
func runHelm(ctx context.Context, c *cloud.Clients, api *API, args []string, stdin []byte) error {
	k, err := api.Client(c)
	switch {
	case err != nil:
		return err
	case k == nil:
		return graph.NotYet(errNoAddress)
	}
	if err := c.CheckWrite(ctx, "helm "+args[0]); err != nil {
		return err
	}
	server, via := k.Via()
	if err := c.Helm.Run(ctx, args, stdin, server, via); err != nil {
		return &cloud.ProgramError{Command: "helm " + args[0], Err: err}
	}
	return nil
}
