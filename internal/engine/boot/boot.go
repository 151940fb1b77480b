// Package boot makes everything a machine gets to boot with: the cluster's
// keys, the kubeadm configuration, the cloud-init or Ignition document around
// it, the form in which EC2 hands it over, and the kubeconfig of the finished
// cluster; for machines of EKS clusters, what EKS's images read (eks.go,
// nodeadm.go).
//
// The layout is Cluster API's (kubeadm bootstrap provider) and CAPA's, so that
// images, scripts and people that know those find what they expect. Every
// function is pure: no AWS, no clock but the argument, and the same input
// always gives the same output (keys and certificates excepted).
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

// Role is the part a machine plays when kubeadm runs on it.
type Role int

// The roles. The zero value is none of them, so that a forgotten role is an
// error and not a second control plane.
const (
	Init             Role = iota + 1 // the first control-plane machine: kubeadm init
	JoinControlPlane                 // every other control-plane machine: kubeadm join with control plane
	JoinWorker                       // a worker: kubeadm join
)

// String returns the role as it is said in messages.
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

// Machine is what the bootstrap data of one machine, or of a group of workers
// that are all alike, is made from.
type Machine struct {
	Role    Role
	Version string // Kubernetes version of this machine, "v1.34.2"

	// Cluster gives the name and the network; its controlPlaneEndpoint is not
	// looked at, see Endpoint.
	Cluster *clusterv1.Cluster

	// Spec is kubeadmConfigSpec of the KubeadmControlPlane, or the spec of the
	// KubeadmConfig or of the template.
	Spec bootstrapv1.KubeadmConfigSpec

	Endpoint string // "host:port" at which the API server answers
	PKI      *PKI

	// Token lets machines join. It goes into the first machine's
	// configuration, which creates it in the cluster with this lifetime, and
	// into the others', which can thus be launched at the same time.
	Token    string
	TokenTTL time.Duration // whole seconds; 0 is a token that never expires

	Secret Secrets // for contentFrom and passwdFrom
}

// Formats of bootstrap data, as in the key "format" of Cluster API's
// bootstrap secret.
const (
	CloudConfig = "cloud-config"
	Ignition    = "ignition"
)

// Data is rendered bootstrap data.
type Data struct {
	Format  string // CloudConfig or Ignition
	Content []byte // contains private keys and the token: never to be logged
}

// String keeps the content out of logs and messages.
func (d Data) String() string { return d.Format + " " + d.Fingerprint() }

// Fingerprint names the content without telling it: the first 120 bits of its
// SHA-256. It may be shown, stored and compared.
func (d Data) Fingerprint() string {
	sum := sha256.Sum256(d.Content)
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

// Render makes the bootstrap data of a machine. Errors name the field of
// kubeadmConfigSpec that cannot be rendered.
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

// Shape is the fingerprint of the bootstrap data of a machine apart from
// m.Token. It tells a pool of machines whether they would be others with the
// present manifest, or whether only the token in their launch template has been
// renewed, for which no machine has to be replaced.
func Shape(m Machine) (string, error) {
	if m.Token != "" {
		m.Token = "000000.0000000000000000"
	}
	data, err := Render(m)
	return data.Fingerprint(), err
}

// check finds what a caller forgot.
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

// input is what both formats are rendered from.
type input struct {
	spec    *bootstrapv1.KubeadmConfigSpec
	role    Role
	pki     []bootstrapv1.File // keys and certificates
	files   []bootstrapv1.File // spec.files with their contents, and the discovery kubeconfig
	users   []bootstrapv1.User // with their passwords
	kubeadm string             // the configuration documents for kubeadm
}

// newInput resolves everything in the spec that points elsewhere. It fills in
// spec, which must be a copy.
func newInput(m Machine, version semver.Version, spec *bootstrapv1.KubeadmConfigSpec) (*input, error) {
	in := &input{spec: spec, role: m.Role}
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

// command is the kubeadm command line that reads the configuration from path.
func (in *input) command(path string) string {
	verb := "join"
	if in.role == Init {
		verb = "init"
	}
	command := "kubeadm " + verb + " --config " + path
	if in.spec.Verbosity != nil {
		command += fmt.Sprintf(" --v %d", *in.spec.Verbosity)
	}
	return command
}
