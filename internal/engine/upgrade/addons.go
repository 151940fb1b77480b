package upgrade

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/blang/semver/v4"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// editControllers replaces the versions of AWS cloud controller managers whose minor version is not that of the target.
// Each minor version begins with patch 0.
func (u *upgrade) editControllers(text *manifestText) {
	wanted := fmt.Sprintf("v%d.%d.0", u.target.Major, u.target.Minor)
	for _, c := range u.Cluster.Manifest.CloudControllers() {
		v, err := semver.ParseTolerant(c.Version)
		switch {
		case c.Version == "":
			u.out.Remarks = append(u.out.Remarks, fmt.Sprintf(
				"%s: the version of the chart decides that of the AWS cloud controller manager, which belongs to Kubernetes: "+
					"set image.tag to %s, or a version of the chart that has it",
				u.Cluster.Manifest.Origin(c.Object, c.Path), wanted))
		case err != nil || v.Minor == u.target.Minor:
		default:
			u.editController(text, c, wanted)
			if c.Once {
				u.out.Remarks = append(u.out.Remarks, fmt.Sprintf(
					"%s: runs do not change what this has installed: set strategy: Reconcile of its ClusterResourceSet, "+
						"or reconcileStrategy: Continuous of its HelmChartProxy, or change the version in the cluster, too",
					u.Cluster.Manifest.Origin(c.Object, c.Path)))
			}
		}
	}
}

func (u *upgrade) editController(text *manifestText, c manifest.CloudController, wanted string) {
	at, ok := text.replaceTag(c.At, c.Version, wanted)
	if !ok {
		u.out.Remarks = append(u.out.Remarks, fmt.Sprintf("%s: the AWS cloud controller manager has the version %s, and that for Kubernetes %s is %s: change it, too",
			u.Cluster.Manifest.Origin(c.Object, c.Path), c.Version, u.out.Target, wanted))
		return
	}
	u.out.Edits = append(u.out.Edits, cluster.VersionEdit{At: at.String(), Object: c.Object, Path: c.Path, Old: c.Version, New: wanted})
}

// replaceTag replaces the tag of an image in the document that has a position, and returns where it is. It replaces
// the first line with that tag, after a colon.
func (t *manifestText) replaceTag(in input.Position, tag, wanted string) (input.Position, bool) {
	s, _ := t.line(in)
	if s == nil {
		return in, false
	}
	tagged := regexp.MustCompile(`(:\s*["']?)` + regexp.QuoteMeta(tag) + `(["'\s,}]|$)`)
	lines := bytes.Split(s.Data, []byte("\n"))
	for i := in.Line - 1; i < len(lines); i++ {
		switch {
		case i >= in.Line && bytes.HasPrefix(lines[i], []byte("---")):
			return in, false
		case tagged.Match(lines[i]):
			lines[i] = tagged.ReplaceAll(lines[i], []byte("${1}"+wanted+"${2}"))
			s.Data = bytes.Join(lines, []byte("\n"))
			return input.Position{File: in.File, Line: i + 1}, true
		}
	}
	return in, false
}
