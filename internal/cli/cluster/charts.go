package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/configs"
	"github.com/clusterawsadm/clusterawsadm/internal/cli/env"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/reconcile"
)

// chartUsage is the help of --chart.
const chartUsage = "install a Helm `CHART`: https://HOST/NAME, oci://HOST/NAME or ./FOLDER, with RELEASE= before, and :VERSION, " +
	",namespace=NAME and ,values=FILE after; can be repeated"

// chart is a value of --chart: the fields of a HelmChartProxy.
type chart struct {
	release, repoURL, name, version, namespace string
	values                                     string // content of the file
}

// addChartFlag adds --chart. A value has commas, so several are several flags.
func addChartFlag(cmd *cobra.Command, charts *[]string) {
	cmd.Flags().StringArrayVar(charts, "chart", nil, chartUsage)
}

// readCharts reads the values of --chart. Folders stay relative to the working directory.
func (f *manifestFlags) readCharts(ctx context.Context, values []string) (all []chart, err error) {
	for _, value := range values {
		c, file, err := parseChart(value)
		if err != nil {
			return nil, err
		}
		if isFolder(c.repoURL) {
			if c.version, err = f.versionOfFolder(ctx, value, filepath.Join(c.repoURL, c.name)); err != nil {
				return nil, err
			}
		}
		if file != "" {
			if c.values, err = f.valuesOfChart(ctx, file); err != nil {
				return nil, err
			}
		}
		if slices.ContainsFunc(all, func(other chart) bool { return other.release == c.release }) {
			return nil, env.Usagef("--chart: two charts have the release %s: use RELEASE=CHART for one of them", c.release)
		}
		all = append(all, c)
	}
	return all, nil
}

// parseChart parses a value of --chart, and returns the name of the file of values.
func parseChart(value string) (c chart, values string, err error) {
	parts := strings.Split(value, ",")
	if release, rest, ok := strings.Cut(parts[0], "="); ok && !strings.ContainsAny(release, "/:") {
		if release == "" {
			return c, "", wrongChart(value, errors.New("the release before = has no name"))
		}
		c.release, parts[0] = release, rest
	}
	values, err = c.setOptions(parts[1:])
	if err == nil {
		err = c.locate(parts[0])
	}
	if err != nil {
		return chart{}, "", wrongChart(value, err)
	}
	if c.release == "" {
		c.release = c.name
	}
	if !reconcile.IsReleaseName(c.release) {
		return chart{}, "", wrongChart(value, fmt.Errorf(
			"%q cannot be the name of a release: helm takes %d characters at most, lower-case letters, digits, '-' and '.': use RELEASE=CHART",
			c.release,
			reconcile.LongestRelease,
		))
	}
	return c, values, nil
}

// wrongChart is the error for a value of --chart.
func wrongChart(value string, err error) error {
	return env.Usagef("--chart %s: %v", redacted(value), err)
}

// setOptions sets what follows the chart after commas, and returns the name of the file of values.
func (c *chart) setOptions(options []string) (values string, err error) {
	seen := map[string]bool{}
	for _, option := range options {
		key, text, ok := strings.Cut(option, "=")
		if !ok || text == "" || seen[key] {
			return "", fmt.Errorf("%q: after a comma is namespace=NAME, version=VERSION or values=FILE, each once", option)
		}
		seen[key] = true
		switch key {
		case "namespace":
			c.namespace = text
		case "version":
			c.version = text
		case "values":
			values = text
		default:
			return "", fmt.Errorf("there is no option %q: use namespace, version or values; a HelmChartProxy in the manifest has more", key)
		}
	}
	return values, nil
}

