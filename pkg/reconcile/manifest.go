package reconcile

import (
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest/loader"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/topology"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/upgrade"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// Manifest is one cluster, read from Cluster API objects, with all defaults, and
// validated like the webhooks of Cluster API and CAPA do.
type Manifest struct {
	// Warnings are problems that do not stop a run, such as a field without effect.
	Warnings []input.Problem

	cluster *manifest.Cluster
	text    *upgrade.Text
}

// Load reads a manifest. If it is invalid, the error is an *input.InvalidError with all
// its problems, each with file and line.
func Load(sources []input.Source, o input.LoadOptions) (*Manifest, error) {
	m, err := loader.Load(sources, o)
	if err != nil {
		return nil, err
	}
	return &Manifest{m.Warnings, m, &upgrade.Text{Sources: sources, Options: o}}, nil
}

// Loaded is one cluster of an input with several.
type Loaded struct {
	Name     string    // as LoadOptions.Cluster takes it; "" if the input has no Cluster that can be read
	Manifest *Manifest // nil if it is invalid
	Err      error     // as of Load
}

// LoadAll reads all clusters of an input, each with the objects that belong to it, that it shares with
// others, and that belong to none. A problem of one cluster does not affect the others; a document that
// cannot be read affects all. An input without a Cluster is one result, with the error.
func LoadAll(sources []input.Source, o input.LoadOptions) []Loaded {
	var names []string
	m, err := Load(sources, o)
	if err != nil && o.Cluster == "" { // more than one Cluster is an error of Load
		names = loader.Clusters(sources, o)
	}
	if len(names) < 2 {
		return []Loaded{{Name: loadedName(m, o.Cluster), Manifest: m, Err: err}}
	}
	all := make([]Loaded, len(names))
	for i, name := range names {
		o.Cluster = name
		m, err := Load(sources, o)
		all[i] = Loaded{Name: name, Manifest: m, Err: err}
	}
	return all
}

// Clusters returns the names of the clusters of an input, as LoadOptions.Cluster takes them.
func Clusters(sources []input.Source, o input.LoadOptions) []string {
	return loader.Clusters(sources, o)
}

// loadedName is the name of a cluster that is the only one of an input, or that was chosen.
func loadedName(m *Manifest, chosen string) string {
	if chosen != "" || m == nil {
		return chosen
	}
	return m.Name()
}

// LoadFile reads a manifest from one file of at most input.MaxSize.
func LoadFile(path string, o input.LoadOptions) (*Manifest, error) {
	data, err := new(input.Reader).File(path)
	if err != nil {
		return nil, err
	}
	return Load([]input.Source{{Name: path, Data: data}}, o)
}

// Name is the name of the Cluster object.
func (m *Manifest) Name() string { return m.cluster.Name }

// Variables returns the values of the ${VARIABLES} that were replaced; "" for the default.
func (m *Manifest) Variables() map[string]string { return m.cluster.Variables }

// Region is the AWS region of the cluster.
func (m *Manifest) Region() string { return m.cluster.Region }

// SetRegion replaces the region of the manifest.
func (m *Manifest) SetRegion(region string) { m.cluster.SetRegion(region) }

// RegionField returns the place of the region in the manifest: the position, the object
// ("AWSCluster/demo") and the path ("spec.region").
func (m *Manifest) RegionField() (at input.Position, object, path string) {
	object, path = m.cluster.InfraObject(), "spec.region"
	return m.cluster.At(object, path), object, path
}

// Summary summarizes a manifest.
type Summary struct {
	KubernetesVersion string // of the control plane; "" if EKS chooses
	EKS               bool   // EKS runs the control plane
	ControlPlanes     int    // machines of the control plane
	Workers           int    // machines of deployments and pools, and single ones
	Deployments       []string
	Pools             []string
	FargateProfiles   []string
	AssumesRole       bool // identityRef names an identity for the calls to AWS
}

// Summary returns what the manifest describes.
func (m *Manifest) Summary() Summary {
	c := m.cluster
	s := Summary{KubernetesVersion: c.Version, EKS: c.EKS != nil, AssumesRole: len(c.Identity) > 0}
	if c.ControlPlane != nil {
		s.ControlPlanes = c.ControlPlane.Replicas()
	}
	for _, d := range c.Deployments {
		s.Workers += d.Replicas()
		s.Deployments = append(s.Deployments, d.Object.Name)
	}
	slices.Sort(s.Deployments)
	for _, p := range c.Pools {
		s.Workers += p.Replicas()
		s.Pools = append(s.Pools, p.Object.Name)
	}
	if c.EKS != nil {
		for _, f := range c.EKS.Fargate {
			s.FargateProfiles = append(s.FargateProfiles, f.Name)
		}
	}
	for _, machine := range c.Machines {
		if machine.ControlPlane {
			s.ControlPlanes++
		} else {
			s.Workers++
		}
	}
	return s
}

// Assumed lists what the manifest takes for granted in the account, each once: it refers to it, and does
// not create it.
func (m *Manifest) Assumed() []cluster.Assumed {
	return append(m.cluster.Assumed(), topology.AssumedImages(m.cluster)...)
}

// MostWait returns the latest state that a run outside of the VPC can wait for:
// Infrastructure if the API server has no public address, or lets nobody in; NodesJoined if the manifest has
// no pod network, without which no Node becomes ready; otherwise NodesReady.
func (m *Manifest) MostWait() plan.Wait {
	switch {
	case m.Unreachable() != "":
		return plan.Infrastructure
	case m.cluster.HasPodNetwork():
		return plan.NodesReady
	}
	return plan.NodesJoined
}

// Lacks lists what the Nodes need to become ready, and the manifest does not install: "pod
// network" and, if the kubelets rely on one, "AWS cloud controller manager". It is empty if
// the manifest installs a pod network, or if commands of the control plane may do it.
func (m *Manifest) Lacks() []string {
	c := m.cluster
	if c.HasPodNetwork() || c.AppliesObjects() {
		return nil
	}
	lacks := []string{"pod network"}
	if cp := c.ControlPlane; cp != nil && manifest.ExternalCloudProvider(&cp.Object.Spec.KubeadmConfigSpec) && !c.HasCloudController() {
		lacks = append(lacks, "AWS cloud controller manager")
	}
	return lacks
}

// IsPodNetworkChart reports whether a Helm chart of that name installs a pod network.
func IsPodNetworkChart(name string) bool { return manifest.IsPodNetworkChart(name) }

// LongestRelease is the number of characters that the name of a Helm release may have.
const LongestRelease = manifest.LongestRelease

// IsReleaseName reports whether Helm accepts the name of a release.
func IsReleaseName(name string) bool { return manifest.IsReleaseName(name) }

// closedAPI reports whether EKS lets nobody use the API server, as far as the manifest says: not the creator of
// the cluster, and no other user or role of IAM.
func (m *Manifest) closedAPI() bool {
	if m.cluster.EKS == nil {
		return false
	}
	spec := &m.cluster.EKS.ControlPlane.Spec
	access, config := spec.AccessConfig, spec.IAMAuthenticatorConfig
	return access != nil && access.BootstrapClusterCreatorAdminPermissions != nil && !*access.BootstrapClusterCreatorAdminPermissions &&
		len(spec.AccessEntries) == 0 && (config == nil || len(config.RoleMappings)+len(config.UserMappings) == 0)
}

// Unreachable says why a run outside of the VPC cannot use the API server, with the field of the manifest, and what to do; "" if it can.
func (m *Manifest) Unreachable() string {
	const fromInside = ": run again in the network of the VPC, with --wait=ready"
	object := m.cluster.InfraObject()
	if eks := m.cluster.EKS; eks != nil {
		public := eks.ControlPlane.Spec.EndpointAccess.Public
		switch {
		case public != nil && !*public:
			return "the API server is private (" + m.cluster.Origin(object, "spec.endpointAccess.public") + ")" + fromInside
		case m.closedAPI():
			return "EKS lets nobody use the API server (" + m.cluster.Origin(object, "spec.accessConfig") + "): add yourself to accessEntries, and run again"
		}
		return ""
	}
	if lb := m.cluster.Infra.Spec.ControlPlaneLoadBalancer; lb != nil && lb.Scheme != nil && *lb.Scheme == infrav1.ELBSchemeInternal {
		return "the API server is private (" + m.cluster.Origin(object, "spec.controlPlaneLoadBalancer.scheme") + ")" + fromInside
	}
	return ""
}

// PartitionOf returns the partition of a region, which ARNs begin with: "aws", "aws-cn", "aws-us-gov" and others.
func PartitionOf(region string) string { return manifest.PartitionOf(region) }
