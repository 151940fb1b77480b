package manifest

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// HelmChartProxy is the object as CAAPH v0.5.3 has it (api/v1alpha1/helmchartproxy_types.go).
type HelmChartProxy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HelmChartProxySpec `json:"spec,omitempty"`
}

// HelmChartProxySpec is the spec of a HelmChartProxy.
type HelmChartProxySpec struct {
	ClusterSelector   metav1.LabelSelector `json:"clusterSelector"`
	ChartName         string               `json:"chartName"`
	RepoURL           string               `json:"repoURL"`
	ReleaseName       string               `json:"releaseName,omitempty"`
	Namespace         string               `json:"namespace,omitempty"`
	Version           string               `json:"version,omitempty"`
	ValuesTemplate    string               `json:"valuesTemplate,omitempty"`
	ReconcileStrategy string               `json:"reconcileStrategy,omitempty"`
	Options           HelmOptions          `json:"options,omitempty"`
	Credentials       map[string]any       `json:"credentials,omitempty"`
	TLSConfig         *HelmTLS             `json:"tlsConfig,omitempty"`
}

// HelmTLS is spec.tlsConfig.
type HelmTLS struct {
	CASecret              map[string]any `json:"caSecret,omitempty"`
	InsecureSkipTLSVerify bool           `json:"insecureSkipTLSVerify,omitempty"`
}

// HelmOptions is spec.options: flags of helm.
type HelmOptions struct {
	DisableHooks             bool             `json:"disableHooks,omitempty"`
	Wait                     bool             `json:"wait,omitempty"`
	WaitForJobs              bool             `json:"waitForJobs,omitempty"`
	DependencyUpdate         bool             `json:"dependencyUpdate,omitempty"`
	Timeout                  *metav1.Duration `json:"timeout,omitempty"`
	SkipCRDs                 bool             `json:"skipCRDs,omitempty"`
	SubNotes                 bool             `json:"options,omitempty"` // the name that CAAPH gives it
	DisableOpenAPIValidation bool             `json:"disableOpenAPIValidation,omitempty"`
	Atomic                   bool             `json:"atomic,omitempty"`
	EnableClientCache        bool             `json:"enableClientCache,omitempty"`
	TakeOwnership            bool             `json:"takeOwnership,omitempty"`
	Install                  struct {
		CreateNamespace *bool `json:"createNamespace,omitempty"`
		IncludeCRDs     bool  `json:"includeCRDs,omitempty"`
	} `json:"install,omitempty"`
	Upgrade struct {
		Force                bool `json:"force,omitempty"`
		ResetValues          bool `json:"resetValues,omitempty"`
		ReuseValues          bool `json:"reuseValues,omitempty"`
		ResetThenReuseValues bool `json:"resetThenReuseValues,omitempty"`
		Recreate             bool `json:"recreate,omitempty"`
		MaxHistory           *int `json:"maxHistory,omitempty"`
		CleanupOnFail        bool `json:"cleanupOnFail,omitempty"`
	} `json:"upgrade,omitempty"`
	Uninstall struct {
		KeepHistory bool   `json:"keepHistory,omitempty"`
		Description string `json:"description,omitempty"`
	} `json:"uninstall,omitempty"`
}

// The values of spec.reconcileStrategy.
const (
	StrategyContinuous  = "Continuous"
	StrategyInstallOnce = "InstallOnce"
)

// Chart is a Helm chart to install in the cluster: a HelmChartProxy whose selector matches.
type Chart struct {
	Name   string // of the object
	Origin string
	Chart  string // as an argument of helm: a name in Repository, "oci://…", or a folder or archive
	Title  string // chartName
	Repository,
	Version, Release, Namespace string
	Values map[string]any // nil: those of the chart
	// ValuesAt returns the values with the address of the API server; nil if they do not depend on it. Until it is known, Values has
	// plan.Unknown instead.
	ValuesAt func(host string) (map[string]any, error) `json:"-"`
	Once     bool                                      // not upgraded after the installation
	Options  HelmOptions
	// Insecure makes helm accept any certificate of the repository.
	Insecure bool
}

// HasPodNetwork reports whether the chart installs a pod network, judging by its name.
func (c *Chart) HasPodNetwork() bool { return IsPodNetworkChart(c.Title) }

// IsPodNetworkChart reports whether a chart of that name installs a pod network.
func IsPodNetworkChart(name string) bool {
	return slices.Contains([]string{"aws-vpc-cni", "antrea", "calico", "canal", "cilium", "flannel", "kube-ovn", "kube-router", "tigera-operator"}, name)
}

// IsCloudControllerChart reports whether a chart of that name installs the AWS cloud controller manager.
func IsCloudControllerChart(name string) bool { return name == "aws-cloud-controller-manager" }

// UnknownRepository is the repository of charts in imported manifests, which helm does not record. The domain never exists (RFC 6761).
const UnknownRepository = "https://repository.invalid"

// LongestRelease is the longest name of a release: names of objects are made from it.
const LongestRelease = 53

// releaseNames are the names that Helm accepts for a release (ValidateReleaseName in
// pkg/chart/common/util of Helm v3 and v4).
const releaseNames = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`

// IsReleaseName reports whether Helm accepts the name of a release.
func IsReleaseName(name string) bool {
	return len(name) <= LongestRelease && regex.Of(releaseNames).MatchString(name)
}
