package reconcile

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	pkgeks "github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

// Kubeconfig returns the kubeconfig of an administrator. That of a self-managed
// cluster is made with the key of the cluster CA, which is in the account. That of an
// EKS cluster has no secret.
func (c *Cluster) Kubeconfig(ctx context.Context, o cluster.KubeconfigOptions) ([]byte, error) {
	data, err := c.kubeconfig(ctx, o)
	return data, err
}

func (c *Cluster) kubeconfig(ctx context.Context, o cluster.KubeconfigOptions) ([]byte, error) {
	r := c.begin(cluster.Options{})
	if c.manifest != nil && c.manifest.EKS != nil {
		s, err := eks.ClusterByName(cloud.ReadOnly(ctx), r.cloud, c.manifest.EKS.ControlPlane.Spec.EKSClusterName)
		if err == nil && s == nil {
			err = fmt.Errorf("EKS cluster %s does not exist in %s: create it first", c.manifest.EKS.ControlPlane.Spec.EKSClusterName, c.Region)
		}
		if err != nil {
			return nil, refuseIdentity(err)
		}
		return c.eksKubeconfig(s, o)
	}
	keys, err := secrets.StoredPKI(cloud.ReadOnly(ctx), r.cloud)
	if err != nil {
		return nil, refuseIdentity(fmt.Errorf("read the keys of the cluster: %w", err))
	}
	if keys == nil {
		if s, err := eks.Tagged(cloud.ReadOnly(ctx), r.cloud); s != nil && err == nil && c.manifest == nil {
			return c.eksKubeconfig(s, o)
		}
		return nil, fmt.Errorf("the account has no keys of cluster %s in %s: create the cluster first", c.Name, c.Region)
	}
	endpoint, err := r.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	return boot.Kubeconfig(c.Name, endpoint, keys, r.cloud.Now())
}

// eksKubeconfig makes a kubeconfig whose tokens a program makes, in the role
// of the manifest's identity if it has one.
func (c *Cluster) eksKubeconfig(s *eks.ClusterState, o cluster.KubeconfigOptions) ([]byte, error) {
	if s.Endpoint == "" {
		return nil, fmt.Errorf("EKS cluster %s is %s and has no endpoint yet", s.Name, strings.ToLower(s.Status))
	}
	ca, err := base64.StdEncoding.DecodeString(s.CA)
	if err != nil {
		return nil, fmt.Errorf("certificate of EKS cluster %s: %w", s.Name, err)
	}
	k := pkgeks.Kubeconfig{
		Cluster: s.Name, Endpoint: s.Endpoint, CA: ca, Region: c.Region, Profile: o.Profile, Method: ekscontrolplanev1.EKSTokenMethod(o.Method),
	}
	if c.managed() && k.Method == "" && c.manifest.Sets(c.manifest.InfraObject(), "spec.tokenMethod") { // CAPA's default is another one
		k.Method = *c.manifest.EKS.ControlPlane.Spec.TokenMethod
	}
	k.Method = cmp.Or(k.Method, pkgeks.Clusterawsadm)
	if c.manifest != nil {
		for _, id := range c.manifest.Identity {
			if id.Role != nil {
				k.Role = id.Role.RoleArn
			}
		}
	}
	return k.Encode()
}

// endpoint returns the address of the API server, from the manifest or from the load
// balancer with the tag of the cluster.
func (r *run) endpoint(ctx context.Context) (string, error) {
	if r.c.manifest != nil {
		if err := r.look(ctx); err != nil {
			return "", err
		}
		if e := known(r.built.Endpoint.String()); e != "" {
			return e, nil
		}
	} else if e, err := elb.TaggedEndpoint(cloud.ReadOnly(ctx), r.cloud); e != "" || err != nil {
		return e, err
	}
	return "", fmt.Errorf("cluster %s has no load balancer in %s yet", r.c.Name, r.c.Region)
}

// CertificateExpiry returns until when the certificate of an administrator's kubeconfig
// is valid, and why it should be renewed now; the reason is "" for a certificate of this
// cluster's CA that is valid for more than half a year. All are PEM.
func CertificateExpiry(certificate, key, ca []byte, now time.Time) (until time.Time, reason string) {
	return boot.Due(certificate, key, ca, now)
}
