package bootdata

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

// Values as long as those that a run finds later, with which a plan renders boot data.
const (
	longHost   = "default-cluster-apiserver-0123456789abcdef.elb.ap-southeast-2.amazonaws.com:6443"
	lengthOfCA = 1107 // bytes of the certificate of an EKS cluster, in PEM
)

// Refusal implements ec2.Renderer: it renders the data as a run would, with an endpoint and keys that
// are not those of the cluster where these do not exist yet. It says why the data cannot be rendered, or
// does not fit into user data; "" for nothing.
func (d *Data) Refusal(ctx context.Context, c *cloud.Clients) string {
	role := fmt.Sprintf("boot data %s %v", d.Group, d.Machine.Role)
	refusal, err := cloud.Remember(ctx, c, role, func(context.Context) (string, error) { return d.Rejected(), nil })
	if err != nil {
		return err.Error()
	}
	return refusal
}

// ForLinux reports whether the data are made here: they are for Linux.
func (d *Data) ForLinux() bool { return d.Plain == nil }

// Rejected is Refusal for one machine: those of a group have the same data.
func (d *Data) Rejected() string {
	switch {
	case d.Plain != nil, d.Restore != nil:
		return ""
	case d.EKS != nil:
		return d.fits(d.EKS.renderFor(d.EKS.planned()))
	}
	m := d.Machine
	if m.Endpoint = d.Endpoint.String(); m.Endpoint == plan.Unknown {
		m.Endpoint = longHost
	}
	m.Token = anyToken
	algorithm := string(d.Machine.Spec.ClusterConfiguration.EncryptionAlgorithm)
	if keys, ok := d.PKI.Found(); ok && keys.PKI != nil {
		m.PKI = keys.PKI
		return d.refusal(m)
	}
	if refusal := d.refused(m, string(bootstrapv1.EncryptionAlgorithmECDSAP256), d.roomFor(algorithm)); refusal == "" {
		return ""
	}
	return d.refused(m, algorithm, d.differs())
}

// roomFor returns by how many bytes user data with keys of an algorithm is longer than with those of ECDSA-P256, at most. Three certificates
// with their keys and a service-account key are 8 KB longer with 2,048 bits, and a URL in Ignition has three bytes for some of their characters.
func (d *Data) roomFor(algorithm string) int {
	const quick, percentEncoded = 8 << 10, 8
	room := map[string]int{
		string(bootstrapv1.EncryptionAlgorithmRSA3072): 12 << 10, string(bootstrapv1.EncryptionAlgorithmRSA4096): 16 << 10,
	}[algorithm]
	if room = max(room, quick); d.Machine.Spec.Format == bootstrapv1.Ignition {
		room += room / percentEncoded
	}
	return room
}

// differs returns by how many bytes the data of two sets of keys may differ: in a URL in Ignition, three bytes are needed for each '/' and '+' of
// the keys, of which there are about 300, so that 100 bytes are the fifth standard deviation.
func (d *Data) differs() int {
	const most = 100
	if d.Machine.Spec.Format == bootstrapv1.Ignition {
		return most
	}
	return 0
}

// refused renders the data with the keys of the manifest and new ones for the others, and room for more bytes.
func (d *Data) refused(m boot.Machine, algorithm string, room int) string {
	const oneDay = 1
	keys := &boot.PKI{}
	if d.Given != nil {
		*keys = *d.Given
	}
	if err := keys.Complete(algorithm, oneDay, time.Now()); err != nil {
		return err.Error()
	}
	m.PKI = keys
	data, err := boot.Render(m)
	if err != nil {
		return err.Error()
	}
	if d.Backend != boot.UserData {
		return ""
	}
	fitting, err := boot.Fit(data.Format, data.Content, d.Uncompressed)
	switch {
	case err != nil:
		return err.Error()
	case len(fitting)+room > boot.MaxUserData:
		return fmt.Sprintf("user data of about %d bytes may be larger than the %d that EC2 allows: use ignition.storageType ClusterObjectStore, "+
			"or reduce the files in kubeadmConfigSpec", len(fitting), boot.MaxUserData)
	}
	return ""
}

// refusal renders the data of a machine.
func (d *Data) refusal(m boot.Machine) string {
	return d.fits(boot.Render(m))
}

// fits says why data that was rendered cannot be used.
func (d *Data) fits(data boot.Data, err error) string {
	if err == nil && d.Backend == boot.UserData {
		_, err = boot.Fit(data.Format, data.Content, d.Uncompressed)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// planned is the EKS cluster, with values like those of EKS for what it does not have yet.
func (j *EKSJoin) planned() eks.ClusterState {
	c, ok := j.Cluster.Found()
	if !ok || c.Endpoint == "" || c.CA == "" {
		c.Name = cmp.Or(c.Name, "default_cluster-control-plane")
		c.Endpoint = "https://0123456789ABCDEF0123456789ABCDEF.gr7.ap-southeast-2.eks.amazonaws.com"
		c.CA = base64.StdEncoding.EncodeToString(incompressible(lengthOfCA))
		c.ServiceCIDR = cmp.Or(c.ServiceCIDR, "172.20.0.0/16")
	}
	return c
}

// incompressible returns bytes that do not become shorter when they are compressed, as those of a certificate.
func incompressible(length int) (out []byte) {
	for sum := sha256.Sum256(nil); len(out) < length; sum = sha256.Sum256(sum[:]) {
		out = append(out, sum[:]...)
	}
	return out[:length]
}
