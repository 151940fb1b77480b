package look

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	pkgeks "github.com/clusterawsadm/clusterawsadm/pkg/eks"
)

// Kubeconfig returns the kubeconfig of an administrator. That of a self-managed
// cluster is made with the key of the cluster CA, which is in the account. That of an
// EKS cluster has no secret.
func Kubeconfig(ctx context.Context, c *run.Cluster, o cluster.KubeconfigOptions) ([]byte, error) {
	v := newView(c)
	if c.Manifest != nil && c.Manifest.EKS != nil {
		s, err := eks.ClusterByName(cloud.ReadOnly(ctx), v.Cloud, c.Manifest.EKS.ControlPlane.Spec.EKSClusterName)
		if err == nil && s == nil {
			err = fmt.Errorf("EKS cluster %s does not exist in %s: create it first", c.Manifest.EKS.ControlPlane.Spec.EKSClusterName, c.Region)
		}
		if err != nil {
			return nil, run.RefuseIdentity(err)
		}
		return eksKubeconfig(c, s, o)
	}
	keys, err := secrets.StoredPKI(cloud.ReadOnly(ctx), v.Cloud)
	if err != nil {
		return nil, run.RefuseIdentity(fmt.Errorf("read the keys of the cluster: %w", err))
	}
	if keys == nil {
		if s, err := eks.Tagged(cloud.ReadOnly(ctx), v.Cloud); s != nil && err == nil && c.Manifest == nil {
			return eksKubeconfig(c, s, o)
		}
		if c.Manifest == nil {
			return nil, cluster.ErrNotFound
		}
		return nil, fmt.Errorf("the account has no keys of cluster %s in %s: create the cluster first", c.Name, c.Region)
	}
	endpoint, err := v.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	return boot.Kubeconfig(c.Name, endpoint, keys, v.Cloud.Now())
}

// eksKubeconfig makes a kubeconfig whose tokens a program makes, in the role
// of the manifest's identity if it has one.
func eksKubeconfig(c *run.Cluster, s *eks.ClusterState, o cluster.KubeconfigOptions) ([]byte, error) {
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
	if c.IsEKS() && k.Method == "" && c.Manifest.Sets(c.Manifest.InfraObject(), "spec.tokenMethod") { // CAPA's default is another one
		k.Method = *c.Manifest.EKS.ControlPlane.Spec.TokenMethod
	}
	k.Method = cmp.Or(k.Method, pkgeks.Clusterawsadm)
	if c.Manifest != nil {
		for _, id := range c.Manifest.Identity {
			if id.Role != nil {
				k.Role = id.Role.RoleArn
			}
		}
	}
	return k.Encode()
}

// endpoint returns the address of the API server, from the manifest or from what runs have stored.
func (v *view) endpoint(ctx context.Context) (string, error) {
	if v.Cluster.Manifest != nil {
		if err := v.Look(ctx); err != nil {
			return "", err
		}
		if e := run.Known(v.Built.Endpoint.String()); e != "" {
			return e, nil
		}
	} else if e, err := v.StoredAddress(cloud.ReadOnly(ctx)); e != "" || err != nil {
		return e, err
	}
	return "", fmt.Errorf("cluster %s has no load balancer in %s yet", v.Cluster.Name, v.Cluster.Region)
}
