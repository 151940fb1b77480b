package bootdata

import (
	"context"
	"fmt"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
)

// Values as long as those that a run finds later, with which a plan renders boot data.
const (
	longHost = "default-cluster-apiserver-0123456789abcdef.elb.ap-southeast-2.amazonaws.com:6443"
	keysOf   = 8 << 10 // bytes by which keys of RSA are longer than those of ECDSA, at most
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

// Rejected is Refusal for one machine: those of a group have the same data.
func (d *Data) Rejected() string {
	if d.Plain != nil || d.EKS != nil || d.Restore != nil {
		return ""
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
	if refusal := d.refused(m, string(bootstrapv1.EncryptionAlgorithmECDSAP256), keysOf); refusal == "" {
		return ""
	}
	return d.refused(m, algorithm, 0)
}

// refused renders the data with new keys, and room for more bytes.
func (d *Data) refused(m boot.Machine, algorithm string, room int) string {
	const oneDay = 1
	keys, err := boot.NewPKI(algorithm, oneDay, time.Now())
	if err != nil {
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
		return "user data is nearly too large"
	}
	return ""
}

// refusal renders the data of a machine.
func (d *Data) refusal(m boot.Machine) string {
	data, err := boot.Render(m)
	if err == nil && d.Backend == boot.UserData {
		_, err = boot.Fit(data.Format, data.Content, d.Uncompressed)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
