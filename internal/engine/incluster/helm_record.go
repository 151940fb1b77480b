package incluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/kind"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/text"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// ReleaseLabel is the label of the releases that a run has installed. Its value is the name of the HelmChartProxy.
const ReleaseLabel = "clusterawsadm-chart"

// deployed is the status of a release that is installed, and uninstalled that of one that is not, whose history was kept.
const (
	deployed    = "deployed"
	uninstalled = "uninstalled"
)

// HelmReleaseState is the newest revision of a release.
type HelmReleaseState struct {
	Name      string
	Namespace string
	Chart     string
	Version   string // of the chart
	Revision  int
	Status    string // "deployed", "failed", "pending-upgrade", …
	Values    map[string]any
	Proxy     string // value of ReleaseLabel
}

// CloudID implements graph.State.
func (s HelmReleaseState) CloudID() string { return s.Namespace + "/" + s.Name }

// largestRecord is the largest record of a release that is read, after decompression. A Secret has 1 MiB at most.
const largestRecord = 64 << 20

// findReleases reads the newest revision of releases: all of a namespace, "" for all namespaces, that match a
// selector. helm records a revision in a Secret of type helm.sh/release.v1: the JSON of the release, compressed with
// gzip, as base64 (pkg/storage/driver/secrets.go and util.go of helm).
func findReleases(ctx context.Context, k *kube.Client, namespace, selector string) ([]HelmReleaseState, error) {
	path := "/api/v1/secrets"
	if namespace != "" {
		path = "/api/v1/namespaces/" + namespace + "/secrets"
	}
	var list struct{ Items []corev1.Secret }
	if err := k.Get(ctx, path+"?labelSelector="+selector, &list); err != nil {
		return nil, err
	}
	newest := map[string]corev1.Secret{}
	revision := func(s corev1.Secret) int { n, _ := strconv.Atoi(s.Labels["version"]); return n } // helm wrote it
	for _, s := range list.Items {
		id := s.Namespace + "/" + s.Labels["name"]
		if have, ok := newest[id]; s.Type == "helm.sh/release.v1" && (!ok || revision(s) > revision(have)) {
			newest[id] = s
		}
	}
	var all []HelmReleaseState
	for _, s := range newest {
		state, err := readRecord(s.Data["release"])
		if err != nil {
			return nil, fmt.Errorf("the record of the release %s/%s cannot be read: %w", s.Namespace, s.Labels["name"], err)
		}
		state.Name, state.Namespace, state.Proxy = s.Labels["name"], s.Namespace, s.Labels[ReleaseLabel]
		all = append(all, state)
	}
	slices.SortFunc(all, func(a, b HelmReleaseState) int { return bytes.Compare([]byte(a.CloudID()), []byte(b.CloudID())) })
	return all, nil
}

// Releases lists the releases that runs have installed.
func Releases(ctx context.Context, k *kube.Client) ([]HelmReleaseState, error) {
	all, err := findReleases(ctx, k, "", "owner=helm,"+ReleaseLabel)
	return slices.DeleteFunc(all, func(r HelmReleaseState) bool { return r.Status == uninstalled }), err
}

func findRelease(ctx context.Context, k *kube.Client, namespace, name string) (*HelmReleaseState, error) {
	all, err := findReleases(ctx, k, namespace, "owner=helm,name="+name)
	if err != nil || len(all) == 0 || all[0].Status == uninstalled {
		return nil, err
	}
	return &all[0], nil
}

// readRecord reads the record of a revision.
func readRecord(data []byte) (s HelmReleaseState, err error) {
	raw, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return s, err
	}
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) { // very old records are not compressed
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return s, err
		}
		if raw, err = io.ReadAll(io.LimitReader(z, largestRecord)); err != nil {
			return s, err
		}
	}
	var record struct {
		Version int
		Info    struct{ Status string }
		Chart   struct {
			Metadata struct{ Name, Version string }
		}
		Config map[string]any
	}
	err = json.Unmarshal(raw, &record)
	return HelmReleaseState{
		Chart: record.Chart.Metadata.Name, Version: record.Chart.Metadata.Version, Revision: record.Version, Status: record.Info.Status, Values: record.Config,
	}, err
}

