package loader

import (
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
func (l *loader) autoMode(o *manifest.Entry) *manifest.AutoMode { //nolint:cyclop // a case for each mistake
	words, set := l.list(o, manifest.AnnotationAutoMode)
	role, named := o.Annotation(manifest.AnnotationAutoModeRole)
	if !set {
		if named {
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
	const fix = "set it to node pools of EKS (general-purpose, system), to none, or to false"
	pools := []string{"general-purpose", "system"}
	m := &manifest.AutoMode{Enabled: true, NodePools: slices.Sorted(slices.Values(words))}
	switch single := len(words) == 1; {
	case len(words) == 0:
		l.fail(o.AnnotationProblem(manifest.AnnotationAutoMode, "it names nothing", fix))
	case single && words[0] == autoModeOff:
		m = &manifest.AutoMode{}
	case single && words[0] == autoModeNoPools:
		m.NodePools = nil
	default:
		for _, word := range words {
			switch {
			case word == autoModeOff || word == autoModeNoPools:
				l.fail(o.AnnotationProblem(manifest.AnnotationAutoMode, word+" excludes all other words", fix))
			case !slices.Contains(pools, word):
				hint := suggest.DidYouMean(word, pools)
				if hint == "" {
					hint = fix
				}
				l.fail(o.AnnotationProblem(manifest.AnnotationAutoMode, "EKS has no node pool "+word, hint))
			}
		}
	}
	switch {
	case len(m.NodePools) > 0:
		m.Role = role[strings.LastIndex(role, "/")+1:]
		if named && m.Role == "" {
			l.fail(o.AnnotationProblem(manifest.AnnotationAutoModeRole, "it is not the name of a role", "write the name of an IAM role, or its ARN"))
		}
	case named:
		l.fail(
			o.AnnotationProblem(
				manifest.AnnotationAutoModeRole,
				"only node pools of EKS take a role",
				"remove it: a NodeClass in the cluster names the role of its nodes",
			),
		)
	}
	return m
}