// locate sets repository, name and version from the place of a chart.
func (c *chart) locate(place string) error {
	at := strings.LastIndex(place, "/")
	if name, version, ok := strings.Cut(place[at+1:], ":"); ok && at >= 0 {
		if c.version != "" {
			return errors.New("it has two versions")
		}
		if version == "" {
			return errors.New("there is no version after the colon")
		}
		place, c.version = place[:at+1]+name, version
	}
	switch {
	case strings.Contains(place, "://"):
		return c.locateURL(place)
	case isFolder(place):
		return c.locateFolder(place)
	case place == "":
		return errors.New("name the chart, such as https://helm.cilium.io/cilium:1.18.2")
	}
	return fmt.Errorf("%q is no address: use https://REPOSITORY/%s, oci://HOST/PATH/%[2]s, or ./%[1]s for a folder; the names of 'helm repo add' are not used",
		place, path.Base(place))
}

func (c *chart) locateFolder(place string) error {
	c.repoURL, c.name = filepath.Dir(filepath.Clean(place)), filepath.Base(filepath.Clean(place))
	switch {
	case c.version != "":
		return errors.New("a folder has no version here: its Chart.yaml has it")
	case filepath.Ext(c.name) == ".tgz":
		return errors.New("archives are not installed: unpack it, and name the folder")
	case c.name == "." || c.name == "..":
		return errors.New("name the folder of the chart, such as ./charts/web")
	}
	if !filepath.IsAbs(c.repoURL) && !strings.HasPrefix(c.repoURL, "..") {
		c.repoURL = "./" + strings.TrimPrefix(c.repoURL, ".")
		c.repoURL = strings.TrimSuffix(c.repoURL, "/")
	}
	return nil
}

func (c *chart) locateURL(place string) error {
	scheme, _, _ := strings.Cut(place, "://")
	u, err := url.Parse(place)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case !slices.Contains([]string{"https", "http", "oci"}, scheme):
		return fmt.Errorf("%s:// is not supported: use https://, oci:// or a folder such as ./charts/web", scheme)
	case u.User != nil:
		return errors.New("it has a password: use 'helm registry login', or 'helm repo add' with --username, and leave it out")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address of a chart has no ? and no #")
	case u.Host == "" || strings.Trim(u.Path, "/") == "" || strings.HasSuffix(u.Path, "/"):
		return fmt.Errorf("the name of the chart is missing: use %s/CHART:VERSION", strings.TrimSuffix(place, "/"))
	case path.Ext(u.Path) == ".tgz":
		return fmt.Errorf("it is an archive: name the repository and the chart: %s://%s/CHART:VERSION", scheme, u.Host)
	}
	at := strings.LastIndex(place, "/")
	c.repoURL, c.name = place[:at], place[at+1:]
	return nil
}

// redacted returns a value of --chart without the password of its address.
func redacted(value string) string {
	return regex.Of(`://[^/@,]*@`).ReplaceAllString(value, "://…@")
}

func isFolder(place string) bool {
	return place == "." || place == ".." || strings.HasPrefix(place, "./") || strings.HasPrefix(place, "../") || filepath.IsAbs(place)
}

// versionOfFolder returns the version of a chart in a folder.
func (f *manifestFlags) versionOfFolder(ctx context.Context, value, folder string) (string, error) {
	file := filepath.Join(folder, "Chart.yaml")
	data, err := f.read(ctx, file)
	if err != nil {
		return "", env.Usagef("--chart %s: the folder %s has no Chart.yaml: name the folder of a chart", value, folder)
	}
	var metadata struct {
		Version string `json:"version"`
	}
	if err := yaml.Unmarshal(data, &metadata); err != nil || metadata.Version == "" {
		return "", env.Usagef("--chart %s: %s has no version: every chart has one", value, file)
	}
	return metadata.Version, nil
}

// valuesOfChart reads a file of values.
func (f *manifestFlags) valuesOfChart(ctx context.Context, file string) (string, error) {
	if file == "-" {
		return "", env.Usagef("--chart: values needs a file: standard input is not supported")
	}
	data, err := f.read(ctx, file)
	if err != nil {
		return "", err
	}
	var content any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return "", env.Usagef("%s: the values are not valid YAML: %s", file, withoutValues(err))
	}
	if _, ok := content.(map[string]any); !ok && content != nil {
		return "", env.Usagef("%s:1: values of a chart are names with values, as in its values.yaml", file)
	}
	return string(data), nil
}

