package loader_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest/manifests"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// For every input, Load returns a cluster or an *InvalidError, and every problem has a
// text.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "../../../../configs/*.yaml", manifests.Templates + "/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(filepath.Clean(file))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, seed := range []string{
		"", "---", "--- {}", "a: &a [*a]", "<<: {a: 1}", "? [a]\n: b", "${", "$${", "${A:-${B}}", "kind: List\napiVersion: v1\nitems: [1, {}]",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: 1", "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: []",
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AWSCluster\nmetadata: {name: a, annotations: {cluster.x-k8s.io/conversion-data: '{'}}",
		"a: 1e400", "a: .nan", "%YAML 1.2\n---\na: b", "a: |\n  # ${X}\nb: 'it''s # ${Y}' # ${Z}",
		"a: ${A:-${B:-${C:-${D:-x}}}}", "metadata: {name: \"\\x1b[31m\"}", "spec: {replicas: 2147483647}",
		"apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineDeployment\nmetadata: {name: a}\nspec: {clusterName: a, replicas: 2147483647}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := loader.Load([]input.Source{{Name: "-", Data: data}}, input.LoadOptions{
			Lookup: func(name string) (string, bool) { return "a1", name != "MISSING" },
			Region: "eu-west-1",
		})
		var invalid *manifest.InvalidError
		switch {
		case err == nil && c == nil:
			t.Fatal("neither a cluster nor an error")
		case err != nil && !errors.As(err, &invalid):
			t.Fatalf("unexpected error: %v", err)
		case err != nil && err.Error() == "":
			t.Fatal("a problem without a text")
		}
	})
}
