package loader_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// A problem of the value of an annotation is at the line of the annotation, whatever the annotation, and so is one of its name.
func TestAnnotationsHaveTheirLines(t *testing.T) {
	for kind, file := range map[string]string{manifest.KindAWSCluster: "quickstart.yaml", manifest.KindManagedPlane: "eks.yaml", manifest.KindManagedPool: "eks.yaml"} {
		text := manifests.Read(t, "../../../../configs/"+file)
		for _, name := range append(manifest.AnnotationsOf(kind), "no-such-annotation") {
			for _, value := range []string{`"no such, value of it!"`, "17"} {
				if value != "17" && name == manifest.AnnotationControlPlaneTier {
					continue
				}
				t.Run(kind+" "+name+" "+value, func(t *testing.T) {
					requireAtLine(t, text, kind, manifest.OwnAnnotations+name, value)
				})
			}
		}
		for annotation, value := range map[string]string{"a b": `"x"`, "example.com/": `"x"`, "example.com/number": "1"} {
			t.Run(kind+" "+annotation, func(t *testing.T) { requireAtLine(t, text, kind, annotation, value) })
		}
	}
}

// requireAtLine requires that the problems of an annotation that is added to an object are at its line.
func requireAtLine(t *testing.T, text, kind, annotation, value string) {
	t.Helper()
	head := "\nkind: " + kind + "\nmetadata:\n"
	require.Contains(t, text, head)
	entry := fmt.Sprintf("    %q: %s", annotation, value)
	edited := strings.Replace(text, head, head+"  annotations:\n    example.com/first: \"x\"\n    example.com/second: \"x\"\n"+entry+"\n", 1)
	line := 1 + strings.Count(edited[:strings.Index(edited, entry)], "\n")
	var invalid *manifest.InvalidError
	_, err := manifests.Load(t, edited, input.LoadOptions{})
	require.ErrorAs(t, err, &invalid, "%v", errors.Unwrap(err))
	for _, p := range invalid.Problems {
		assert.Equal(t, line, p.Line, p)
	}
}
