package discover

import (
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
)

// charts returns a HelmChartProxy for each release that a run has installed: without one, the next run would uninstall it. helm records neither the
// repository nor the options, and values may contain secrets, so the release is left as it is.
func charts(all []incluster.HelmReleaseState) (out []Object) {
	for _, r := range all {
		o := object("addons.cluster.x-k8s.io/v1alpha1", manifest.KindHelmChart, r.Proxy, map[string]any{
			"clusterSelector": map[string]any{}, "chartName": r.Chart, "version": r.Version, "releaseName": r.Name, "namespace": r.Namespace,
			"repoURL": manifest.UnknownRepository, "reconcileStrategy": manifest.StrategyInstallOnce,
		})
		o.comment("spec", text.Wrap("helm does not record the repository of a chart, and its values may be secret: runs leave this release as it is. Before you "+
			"remove reconcileStrategy, set repoURL, and valuesTemplate to what 'helm get values -n "+r.Namespace+" "+r.Name+"' prints.", commentWidth))
		out = append(out, o)
	}
	return out
}
