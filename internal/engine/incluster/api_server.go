package incluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// APIServer is the API server of the cluster. It is settled when its name resolves, it
// has a certificate of the cluster's CA, and it reports that it is ready.
type APIServer struct {
	API   *API
	After []graph.Edge // resources that have to exist before it can respond
	// Machines are the machines of the control plane; none on EKS.
	Machines []*graph.Ref[ec2.InstanceState]
	// Entries are the access entries of the manifest, on EKS.
	Entries []*graph.Ref[eks.AccessEntryState]
}

// APIServerState is the observed state of an API server.
type APIServerState struct {
	Server  string // https://host:port
	Status  string // "ready", or why not
	Version string // "v1.34.2"
}

// CloudID implements graph.State.
func (s APIServerState) CloudID() string { return s.Server }

// Answers reports whether it was ready.
func (s APIServerState) Answers() bool { return s.Status == ready }

const ready = "ready"

var (
	_ graph.Desired[APIServerState] = (*APIServer)(nil)
	_ graph.Timed                   = (*APIServer)(nil)
	_ graph.TimeLimited             = (*APIServer)(nil)
)

// Needs implements graph.Desired.
func (s *APIServer) Needs() []graph.Edge { return append(s.API.needs(), s.After...) }

// Takes implements graph.Timed. The time starts when its machine runs.
func (s *APIServer) Takes() (create, remove time.Duration) { return apiServerTakes, 0 }

// Find implements graph.Desired.
func (s *APIServer) Find(ctx context.Context, c *cloud.Clients) (*APIServerState, error) {
	k, err := s.API.Client(c)
	if err != nil || k == nil {
		return nil, err
	}
	have := &APIServerState{Server: "https://" + s.API.Endpoint.String(), Status: ready}
	var version struct{ GitVersion string }
	err = k.Ready(ctx)
	if err == nil {
		err = k.Get(ctx, "/version", &version)
	}
	if s.API.EKS != nil && apierrors.IsUnauthorized(err) {
		if !s.letsInLater(c) {
			return nil, fmt.Errorf(
				"it does not let the caller in: %w: give the caller's user or role an entry in spec.accessEntries, or run the command as the creator of the cluster, or use %s",
				err,
				s.API.Without,
			)
		}
		have.Status = "401 Unauthorized, until its access entries have their effect"
		return have, nil
	}
	if err != nil {
		why, unanswered := kube.Unavailable(err)
		if isCancellation(ctx, err) || !unanswered {
			return nil, err
		}
		have.Status = why
		return have, nil
	}
	have.Version = version.GitVersion
	return have, nil
}

// letsInLater reports whether an access entry is missing, or so new that the API server may not know
// it: that takes several seconds ("Grant IAM users access to Kubernetes with EKS access entries", EKS
// user guide).
func (s *APIServer) letsInLater(c *cloud.Clients) bool {
	return slices.ContainsFunc(s.Entries, func(r *graph.Ref[eks.AccessEntryState]) bool {
		e, ok := r.Found()
		return !ok || c.Now().Sub(e.Modified) < entriesTake
	})
}

// entriesTake is for how long the API server may not know a new access entry.
const entriesTake = 2 * time.Minute

// Diff implements graph.Desired.
func (s *APIServer) Diff(have *APIServerState) (d plan.Diff) {
	d.Await("state", have.Status, ready)
	return d
}

// answers reports whether the API server was ready when last observed.
func answers(s *graph.Ref[APIServerState]) bool {
	have, ok := s.Found()
	return ok && have.Answers()
}

// TimeLimit implements graph.TimeLimited.
func (s *APIServer) TimeLimit() time.Duration { return apiServerPatience }

// apiServerPatience counts from when the machines run, and are registered with
// the load balancer.
const apiServerPatience = 15 * time.Minute

// apiServerTakes is how long the first API server usually takes to answer, from
// when its machine runs.
const apiServerTakes = 100 * time.Second
