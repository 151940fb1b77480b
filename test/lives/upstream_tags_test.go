//go:build e2e

package lives_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/internal/golden"
	"github.com/clusterawsadm/clusterawsadm/pkg/convert"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
	capa "github.com/clusterawsadm/clusterawsadm/test/upstream"
)

// The templates of the older releases of Cluster API Provider AWS, and those of their tests, are converted
// to v1beta2, are created, are the same cluster before and after the conversion, and are deleted. The
// golden file of a release lists what is refused, and why. Each text is tested once, in the first release that
// has it.
func TestUpstreamsReleases(t *testing.T) {
	seen, served := map[[32]byte]bool{}, 0
	for _, tag := range capa.Tags() {
		t.Run(tag, func(t *testing.T) {
			dir, whyNot := capa.Download(t, tag)
			if whyNot != "" {
				t.Skip("the module proxy does not have it: " + whyNot)
			}
			served++
			r := release{t: t, dir: dir, results: map[string]string{}}
			for _, name := range r.templates() {
				raw, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				if sum := sha256.Sum256(raw); !seen[sum] {
					seen[sum] = true
					r.try(name, corrected(name, raw))
				}
			}
			golden.Assert(t, "releases/"+tag+".txt", r.String())
		})
	}
	require.NotZero(t, served, "the module proxy has no older release")
}

// release is the results of one release.
type release struct {
	t       *testing.T
	dir     string
	results map[string]string // why a manifest is refused; "" if it is not
}

// String lists what is refused.
func (r *release) String() string {
	var refused []string
	for name, why := range r.results {
		if why != "" {
			refused = append(refused, name+"\n    "+why+"\n")
		}
	}
	slices.Sort(refused)
	return fmt.Sprintf("%d of %d new manifests are created and deleted; refused:\n%s", len(r.results)-len(refused), len(r.results), strings.Join(refused, ""))
}

// templates lists the manifests of a release.
func (r *release) templates() (names []string) {
	for _, folder := range []string{"templates", "test/e2e/data"} {
		require.NoError(r.t, filepath.WalkDir(filepath.Join(r.dir, folder), func(path string, entry fs.DirEntry, err error) error {
			name, _ := filepath.Rel(r.dir, path)
			if err == nil && strings.HasPrefix(entry.Name(), "cluster-template") && strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "kustomize_sources") {
				names = append(names, name)
			}
			return err
		}))
	}
	return names
}

// try converts a manifest, and creates and deletes its cluster.
func (r *release) try(name string, raw []byte) {
	t := r.t
	t.Run(name, func(t *testing.T) {
		result, err := convert.File(filepath.Base(name), raw)
		require.NoError(t, err)
		again, err := convert.File(filepath.Base(name), result.Text)
		require.NoError(t, err)
		require.Equal(t, string(result.Text), string(again.Text))
		load := func(data []byte) (*manifest.Cluster, error) { return r.load(name, data, string(data) != string(raw)) }
		before, whyNot := load(raw)
		m, err := load(result.Text)
		if err != nil {
			require.Error(t, whyNot, "it is valid before the conversion: %v", err)
			r.results[name] = reason(err)
			return
		}
		prepared, err := load(result.Text)
		require.NoError(t, err)
		r.results[name] = ""
		m = enginetest.Quick(m)
		synctest.Test(t, func(t *testing.T) {
			a := enginetest.Account(m, enginetest.Lag)
			assumed(t, a, prepared)
			start := a.Inventory()
			p, err := enginetest.Open(m, a.Process()).Plan(t.Context())
			if err != nil {
				r.results[name] = reason(err)
				return
			}
			require.NotZero(t, p.Count(plan.Create))
			enginetest.MustApply(t, m, a)
			enginetest.RequireNoChange(t, m, a)
			if whyNot == nil {
				enginetest.RequireNoChange(t, enginetest.Quick(before), a)
			}
			enginetest.MustDelete(t, m, a)
			time.Sleep(5 * time.Minute) // until AWS deletes the network interfaces of load balancers
			require.Equal(t, start, a.Inventory())
		})
	})
}

// load loads a manifest. One without its Cluster or its ClusterClass gets the file of the release that has
// it, as in upstream's tests, also converted, and one with Amazon Linux 2 a version of Kubernetes for which
// that exists.
func (r *release) load(name string, data []byte, newest bool) (m *manifest.Cluster, err error) {
	sources := []input.Source{{Name: filepath.Base(name), Data: data}}
	other := []string{
		"COREDNS_ADDON_VERSION",
		"v1.12.4-eksbuild.1",
		"AWS_SUBNET",
		privateSubnet,
		"PUBLIC_SUBNET_ID",
		publicSubnet,
		"PRIVATE_SUBNET_ID",
		privateSubnet,
		"VPC_ID",
		existingVPC,
		"COREDNS_ADDON_CONFIGURATION",
		"{}",
	}
	for range 4 {
		m, err = loadUpstreams(sources, "", other...)
		switch {
		case err == nil:
			return m, nil
		case strings.Contains(err.Error(), "has no argument cloud-provider"):
			other = append(other, "KUBERNETES_VERSION", "v1.32.4") // the last minor version whose API server has it
		case strings.Contains(err.Error(), "Amazon Linux 2 AMIs"):
			sources[0].Data = []byte(
				strings.NewReplacer("v1.12.4-eksbuild.1", "v1.11.4-eksbuild.24", "v1.34.0-eksbuild.2", "v1.32.0-eksbuild.2").Replace(string(sources[0].Data)),
			)
			other = append(
				other,
				"KUBERNETES_VERSION",
				"v1.32.0",
				"VPC_ADDON_VERSION",
				"v1.20.4-eksbuild.1",
				"KUBE_PROXY_ADDON_VERSION",
				"v1.32.0-eksbuild.2",
				"COREDNS_ADDON_VERSION",
				"v1.11.4-eksbuild.24",
			)
		default:
			missing := ""
			if found := regexp.MustCompile(`there is no ClusterClass/(\S+) in`).FindStringSubmatch(err.Error()); found != nil {
				missing = r.with("kind: ClusterClass\nmetadata:\n  name: " + found[1] + "\n")
			} else if strings.Contains(err.Error(), "there is no Cluster in the input") && strings.HasPrefix(name, upstreamEKS) {
				missing = filepath.Join(r.dir, upstreamEKS, "cluster-template-eks-control-plane-only.yaml")
			}
			text, unreadable := os.ReadFile(missing)
			if missing == "" || unreadable != nil || len(sources) > 1 {
				return nil, err
			}
			text = corrected(missing, text)
			if newest {
				result, err := convert.File(filepath.Base(missing), text)
				require.NoError(r.t, err)
				text = result.Text
			}
			sources = append(sources, input.Source{Name: filepath.Base(missing), Data: text})
		}
	}
	return m, err
}

// with returns the first file of upstream's tests that has a text, or "".
func (r *release) with(text string) (file string) {
	require.NoError(r.t, filepath.WalkDir(filepath.Join(r.dir, "test/e2e/data"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && file == "" && strings.HasSuffix(entry.Name(), ".yaml") {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), text) {
				file = path
			}
		}
		return err
	}))
	return file
}

// reason returns the first line of an error, without IDs.
func reason(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return regexp.MustCompile(`\b(ami|vpc|subnet|sg)-[0-9a-f]{17}\b`).ReplaceAllString(line, "$1-…")
}
