// Package boot creates the data with which machines boot: the keys and certificates of
// the cluster, the kubeadm configuration, the cloud-init or Ignition document that
// contains it, the user data, and the administrator's kubeconfig. For EKS nodes it
// creates the configuration that EKS AMIs read (eks.go, nodeadm.go).
//
// The layout is that of Cluster API's kubeadm bootstrap provider and of CAPA, so that
// existing images and scripts work. All functions are pure: they do not call AWS, the
// time is an argument, and the same input gives the same output, except for keys and
// certificates.
package boot

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/blang/semver/v4"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Role is the role of a machine when kubeadm runs on it.
type Role int

// The roles. The zero value is not a role, so that a missing role is an error and does
// not create a second control plane.
const (
	Init             Role = iota + 1 // the first control-plane machine: kubeadm init
	JoinControlPlane                 // every other control-plane machine: kubeadm join with control plane
	JoinWorker                       // a worker: kubeadm join
)

// String returns the role for messages.
func (r Role) String() string {
	switch r {
	case Init:
		return "control plane (init)"
	case JoinControlPlane:
		return "control plane (join)"
	case JoinWorker:
		return "worker (join)"
	default:
		return fmt.Sprintf("unknown role %d", int(r))
	}
}

// Machine is the input for the bootstrap data of one machine, or of a group of identical
// workers.
type Machine struct {
	Role    Role
	Version string // Kubernetes version of this machine, "v1.34.2"

	// Cluster has the name and the network. Its controlPlaneEndpoint is not used, see
	// Endpoint.
	Cluster *clusterv1.Cluster

	// Spec is the kubeadmConfigSpec of the KubeadmControlPlane, or the spec of the
	// KubeadmConfig or KubeadmConfigTemplate.
	Spec bootstrapv1.KubeadmConfigSpec

	Endpoint string // "host:port" of the API server
	PKI      *PKI

	// Token is the bootstrap token with which machines join. The configuration of the
	// first machine creates it, with this lifetime; the other machines use it, so that
	// all machines can be launched at the same time.
	Token    string
	TokenTTL time.Duration // whole seconds; 0 means that the token never expires

	Secret Secrets // for contentFrom and passwdFrom

	Restore *Restore // with Init only: the snapshot that etcd begins with; nil for an empty etcd
}

// Formats of bootstrap data: the values of the key "format" in Cluster API's bootstrap
// secret.
const (
	CloudConfig = "cloud-config"
	Ignition    = "ignition"
)

// Data is rendered bootstrap data.
type Data struct {
	Format  string // CloudConfig or Ignition
	Content []byte // contains private keys and the token: must not be logged
}

// String hides the content from logs and messages.
func (d Data) String() string { return d.Format + " " + d.Fingerprint() }

// Fingerprint is a digest of the content: the first 120 bits of its SHA-256. It may be
// shown, stored and compared.
func (d Data) Fingerprint() string {
	sum := sha256.Sum256(d.Content)
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

// Render renders the bootstrap data of a machine. Errors name the field of
// kubeadmConfigSpec.
func Render(m Machine) (Data, error) {
	version, err := semver.ParseTolerant(m.Version)
	if err != nil {
		return Data{}, fmt.Errorf("version %q: %w", m.Version, err)
	}
	if err := m.check(); err != nil {
		return Data{}, err
	}
	spec := m.Spec.DeepCopy()
	in, err := newInput(m, version, spec)
	if err != nil {
		return Data{}, err
	}
	if spec.Format == bootstrapv1.Ignition {
		content, err := renderIgnition(in)
		return Data{Format: Ignition, Content: content}, err
	}
	content, err := renderCloudConfig(in)
	return Data{Format: CloudConfig, Content: content}, err
}

// Shape is the fingerprint of the bootstrap data without the token. It shows whether a
// changed launch template differs only by a renewed token, in which case no machine of a
// pool is replaced.
func Shape(m Machine) (string, error) {
	if m.Token != "" {
		m.Token = "000000.0000000000000000"
	}
	data, err := Render(m)
	return data.Fingerprint(), err
}

// check returns an error for missing fields.
func (m Machine) check() error {
	var missing []error
	if m.Role < Init || m.Role > JoinWorker {
		missing = append(missing, errors.New(m.Role.String()))
	}
	if m.Cluster == nil {
		missing = append(missing, errors.New("no cluster"))
	}
	if m.Endpoint == "" {
		missing = append(missing, errors.New("no endpoint of the API server"))
	}
	if m.PKI == nil {
		missing = append(missing, errors.New("no certificates"))
	}
	return errors.Join(missing...)
}

// input is the resolved input for both formats.
type input struct {
	spec    *bootstrapv1.KubeadmConfigSpec
	role    Role
	pki     []bootstrapv1.File // keys and certificates
	files   []bootstrapv1.File // spec.files with their contents, and the kubeconfig for discovery
	users   []bootstrapv1.User // with their passwords
	kubeadm string             // the documents for kubeadm
	restore *Restore           // nil for none
}

// newInput resolves all references in the spec. It changes spec, which must be a copy.
func newInput(m Machine, version semver.Version, spec *bootstrapv1.KubeadmConfigSpec) (*input, error) {
	in := &input{spec: spec, role: m.Role}
	if m.Role == Init && m.Restore != nil {
		in.restore = m.Restore
		m.Restore.permit(spec)
	}
	var err error
	if in.pki, err = m.pkiFiles(spec.ClusterConfiguration); err != nil {
		return nil, err
	}
	if in.files, err = m.Secret.files(spec.Files); err != nil {
		return nil, err
	}
	if in.users, err = m.Secret.users(spec.Users); err != nil {
		return nil, err
	}
	in.kubeadm, err = m.kubeadmConfig(version, spec)
	if err != nil {
		return nil, err
	}
	if in.restore != nil {
		in.files = append(in.files, in.restore.files()...)
	}
	if m.Role == Init {
		return in, nil
	}
	discovery, err := discoveryKubeconfig(spec.JoinConfiguration.Discovery.File)
	if err != nil {
		return nil, err
	}
	in.files = append(in.files, discovery...)
	return in, nil
}

// command returns the kubeadm command line with the configuration at path.
func (in *input) command(path string) string {
	verb := "join"
	if in.role == Init {
		verb = "init"
	}
	command := "kubeadm " + verb + " --config " + path
	if in.restore != nil {
		command = "bash " + restoreScriptPath + " " + path + " && " + command
	}
	if in.spec.Verbosity != nil {
		command += fmt.Sprintf(" --v %d", *in.spec.Verbosity)
	}
	return command
}
