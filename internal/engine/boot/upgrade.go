package boot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/blang/semver/v4"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadm "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
)

// ClusterConfig is the ClusterConfiguration that kubeadm stores in the cluster and
// joining machines read.
type ClusterConfig struct {
	Version        string // "v1.34.2"
	Pods, Services string // CIDR blocks, separated by commas
	Domain         string // DNS domain of Services

	text string
	spec *bootstrapv1.ClusterConfiguration
}

// ParseClusterConfig parses the document in the ConfigMap kubeadm-config, in any version
// of kubeadm's API.
func ParseClusterConfig(text string) (*ClusterConfig, error) {
	spec, data, err := kubeadm.UnmarshalClusterConfiguration(text)
	if err != nil {
		return nil, fmt.Errorf("ClusterConfiguration: %w", err)
	}
	return &ClusterConfig{
		Version: value(data.KubernetesVersion), Pods: value(data.PodSubnet), Services: value(data.ServiceSubnet), Domain: value(data.DNSDomain),
		text: text, spec: spec,
	}, nil
}

// Given returns the configuration without the values that kubeadm and Cluster API set by
// themselves: what a manifest has to contain.
func (c *ClusterConfig) Given() bootstrapv1.ClusterConfiguration {
	s, usual := c.spec.DeepCopy(), completed(&bootstrapv1.ClusterConfiguration{})
	s.ControlPlaneEndpoint = ""
	omit(&s.ImageRepository, usual.ImageRepository)
	omit(&s.EncryptionAlgorithm, usual.EncryptionAlgorithm)
	omit(&s.CertificateValidityPeriodDays, usual.CertificateValidityPeriodDays)
	omit(&s.CACertificateValidityPeriodDays, usual.CACertificateValidityPeriodDays)
	omit(&s.Etcd.Local.DataDir, usual.Etcd.Local.DataDir)
	omit(&s.CertificatesDir, defaultCertificatesDir)
	s.APIServer.ExtraArgs = completed(s).APIServer.ExtraArgs
	if on, set := s.FeatureGates[localModeGate]; set && on {
		delete(s.FeatureGates, localModeGate)
	}
	return *s
}

// omit clears a value that is the default.
func omit[T comparable](value *T, byDefault T) {
	if *value == byDefault {
		*value = *new(T)
	}
}

// parts returns the fields that Cluster API updates before it rolls out a control plane:
// see controlplane/kubeadm/internal/workload_cluster.go in its repository.
func parts(s *bootstrapv1.ClusterConfiguration) map[string]any {
	return map[string]any{
		"imageRepository": &s.ImageRepository, "featureGates": &s.FeatureGates, "apiServer": &s.APIServer, "controllerManager": &s.ControllerManager,
		"scheduler": &s.Scheduler, "etcd": &s.Etcd, "certificateValidityPeriodDays": &s.CertificateValidityPeriodDays,
		"caCertificateValidityPeriodDays": &s.CACertificateValidityPeriodDays, "encryptionAlgorithm": &s.EncryptionAlgorithm,
	}
}

