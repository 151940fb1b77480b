package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/teardown"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// answersWithin limits the time to connect to the API server before a deletion.
const answersWithin = 10 * time.Second

// connect returns the API server of the cluster for a deletion; nil if there is none, if it
// does not respond, or if it is not to be asked.
func (d *Deleting) connect(ctx context.Context, ask bool) (*kube.Client, error) {
	if !ask {
		return nil, nil
	}
	k, err := d.answering(cloud.InSnapshot(cloud.ReadOnly(ctx)))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		d.Warn("the API server of the cluster cannot be used, so AWS resources of its controllers are found by their tags (%s)", kube.Reason(err))
		return nil, nil
	}
	return k, nil
}

// askCluster adds the Services, Ingresses and volume claims of the cluster to the graph.
// They are deleted first, so that the cluster's controllers delete what they created in
// AWS. A cluster that does not respond is deleted nevertheless: then k is nil.
func (d *Deleting) askCluster(ctx context.Context, k *kube.Client) {
	if k == nil {
		return
	}
	var mu sync.Mutex
	warn := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		d.Warn("%s", text)
	}
	add := func(id plan.ID, in *teardown.InCluster, before []graph.Edge) {
		in.Warn, in.Timeout = warn, d.Cluster.Target.Timeout/3 // the time limit of the resource is longer than twice this
		in.Sweep(d.Built.Graph, id, before)
	}
	if teardown.HasKarpenter(ctx, k) {
		add("in-cluster/karpenter", teardown.KarpenterInCluster(k), graph.Exists(d.Built.Resources()...))
	}
	before := graph.Exists(d.Built.Resources()...) // the controllers of load balancers and volumes may run on nodes of Karpenter
	if d.collects(elb.LoadBalancerKind) {
		add("in-cluster/load-balancers", teardown.BalancersInCluster(k), before)
	}
	if d.options.Volumes != cluster.KeepVolumes {
		add("in-cluster/volumes", teardown.VolumesInCluster(k), before)
	}
}

// answering returns the API server of the cluster if it responds; nil if there is none
// any more.
func (l *Looking) answering(ctx context.Context) (*kube.Client, error) {
	k, err := l.APIServer(ctx)
	if k == nil || err != nil {
		return nil, err
	}
	limited, cancel := l.Cloud.Clock.WithTimeout(ctx, answersWithin, nil)
	defer cancel()
	clock := l.Cloud.Clock
	for began := clock.Now(); ; {
		now := k.Ready(limited)
		if _, unanswered := kube.Unavailable(now); !unanswered {
			return k, now
		}
		if err == nil || limited.Err() == nil { // otherwise the error only says that the time is over
			err = now
		}
		if clock.Sleep(limited, 2*time.Second) != nil || clock.Since(began) >= answersWithin {
			return nil, err
		}
	}
}

// apiServer returns the API server of the cluster; nil if none can run.
func (l *Looking) APIServer(ctx context.Context) (*kube.Client, error) {
	if l.Owner.EKS {
		s, err := eks.ClusterByName(ctx, l.Cloud, l.Owner.Kubernetes)
		if s == nil || err != nil || s.Status != "ACTIVE" && s.Status != "UPDATING" || s.Endpoint == "" {
			return nil, err
		}
		return s.Client(l.Cloud)
	}
	if there, err := teardown.ControlPlaneRuns(ctx, l.Cloud); !there || err != nil {
		return nil, err
	}
	keys, err := secrets.StoredPKI(ctx, l.Cloud)
	if err != nil {
		return nil, err
	}
	if keys == nil {
		return nil, errors.New("the keys of the cluster are not in this account")
	}
	endpoint, err := l.apiEndpoint(ctx)
	if err != nil {
		return nil, err
	}
	return incluster.Administrator(l.Cloud, endpoint, keys)
}

// apiEndpoint returns host and port of the API server, from the graph or from what runs have stored.
func (l *Looking) apiEndpoint(ctx context.Context) (string, error) {
	if e := Known(l.Built.Endpoint.String()); e != "" {
		return e, nil
	}
	e, err := l.StoredAddress(ctx)
	if e == "" && err == nil {
		err = errNoAddress
	}
	return e, err
}
