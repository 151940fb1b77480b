package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// clusterLabel is on all objects of a cluster but the Cluster itself.
const clusterLabel = "cluster.x-k8s.io/cluster-name"

// Settled waits until all objects of a cluster are as desired, and returns how long that
// took.
func (m *Management) Settled(t *testing.T, cluster string, patience time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		m.Machines(t) // the lab itself has to work
		open := m.Unsettled(t, cluster)
		if len(open) == 0 {
			return time.Since(began)
		}
		require.Less(t, time.Since(began), patience, "not settled:\n%s", strings.Join(open, "\n"))
		time.Sleep(2 * time.Second)
	}
}

// Unsettled returns what is not as desired in the objects of a cluster: conditions,
// numbers of replicas, and generations.
func (m *Management) Unsettled(t *testing.T, cluster string) (open []string) {
	t.Helper()
	found := false
	for _, o := range m.List(t, m.kinds(t)) {
		is := o.GetKind() == "Cluster" && o.GetName() == cluster
		found = found || is
		if !is && o.GetLabels()[clusterLabel] != cluster {
			continue
		}
		for _, what := range unsettled(o) {
			open = append(open, fmt.Sprintf("%s %s: %s", o.GetKind(), o.GetName(), what))
		}
	}
	if !found {
		open = append(open, "there is no Cluster "+cluster)
	}
	return open
}

func unsettled(o unstructured.Unstructured) (open []string) {
	if o.GetDeletionTimestamp() != nil {
		open = append(open, "is being deleted")
	}
	number := func(path ...string) (int64, bool) {
		n, is, _ := unstructured.NestedInt64(o.Object, path...) // another type is not a number
		return n, is
	}
	if seen, is := number("status", "observedGeneration"); is && seen != o.GetGeneration() {
		open = append(open, fmt.Sprintf("generation %d is not observed", o.GetGeneration()))
	}
	if want, is := number("spec", "replicas"); is {
		for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
			if have, _ := number("status", field); have != want {
				open = append(open, fmt.Sprintf("%s is %d, not %d", field, have, want))
			}
		}
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // a kind may have none
	for _, each := range conditions {
		c := each.(map[string]any)
		if c["status"] != desired(c["type"].(string)) {
			open = append(open, fmt.Sprintf("%s is %s: %v %v", c["type"], c["status"], c["reason"], c["message"]))
		}
	}
	return open
}

// desired returns the status of a condition when nothing is to be done.
func desired(condition string) string {
	negative := []string{"Deleting", "Paused", "Remediating", "RollingOut", "ScalingDown", "ScalingUp", "Updating"}
	if slices.Contains(negative, condition) {
		return "False"
	}
	return "True"
}

// List returns the objects of some kinds, "machines,secrets", in all namespaces.
func (m *Management) List(t *testing.T, kinds string) []unstructured.Unstructured {
	t.Helper()
	var list unstructured.UnstructuredList
	require.NoError(t, json.Unmarshal([]byte(m.Kubectl(t, "get", kinds, "-A", "-o", "json")), &list))
	return list.Items
}

// Dump writes all objects of the providers, Secrets and ConfigMaps to a folder, one to a
// file, and the requests to AWS to requests.txt.
func (m *Management) Dump(t *testing.T, folder string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(folder))
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for _, o := range m.List(t, m.kinds(t)+",secrets,configmaps") {
		text, err := yaml.Marshal(o.Object)
		require.NoError(t, err)
		file := fmt.Sprintf("%s.%s.%s.yaml", strings.ToLower(o.GetKind()), o.GetNamespace(), o.GetName())
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), text, 0o600))
	}
	require.NoError(t, m.Requests.write(filepath.Join(folder, "requests.txt")))
}
