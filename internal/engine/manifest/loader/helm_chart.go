package loader

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kjson "sigs.k8s.io/json"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/class/gotmpl"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/yamldoc"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// admitHelmChart decodes a HelmChartProxy strictly, sets the defaults of CAAPH's webhook, and applies its rules.
func (l *loader) admitHelmChart(o *manifest.Entry) {
	if l.incomplete {
		return
	}
	raw, err := json.Marshal(o.Value)
	if err != nil {
		l.fail(o.Problem("", err.Error(), ""))
		return
	}
	p := &manifest.HelmChartProxy{}
	strict, err := kjson.UnmarshalStrict(raw, p)
	for _, unknown := range strict {
		if at, is := errors.AsType[kjson.FieldError](unknown); is {
			l.unknown(o, at.FieldPath(), []string{
				"clusterSelector",
				"chartName",
				"repoURL",
				"releaseName",
				"namespace",
				"version",
				"valuesTemplate",
				"reconcileStrategy",
				"options",
				"credentials",
				"tlsConfig",
				"disableHooks",
				"wait",
				"waitForJobs",
				"dependencyUpdate",
				"timeout",
				"skipCRDs",
				"atomic",
				"takeOwnership",
				"install",
				"upgrade",
				"uninstall",
				"createNamespace",
			})
		}
	}
	if err != nil {
		l.fail(o.Problem("spec", "the object cannot be read: "+err.Error(), ""))
		return
	}
	if !l.validChart(o, &p.Spec) {
		return
	}
	p.Spec.Namespace = cmp.Or(p.Spec.Namespace, "default")
	if p.Spec.Options.Timeout == nil {
		p.Spec.Options.Timeout = &metav1.Duration{Duration: 10 * time.Minute}
	}
	o.Typed = p
}

func (l *loader) validChart(o *manifest.Entry, s *manifest.HelmChartProxySpec) bool {
	before := len(l.problems)
	if s.ChartName == "" {
		l.fail(o.Problem("spec.chartName", "a value is required", "set the name of the chart in the repository"))
	}
	u, err := url.Parse(s.RepoURL)
	known := err == nil && slices.Contains([]string{"http", "https", "oci"}, u.Scheme) && u.Host != "" // pkg/getter of Helm
	if !known && !isFolder(s.RepoURL) {
		l.fail(o.Problem("spec.repoURL", fmt.Sprintf("%q is not a URL", s.RepoURL), "use https://…, oci://… or a folder such as ./charts"))
	}
	if v := s.Version; v != "" && !regex.Of(`^\s*[=!<>~^]*\s*(v?[0-9]|[xX*])`).MatchString(v) { // github.com/Masterminds/semver
		l.fail(
			o.Problem(
				"spec.version",
				fmt.Sprintf("%q is neither a version nor a range of versions", v),
				"write one such as 1.18.2 or ~1.18, or remove it for the newest",
			),
		)
	}
	if bad := validation.IsDNS1123Label(cmp.Or(s.Namespace, "default")); len(bad) > 0 {
		l.fail(o.Problem("spec.namespace", fmt.Sprintf("%q is not the name of a namespace: %s", s.Namespace, bad[0]), "change the name"))
	}
	if err == nil && u.User != nil {
		l.fail(o.Problem("spec.repoURL", "has a user name or password, which plans and process lists would show", "log in with helm registry login or helm repo add"))
	}
	if name := cmp.Or(s.ReleaseName, o.Name); !manifest.IsReleaseName(name) {
		l.fail(
			o.Problem(
				"spec.releaseName",
				fmt.Sprintf("%q cannot be the name of a release: helm takes %d characters at most, lower-case letters, digits, '-' and '.'", name, manifest.LongestRelease),
				"set another name",
			),
		)
	}
	if !slices.Contains([]string{"", manifest.StrategyContinuous, manifest.StrategyInstallOnce}, s.ReconcileStrategy) {
		l.fail(o.Problem("spec.reconcileStrategy", fmt.Sprintf("%q is not a strategy", s.ReconcileStrategy), "use Continuous or InstallOnce"))
	}
	if _, err := metav1.LabelSelectorAsSelector(&s.ClusterSelector); err != nil {
		l.fail(o.Problem("spec.clusterSelector", err.Error(), ""))
	}
	return len(l.problems) == before
}

// readCharts reads HelmChartProxies that are not in the manifest. It replaces no ${VARIABLES} in them.
func (l *loader) readCharts(sources []input.Source) {
	for _, s := range sources {
		documents, problems := yamldoc.Split(yamldoc.Text{File: s.Name, Lines: []string{string(s.Data)}, From: []int{1}})
		l.problems = append(l.problems, problems...)
		for _, d := range documents {
			l.identify(d)
		}
	}
}