// withoutValues returns the error of a YAML parser without the values that it quotes, which may be secret.
func withoutValues(err error) string {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "error converting YAML to JSON: ", ""), "yaml: ")
	return regexp.MustCompile("[`\"][^`\"]*[`\"]").ReplaceAllString(strings.ReplaceAll(text, "\n", " "), "…")
}

// proxy returns the HelmChartProxy of a chart. Its template of values is a text in which nothing is
// replaced, so that the values are those of the file.
func (c chart) proxy(selector map[string]any) map[string]any {
	spec := map[string]any{"clusterSelector": selector, "repoURL": c.repoURL, "chartName": c.name, "releaseName": c.release}
	for name, text := range map[string]string{"version": c.version, "namespace": c.namespace, "valuesTemplate": literal(c.values)} {
		if text != "" {
			spec[name] = text
		}
	}
	return map[string]any{"apiVersion": "addons.cluster.x-k8s.io/v1alpha1", "kind": "HelmChartProxy", "metadata": map[string]any{"name": c.release}, "spec": spec}
}

// literal returns a Go template whose result is the text.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }

// chartSources returns the charts of --chart as documents of a manifest.
func (f *manifestFlags) chartSources(ctx context.Context) (out []input.Source, err error) {
	all, err := f.readCharts(ctx, f.charts)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if isFolder(c.repoURL) {
			if c.repoURL, err = filepath.Abs(c.repoURL); err != nil {
				return nil, err
			}
		}
		data, err := json.Marshal(c.proxy(map[string]any{}))
		if err != nil {
			return nil, err
		}
		out = append(out, input.Source{Name: "--chart " + c.release, Data: data})
	}
	return out, nil
}

// networkOf chooses no pod network if a chart is one, and reports whether it is.
func (o *generateOptions) networkOf(charts []chart, chosen bool) (is bool, err error) {
	i := slices.IndexFunc(charts, func(c chart) bool { return reconcile.IsPodNetworkChart(c.name) })
	if i < 0 {
		return false, nil
	}
	if chosen && o.cni.value != noNetwork {
		return true, env.Usagef("--cni %s: the chart %s is a pod network, too: use one of them", o.cni.value, charts[i].name)
	}
	if s, err := configs.Manifests.ReadFile(o.flavor.value + ".yaml"); err == nil {
		if has, err := readSkeleton(string(s)); err == nil && (has.eks || has.installs) {
			return true, nil // the flavor has a network, and --cni has no other values there
		}
	}
	o.cni.value = noNetwork
	return true, nil
}

// withCharts returns a manifest with a HelmChartProxy at its end for each chart, and the rules of the security groups
// for the pod networks among them.
func withCharts(text, name string, charts []chart) (string, error) {
	if len(charts) == 0 {
		return text, nil
	}
	s, err := readSkeleton(text)
	if err != nil {
		return "", err
	}
	if s.cluster == nil {
		return text, nil
	}
	inserted := labelled(s.cluster, name)
	for _, n := range networks() {
		if slices.ContainsFunc(charts, func(c chart) bool { return slices.Contains(n.charts, c.name) }) && s.spec != nil && !s.managedBy {
			inserted = append(inserted, allowed(s.spec, n.rules))
		}
	}
	text = insert(text, inserted)
	for _, c := range charts {
		proxy := c.proxy(map[string]any{"matchLabels": map[string]any{addonLabel: name}})
		metadata := map[string]any{"name": name + "-" + c.release}
		if n := field(s.cluster, "metadata", "namespace"); n != nil {
			metadata["namespace"] = n.Value
		}
		proxy["metadata"] = metadata
		document, err := yaml.Marshal(proxy)
		if err != nil {
			return "", err
		}
		text += "---\n" + string(document)
	}
	return text, nil
}
