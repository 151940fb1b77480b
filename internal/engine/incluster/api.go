package incluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/eks"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/secrets"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/bootdata"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// API connects resources to the API server of the cluster: as an
// administrator, by a certificate of the cluster's CA or, on EKS, a token.
type API struct {
	Endpoint bootdata.Endpoint
	PKI      *graph.Ref[secrets.PKIState] // nil on EKS
	EKS      *graph.Ref[eks.ClusterState] // nil except on EKS
	Without  string                       // the flags of a run that needs no API server
}

func (a *API) needs() []graph.Edge {
	return append(a.Endpoint.Needs(), append(graph.Reads(a.PKI), graph.Reads(a.EKS)...)...)
}

// Client returns a client of the API server; nil while its address is not known.
func (a *API) Client(c *cloud.Clients) (*kube.Client, error) {
	endpoint := a.Endpoint.String()
	if endpoint == plan.Unknown {
		return nil, nil // its load balancer is not created yet
	}
	if a.EKS != nil {
		have, ok := a.EKS.Found()
		if !ok || len(have.CA) == 0 {
			return nil, nil // EKS is still creating it
		}
		return have.Client(c)
	}
	keys, ok := a.PKI.Found()
	switch {
	case !ok:
		return nil, nil // its keys are not created yet
	case keys.PKI == nil && keys.Path != secrets.KeysNotStored:
		return nil, nil // a run was interrupted while it wrote them; this one writes the rest
	case keys.PKI == nil:
		return nil, errors.New("the keys of the cluster are not in this account, and without them its API server cannot be asked: use " + a.Without)
	}
	return Administrator(c, endpoint, keys.PKI)
}

// Administrator returns a client of the API server at an endpoint, host and
// port, whose certificate is made by the cluster's keys.
func Administrator(c *cloud.Clients, endpoint string, keys *boot.PKI) (*kube.Client, error) {
	return c.API("https://"+endpoint, func() (kube.Access, error) {
		certificate, key, err := boot.ClientCertificate(keys, c.Now())
		return kube.Access{Server: "https://" + endpoint, CA: keys.CA.Cert, Certificate: certificate, Key: key}, err
	})
}

// unavailableError says that the API server does not respond, although it did before.
type unavailableError struct {
	why string
	err error
}

func (e *unavailableError) Error() string { return "the API server: " + e.why }

func (e *unavailableError) Unwrap() error { return e.err }

// errNoAddress says that the address of the API server is not known.
var errNoAddress = &unavailableError{why: "its address is not known"}

// retryUnavailable marks an error as NotYet if the API server is unavailable.
func retryUnavailable(ctx context.Context, err error) error {
	if errors.Is(err, cloud.ErrLockLost) || errors.As(err, new(*cloud.RefusedError)) || isCancellation(ctx, err) ||
		!errors.As(err, new(*url.Error)) && !errors.As(err, new(apierrors.APIStatus)) {
		return err
	}
	if why, unanswered := kube.Unavailable(err); unanswered {
		return graph.NotYet(&unavailableError{why, err})
	}
	return err
}

// isCancellation reports whether an error says only that the context has ended.
func isCancellation(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// retryUnavailable does the same, and names the flags of a run that needs no API
// server.
func (a *API) retryUnavailable(ctx context.Context, err error) error {
	var unavailable *unavailableError
	if err = retryUnavailable(ctx, err); errors.As(err, &unavailable) {
		return graph.NotYet(fmt.Errorf("%w (%s does without it)", unavailable, a.Without))
	}
	return err
}