// isFolder reports whether a repoURL is a folder of this machine. CAAPH has no such folders.
func isFolder(repoURL string) bool {
	return strings.HasPrefix(repoURL, "./") || strings.HasPrefix(repoURL, "../") || strings.HasPrefix(repoURL, "/") || strings.HasPrefix(repoURL, "file://") ||
		repoURL == "." || repoURL == ".."
}

// resolveCharts finds the HelmChartProxies whose selector matches the Cluster. Unlike that of a ClusterResourceSet,
// a selector without labels matches every Cluster.
func (l *loader) resolveCharts(c *clusterv1.Cluster) {
	budget := gotmpl.NewBudget()
	for _, o := range l.ofKind(manifest.KindHelmChart) {
		o.Used = true
		p, ok := o.Typed.(*manifest.HelmChartProxy)
		if !ok {
			continue
		}
		l.cluster.ChartObjects++
		if p.Spec.ReconcileStrategy == manifest.StrategyInstallOnce {
			l.cluster.ChartsOnce = append(l.cluster.ChartsOnce, o.Name)
		}
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.ClusterSelector)
		if err != nil {
			continue
		}
		if !selector.Matches(labels.Set(c.Labels)) {
			l.warn(
				o.Problem("spec.clusterSelector", fmt.Sprintf("does not match the labels of Cluster/%s, so the chart is not installed, and uninstalled if it was", c.Name),
					"add the labels to the Cluster"),
			)
			continue
		}
		if chart, ok := l.chart(o, p, c, budget); ok {
			l.addChart(o, chart)
		}
	}
}

// addChart adds a chart, unless another one has the same release.
func (l *loader) addChart(o *manifest.Entry, chart manifest.Chart) {
	for _, other := range l.cluster.Charts {
		if other.Release == chart.Release && other.Namespace == chart.Namespace {
			l.fail(
				o.Problem("spec.releaseName", fmt.Sprintf("the release %s in namespace %s is also that of HelmChartProxy/%s", chart.Release, chart.Namespace, other.Name),
					"set another releaseName or namespace"),
			)
			return
		}
	}
	l.cluster.Charts = append(l.cluster.Charts, chart)
}

func (l *loader) chart(o *manifest.Entry, p *manifest.HelmChartProxy, c *clusterv1.Cluster, budget *gotmpl.Budget) (manifest.Chart, bool) {
	s := &p.Spec
	chart := manifest.Chart{
		Name: o.Name, Origin: l.cluster.Origin(o.Title(), ""), Chart: s.ChartName, Title: s.ChartName, Repository: s.RepoURL, Version: s.Version,
		Release: cmp.Or(s.ReleaseName, o.Name), Namespace: s.Namespace, Once: s.ReconcileStrategy == manifest.StrategyInstallOnce, Options: s.Options,
		Insecure: s.TLSConfig != nil && s.TLSConfig.InsecureSkipTLSVerify,
	}
	switch {
	case isFolder(s.RepoURL):
		folder := strings.TrimPrefix(s.RepoURL, "file://")
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(filepath.Dir(o.Position("spec.repoURL").File), folder)
		}
		chart.Chart, chart.Repository = filepath.Join(folder, s.ChartName), ""
	case strings.HasPrefix(s.RepoURL, "oci://"):
		u, err := url.Parse(s.RepoURL)
		if err != nil {
			l.fail(o.Problem("spec.repoURL", err.Error(), ""))
			return chart, false
		}
		u.Path = path.Join(u.Path, s.ChartName)
		chart.Chart, chart.Repository = u.String(), ""
	}
	if s.Credentials != nil {
		l.warn(o.Problem("spec.credentials", "is ignored: helm uses its own logins", "log in with helm registry login"))
	}
	if s.TLSConfig != nil && s.TLSConfig.CASecret != nil {
		l.warn(o.Problem("spec.tlsConfig.caSecret", "is ignored: helm uses the certificates of this machine", "add the CA to them"))
	}
	if s.Version == "" && chart.Repository+chart.Chart != "" && !isFolder(s.RepoURL) {
		l.warn(o.Problem("spec.version", "no version is set: the newest is installed, and not upgraded", "set the version of the chart"))
	}
	values, ok := l.values(o, s.ValuesTemplate, c, budget)
	chart.Values, chart.ValuesAt = values.now, values.later
	return chart, ok
}