// Differs returns the names of the fields that differ from the manifest, as far as the
// version has them. Both sides are converted to kubeadm's document and back: before 1.31
// it lacks some fields and orders arguments differently.
func (c *ClusterConfig) Differs(want bootstrapv1.ClusterConfiguration, version string) (fields []string) {
	text, err := c.Upgraded(want, version)
	if err != nil {
		return []string{"ClusterConfiguration"} // Upgraded returns the error
	}
	upgraded, err := ParseClusterConfig(text)
	if err != nil {
		return []string{"ClusterConfiguration"}
	}
	have := parts(completed(c.spec))
	for name, w := range parts(completed(upgraded.spec)) {
		if !reflect.DeepEqual(plain(w), plain(have[name])) {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}

// Lasting is a field that cannot be changed in a running cluster, with its value there and in the manifest.
type Lasting struct{ Field, Have, Want string }

// LastingFields returns the fields that keep the value that kubeadm init has set: machines that join read the paths of keys from the
// configuration of the cluster, and etcd does not move. Cluster API's webhook of KubeadmControlPlane refuses such changes, too (ValidateUpdate and
// validateClusterConfiguration in controlplane/kubeadm/webhooks/admission/kubeadmcontrolplane.go).
func (c *ClusterConfig) LastingFields(want bootstrapv1.ClusterConfiguration) []Lasting {
	all := []Lasting{
		{"certificatesDir", CertificatesDir(c.spec), CertificatesDir(&want)},
		{"etcd", placeOf(c.spec.Etcd), placeOf(want.Etcd)},
	}
	if have := c.spec.CACertificateValidityPeriodDays; have != 0 { // kubeadm before 1.31 does not store it
		all = append(all, Lasting{"caCertificateValidityPeriodDays", days(have), days(cmp.Or(want.CACertificateValidityPeriodDays, defaultCADays))})
	}
	return all
}

func days(n int32) string { return fmt.Sprintf("%d days", n) }

// placeOf says where etcd runs.
func placeOf(e bootstrapv1.Etcd) string {
	if e.External.IsDefined() {
		return "external"
	}
	return "on the machines of the control plane"
}

// defaultCertificatesDir is where kubeadm keeps certificates by default.
const defaultCertificatesDir = "/etc/kubernetes/pki"

// CertificatesDir returns the folder of the certificates of a control plane.
func CertificatesDir(c *bootstrapv1.ClusterConfiguration) string {
	return cmp.Or(c.CertificatesDir, defaultCertificatesDir)
}

// EtcdDataDir returns the folder in which the etcd of a control plane has its data.
func EtcdDataDir(c *bootstrapv1.ClusterConfiguration) string {
	return cmp.Or(c.Etcd.Local.DataDir, "/var/lib/etcd")
}

// DefaultRepository is kubeadm's default image repository.
const DefaultRepository = "registry.k8s.io"

// completed returns a configuration with the defaults of kubeadm init.
func completed(s *bootstrapv1.ClusterConfiguration) *bootstrapv1.ClusterConfiguration {
	s = s.DeepCopy()
	s.ImageRepository = cmp.Or(s.ImageRepository, DefaultRepository)
	s.EncryptionAlgorithm = cmp.Or(s.EncryptionAlgorithm, bootstrapv1.EncryptionAlgorithmRSA2048)
	s.CertificateValidityPeriodDays = cmp.Or(s.CertificateValidityPeriodDays, 365)
	s.CACertificateValidityPeriodDays = cmp.Or(s.CACertificateValidityPeriodDays, defaultCADays)
	if len(s.Etcd.External.Endpoints) == 0 {
		s.Etcd.Local.DataDir = EtcdDataDir(s)
	}
	s.APIServer.ExtraArgs = slices.DeleteFunc(s.APIServer.ExtraArgs, func(a bootstrapv1.Arg) bool { // kubeadm before 1.31 writes it to the document
		return a.Name == "authorization-mode" && a.Value != nil && *a.Value == "Node,RBAC"
	})
	return s
}

// plain converts a value to JSON values without empty fields.
func plain(v any) (out any) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil // none of these types fails
	}
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return pruned(out)
}

func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if v[k] = pruned(x); v[k] == nil {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	}
	return v
}

// Upgraded returns the document with the version and the values of the manifest. Other
// fields stay.
func (c *ClusterConfig) Upgraded(want bootstrapv1.ClusterConfiguration, version string) (string, error) {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return "", fmt.Errorf("version %q: %w", version, err)
	}
	spec, data, err := kubeadm.UnmarshalClusterConfiguration(c.text)
	if err != nil {
		return "", err
	}
	copied := want.DeepCopy()
	defaultLocalMode(v, copied)
	to, from := parts(spec), parts(copied)
	for name, field := range to {
		reflect.ValueOf(field).Elem().Set(reflect.ValueOf(from[name]).Elem())
	}
	data.KubernetesVersion = &version
	out, err := kubeadm.MarshalClusterConfigurationForVersion(spec, v, data)
	if err != nil {
		return "", fmt.Errorf("ClusterConfiguration: %w", err)
	}
	return out, nil
}

// Argument returns the value of an argument of a component; "" if the argument is not set. If it is set more than once, the last value counts.
func Argument(args []bootstrapv1.Arg, name string) (value string) {
	for _, a := range args {
		if a.Name == name && a.Value != nil {
			value = *a.Value
		}
	}
	return value
}

// ServerArgument returns an argument of the API server; "" if it is not set.
func (c *ClusterConfig) ServerArgument(name string) string {
	return Argument(c.spec.APIServer.ExtraArgs, name)
}
