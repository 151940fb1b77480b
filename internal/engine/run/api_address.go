package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// StoredAddress returns host and port of the API server of a cluster without its manifest: those with which its first machine was launched, or
// those of the load balancer with the tag of the cluster. The first may be a name of the user's, for which alone the certificates are valid.
// It returns "" if there is none.
func (s *Session) StoredAddress(ctx context.Context) (string, error) {
	if marker, err := secrets.ReadInitMarker(ctx, s.Cloud); err == nil && marker != nil && marker.Endpoint != "" {
		return marker.Endpoint, nil
	}
	return elb.TaggedEndpoint(ctx, s.Cloud)
}

// errNoAddress says that there is no API server yet.
var errNoAddress = errors.New("the cluster has no load balancer")

// checkAPIName checks the name that a manifest gives to the API server, before the first machine is launched with it: kubeadm init fails if the
// name does not lead to the load balancer. As in Cluster API, it wins over the name of the load balancer. A manifest that was read from a management
// cluster has the name of the load balancer of that time, which AWS never gives again.
func (l *Looking) checkAPIName(ctx context.Context) error {
	e, m := l.Built.Endpoint, l.Cluster.Manifest
	if e.Host == "" || e.Host == e.BalancerName() || l.Inventory.Initialized || !l.launchesControlPlane() {
		return nil
	}
	object := m.InfraObject()
	if m.Object.Spec.ControlPlaneEndpoint.Host != "" {
		object = "Cluster/" + m.Name
	}
	origin := m.Origin(object, "spec.controlPlaneEndpoint.host")
	balancer := elb.IsBalancerName(e.Host, l.Cloud.Region)
	if balancer {
		there, err := elb.HasBalancerNamed(cloud.InSnapshot(cloud.ReadOnly(ctx)), l.Cloud, e.Host)
		switch {
		case cloud.Denied(err):
		case err != nil:
			return err
		case !there && e.HasBalancer():
			return plan.RefusalFor([]string{fmt.Sprintf("%s: no load balancer has the name %s, and AWS gives none a second time: remove controlPlaneEndpoint, "+
				"and the API server has the name of the load balancer that the run creates", origin, e.Host)})
		case !there:
			l.Warn("%s: no load balancer in this account has the name %s: no machine joins if it is not in another account", origin, e.Host)
		}
	}
	switch {
	case e.HasBalancer() && balancer:
		l.Warn("%s: %s is another load balancer than that of the cluster: no machine joins if it does not forward to it", origin, e.Host)
	case e.HasBalancer():
		l.Warn("%s: no run makes %s lead to the load balancer: do it in DNS as soon as the run has created the load balancer, whose name 'cluster describe' shows; "+
			"kubeadm init fails if it is missing when the first machine has booted", origin, e.Host)
	}
	return nil
}
