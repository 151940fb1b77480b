package loader

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// resolveHealthChecks finds the MachineHealthChecks of the cluster.
func (l *loader) resolveHealthChecks() {
	for _, o := range l.ofKind(manifest.KindHealthCheck) {
		o.Used = true
		c, ok := o.Typed.(*clusterv1.MachineHealthCheck)
		if !ok || !l.belongs(o, c.Spec.ClusterName) {
			continue
		}
		_, paused := c.Annotations[clusterv1.PausedAnnotation]
		switch {
		case paused:
			l.warn(o.ProblemOf(clusterv1.PausedAnnotation, "the annotation cluster.x-k8s.io/paused turns the check off", ""))
		case c.Spec.Remediation.TemplateRef.IsDefined():
			l.warn(
				o.Problem(
					"spec.remediation.templateRef",
					"the check has no effect: external remediation needs a management cluster",
					"remove it, so that unhealthy machines are replaced",
				),
			)
		case !l.cluster.SelectsMachines(c):
			l.warn(o.Problem("spec.selector", "the check has no effect: it selects no machine of the manifest", "change the labels"))
		default:
			l.cluster.HealthChecks = append(l.cluster.HealthChecks, c)
		}
	}
}
