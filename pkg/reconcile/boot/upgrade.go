package boot

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/blang/semver/v4"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	kubeadm "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
)

// ClusterConfig is the ClusterConfiguration that kubeadm keeps in a cluster,
// and by which machines join it.
type ClusterConfig struct {
	Version string // "v1.34.2"
	text    string
	spec    *bootstrapv1.ClusterConfiguration
}

// ParseClusterConfig reads the document of a ConfigMap kubeadm-config, of any
// version of kubeadm's.
func ParseClusterConfig(text string) (*ClusterConfig, error) {
	spec, data, err := kubeadm.UnmarshalClusterConfiguration(text)
	if err != nil {
		return nil, fmt.Errorf("ClusterConfiguration: %w", err)
	}
	c := &ClusterConfig{text: text, spec: spec}
	if data.KubernetesVersion != nil {
		c.Version = *data.KubernetesVersion
	}
	return c, nil
}

// parts are the fields that Cluster API brings up to date before it rolls a
// control plane (facts D.9).
func parts(s *bootstrapv1.ClusterConfiguration) map[string]any {
	return map[string]any{
		"imageRepository": &s.ImageRepository, "featureGates": &s.FeatureGates, "apiServer": &s.APIServer, "controllerManager": &s.ControllerManager,
		"scheduler": &s.Scheduler, "etcd": &s.Etcd, "certificateValidityPeriodDays": &s.CertificateValidityPeriodDays,
		"caCertificateValidityPeriodDays": &s.CACertificateValidityPeriodDays, "encryptionAlgorithm": &s.EncryptionAlgorithm,
	}
}

// Differs names the fields that are not as the manifest says. What kubeadm has
// added by itself does not count.
func (c *ClusterConfig) Differs(want bootstrapv1.ClusterConfiguration) (fields []string) {
	have := parts(c.spec)
	for name, w := range parts(&want) {
		if !within(plain(w), plain(have[name])) {
			fields = append(fields, name)
		}
	}
	return fields
}

// plain is a value as JSON has it.
func plain(v any) (out any) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil // no type of these fails
	}
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// within reports whether all of a value is in another one.
func within(want, have any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return want == nil || want == "" || reflect.DeepEqual(want, have)
	}
	h, _ := have.(map[string]any)
	for k, v := range w {
		if !within(v, h[k]) {
			return false
		}
	}
	return true
}

// Upgraded is the document for a version and what the manifest says; the rest
// stays as it is.
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
