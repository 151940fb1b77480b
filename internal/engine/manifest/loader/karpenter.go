package loader

import (
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// karpenter reads the annotation of Karpenter; nil without it.
func (l *loader) karpenter(o *manifest.Entry) *manifest.Karpenter {
	account, set := o.Annotation(manifest.AnnotationKarpenter)
	if !set {
		return nil
	}
	label := regex.Of(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	namespace, name, both := strings.Cut(account, "/")
	if !both || !label.MatchString(namespace) || !label.MatchString(name) {
		l.fail(
			o.AnnotationProblem(
				manifest.AnnotationKarpenter,
				"it is not a namespace and a service account",
				"write those of Karpenter's controller: kube-system/karpenter; or remove the annotation",
			),
		)
	}
	return &manifest.Karpenter{Namespace: namespace, ServiceAccount: name}
}