func helmReleaseStatus(s HelmReleaseState) (state, detail string) {
	if s.Name == "" {
		return "", ""
	}
	if s.Status != deployed {
		state = s.Status
	}
	return state, kind.Join(s.Chart, s.Version, "revision "+strconv.Itoa(s.Revision), state)
}

// HelmLeftoversKind is the kind of HelmLeftovers, and the ID.
const HelmLeftoversKind = "helm-leftovers"

// HelmLeftovers are the releases that runs have installed, and whose HelmChartProxy is not in the manifest any more. To
// delete them is to uninstall them.
type HelmLeftovers struct {
	API    *API
	Server *graph.Ref[APIServerState]
	Keep   []string // namespace/name of the releases of the manifest
	Once   []string // names of HelmChartProxies whose releases are never uninstalled
	// Charts says that the manifest has a HelmChartProxy. Without one, a caller who may not read Secrets
	// is not refused.
	Charts bool
}

// HelmLeftoversState lists them.
type HelmLeftoversState struct{ Releases []HelmReleaseState }

// CloudID implements graph.State: "shop/web (web 1.3.0)".
func (s HelmLeftoversState) CloudID() string {
	var names []string
	for _, r := range s.Releases {
		names = append(names, fmt.Sprintf("%s/%s (%s %s)", r.Namespace, r.Name, r.Chart, r.Version))
	}
	return text.Several(names)
}

var (
	_ graph.Desired[HelmLeftoversState] = (*HelmLeftovers)(nil)
	_ graph.Deleter[HelmLeftoversState] = (*HelmLeftovers)(nil)
	_ graph.CheckedDeletion             = (*HelmLeftovers)(nil)
)

// Needs implements graph.Desired.
func (l *HelmLeftovers) Needs() []graph.Edge { return graph.Awaits(l.Server) }

// CheckDeletion implements graph.CheckedDeletion.
func (l *HelmLeftovers) CheckDeletion(ctx context.Context, c *cloud.Clients) (refusal string, err error) {
	_, refusal = helmOf(ctx, c.Helm)
	return refusal, nil
}

// Find implements graph.Desired. Before the API server answers, there are none.
func (l *HelmLeftovers) Find(ctx context.Context, c *cloud.Clients) (*HelmLeftoversState, error) {
	if !answers(l.Server) {
		return nil, nil
	}
	k, err := l.API.Client(c)
	if err != nil || k == nil {
		return nil, err
	}
	all, err := findReleases(ctx, k, "", "owner=helm,"+ReleaseLabel)
	if apierrors.IsForbidden(err) && !l.Charts {
		return nil, nil // on EKS, access policies such as AmazonEKSEditPolicy do not allow it
	}
	if err != nil {
		return nil, l.API.retryUnavailable(ctx, err)
	}
	have := &HelmLeftoversState{}
	for _, r := range all {
		if r.Status != uninstalled && !slices.Contains(l.Keep, r.CloudID()) && !slices.Contains(l.Once, r.Proxy) {
			have.Releases = append(have.Releases, r)
		}
	}
	if len(have.Releases) == 0 {
		return nil, nil
	}
	return have, nil
}

// Diff implements graph.Desired: leftovers are retired, so nothing differs.
func (l *HelmLeftovers) Diff(*HelmLeftoversState) plan.Diff { return nil }

// Delete implements graph.Deleter.
func (l *HelmLeftovers) Delete(ctx context.Context, c *cloud.Clients, have *HelmLeftoversState) error {
	for _, r := range have.Releases {
		if err := runHelm(ctx, c, l.API, []string{"uninstall", r.Name, "--namespace", r.Namespace, "--ignore-not-found"}, nil); err != nil {
			return err
		}
	}
	return nil
}
