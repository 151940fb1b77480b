package reconcile

import (
	"os"
	"slices"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/pkg/input"
)

// Source is one file of a manifest.
type Source struct {
	Name string // as messages call it: "demo.yaml"; "-" for standard input
	Data []byte // YAML documents
}

// LoadOptions say what a manifest does not say itself. The zero value is good.
type LoadOptions struct {
	// Lookup returns the values of ${VARIABLES}, as os.LookupEnv does; nil: none
	// is set.
	Lookup func(name string) (string, bool)
	// Region is for a manifest that names none.
	Region string
	// EKSEnableIAM creates missing roles of EKS, as CAPA's feature gate of that
	// name does.
	EKSEnableIAM bool
	// CNI and Addons are Kubernetes objects that are applied to the cluster, as a
	// ClusterResourceSet is. CNI is for those of the pod network.
	CNI, Addons []Source
	// Strict makes errors of warnings.
	Strict bool
}

// Manifest is one cluster, read from Cluster API objects, with all defaults, and
// checked as the webhooks of Cluster API and of its AWS provider check it.
type Manifest struct {
	// Warnings are remarks that stop nothing, such as a field without effect.
	Warnings []input.Problem

	cluster *manifest.Cluster
}

// Load reads a manifest. Where it is wrong the error is an *input.InvalidError
// with all its problems, each with file and line.
func Load(sources []Source, o LoadOptions) (*Manifest, error) {
	m, err := manifest.Load(sourcesOf(sources), manifest.Options{
		Lookup: o.Lookup, Region: o.Region, EKSEnableIAM: o.EKSEnableIAM,
		CNI: sourcesOf(o.CNI), Addons: sourcesOf(o.Addons), Strict: o.Strict,
	})
	if err != nil {
		return nil, err
	}
	return &Manifest{m.Warnings, m}, nil
}

// LoadFile reads a manifest from one file.
func LoadFile(path string, o LoadOptions) (*Manifest, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the file that the caller names
	if err != nil {
		return nil, err
	}
	return Load([]Source{{Name: path, Data: data}}, o)
}

func sourcesOf(sources []Source) (out []manifest.Source) {
	for _, s := range sources {
		out = append(out, manifest.Source(s))
	}
	return out
}

// Name is the name of the Cluster object.
func (m *Manifest) Name() string { return m.cluster.Name }

// Region is the AWS region of the cluster.
func (m *Manifest) Region() string { return m.cluster.Region }

// SetRegion replaces the region of the manifest.
func (m *Manifest) SetRegion(region string) { m.cluster.SetRegion(region) }

// RegionField says where the manifest has the region: the place, the object
// ("AWSCluster/demo") and the path in it ("spec.region").
func (m *Manifest) RegionField() (at input.Position, object, path string) {
	object, path = m.cluster.InfraObject(), "spec.region"
	return m.cluster.At(object, path), object, path
}

// Summary is what a manifest describes.
type Summary struct {
	KubernetesVersion string // of the control plane; "" where EKS chooses
	EKS               bool   // EKS runs the control plane
	ControlPlanes     int    // machines of the control plane
	Workers           int    // machines of deployments and pools, and single ones
	Deployments       []string
	Pools             []string
	FargateProfiles   []string
	AssumesRole       bool // identityRef names an identity that AWS is called with
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

// MostWait returns the farthest that a run outside of the VPC can wait for:
// Infrastructure where the API server has no public address, APIServer where
// the manifest brings no pod network, without which no Node becomes ready, and
// else NodesReady.
func (m *Manifest) MostWait() Wait {
	switch {
	case m.privateAPI():
		return Infrastructure
	case m.cluster.HasPodNetwork():
		return NodesReady
	}
	return APIServer
}

// privateAPI reports whether the API server has no address outside of the VPC.
func (m *Manifest) privateAPI() bool {
	if eks := m.cluster.EKS; eks != nil {
		public := eks.ControlPlane.Spec.EndpointAccess.Public
		return public != nil && !*public
	}
	lb := m.cluster.Infra.Spec.ControlPlaneLoadBalancer
	return lb != nil && lb.Scheme != nil && *lb.Scheme == infrav1.ELBSchemeInternal
}
