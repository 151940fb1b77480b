package loader

import (
	"cmp"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// The values of the annotation that are not node pools.
const (
	autoModeOff     = "false" // off
	autoModeNoPools = "none"  // on, without node pools of EKS
)

// autoMode reads the annotations of Auto Mode; nil if they do not set it.
func (l *loader) autoMode(o *manifest.Entry) *manifest.AutoMode {
	words, set := l.list(o, manifest.AnnotationAutoMode)
	if !set {
		if _, named := o.Annotation(manifest.AnnotationAutoModeRole); named {
			l.fail(
				o.AnnotationProblem(
					manifest.AnnotationAutoModeRole,
					"it has no effect without "+manifest.OwnAnnotations+manifest.AnnotationAutoMode,
					"set "+manifest.OwnAnnotations+manifest.AnnotationAutoMode+", too, or remove it",
				),
			)
		}
		return nil
	}
	m := l.nodePools(o, words)
	m.Role = l.autoModeRole(o, m)
	return m
}

// nodePools reads the words of the annotation that turns Auto Mode on or off.
func (l *loader) nodePools(o *manifest.Entry, words []string) *manifest.AutoMode {
	const fix = "set it to node pools of EKS (general-purpose, system), to none, or to false"
	switch single := len(words) == 1; {
	case len(words) == 0:
		l.fail(o.AnnotationProblem(manifest.AnnotationAutoMode, "it names nothing", fix))
	case single && words[0] == autoModeOff:
		return &manifest.AutoMode{}
	case single && words[0] == autoModeNoPools:
		return &manifest.AutoMode{Enabled: true}
	}
	pools := []string{"general-purpose", "system"}
	for _, word := range words {
		switch {
		case word == autoModeOff || word == autoModeNoPools:
			l.fail(o.AnnotationProblem(manifest.AnnotationAutoMode, word+" excludes all other words", fix))
		case !slices.Contains(pools, word):
			l.fail(o.AnnotationProblem(manifest.AnnotationAutoMode, "EKS has no node pool "+word, cmp.Or(suggest.DidYouMean(word, pools), fix)))
		}
	}
	return &manifest.AutoMode{Enabled: true, NodePools: slices.Sorted(slices.Values(words))}
}

// autoModeRole reads the role of the nodes in node pools of EKS.
func (l *loader) autoModeRole(o *manifest.Entry, m *manifest.AutoMode) string {
	role, named := o.Annotation(manifest.AnnotationAutoModeRole)
	if len(m.NodePools) > 0 {
		name := role[strings.LastIndex(role, "/")+1:]
		if named && name == "" {
			l.fail(o.AnnotationProblem(manifest.AnnotationAutoModeRole, "it is not the name of a role", "write the name of an IAM role, or its ARN"))
		}
		return name
	}
	if named {
		l.fail(
			o.AnnotationProblem(
				manifest.AnnotationAutoModeRole,
				"only node pools of EKS take a role",
				"remove it: a NodeClass in the cluster names the role of its nodes",
			),
		)
	}
	return ""
}
