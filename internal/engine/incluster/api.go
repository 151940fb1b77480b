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
)

// API is how resources reach the API server of the cluster: as an
// administrator, by a certificate of the cluster's CA or, on EKS, a token.
type API struct {
	Endpoint bootdata.Endpoint
	PKI      *graph.Ref[secrets.PKIState] // nil on EKS
	EKS      *graph.Ref[eks.ClusterState] // nil but on EKS
	Without  string                       // the flags of a run that does without it
}

func (a *API) needs() []graph.Edge {
	return append(a.Endpoint.Needs(), append(graph.Reads(a.PKI), graph.Reads(a.EKS)...)...)
}

// Client returns a client of the API server; nil while it is not known where
// that is.
func (a *API) Client(c *cloud.Clients) (*kube.Client, error) {
	endpoint := a.Endpoint.String()
	if endpoint == graph.Unknown {
		return nil, nil // there is nobody to talk to
	}
	if a.EKS != nil {
		have, ok := a.EKS.Found()
		if !ok || len(have.CA) == 0 {
			return nil, nil // EKS does not tell yet
		}
		return have.Client(c)
	}
	keys, ok := a.PKI.Found()
	switch {
	case !ok:
		return nil, nil // nothing has been made
	case keys.PKI == nil && keys.Path != secrets.KeptElsewhere:
		return nil, nil // a run died while it wrote them, and this one writes the rest
	case keys.PKI == nil:
		return nil, errors.New("the keys of the cluster are not in this account, and without them its API server cannot be asked: use " + a.Without)
	}
	return Administrator(c, endpoint, keys.PKI)
}

// Administrator returns a client of the API server at an endpoint, host and
// port, whose certificate is made by the cluster's keys.
func Administrator(c *cloud.Clients, endpoint string, keys *boot.PKI) (*kube.Client, error) {
	return c.API("https://"+endpoint, func() (kube.Access, error) {
		certificate, key, err := boot.ClientCertificate(keys, c.Clock.Now())
		return kube.Access{Server: "https://" + endpoint, CA: keys.CA.Cert, Certificate: certificate, Key: key}, err
	})
}

// unansweredError says that the API server has answered before, and did not
// now.
type unansweredError struct {
	why string
	err error
}

func (e *unansweredError) Error() string { return "the API server: " + e.why }

func (e *unansweredError) Unwrap() error { return e.err }

// patiently makes an API server that does not answer something to wait for.
func patiently(ctx context.Context, err error) error {
	if errors.Is(err, cloud.ErrLockLost) || errors.As(err, new(*cloud.RefusedError)) || cutShort(ctx, err) ||
		!errors.As(err, new(*url.Error)) && !errors.As(err, new(apierrors.APIStatus)) {
		return err
	}
	if why, unanswered := kube.Unavailable(err); unanswered {
		return graph.NotYet(&unansweredError{why, err})
	}
	return err
}

// cutShort reports whether an error says no more than that the context has ended.
func cutShort(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// patiently does the same for those that a run can do without.
func (a *API) patiently(ctx context.Context, err error) error {
	var silent *unansweredError
	if err = patiently(ctx, err); errors.As(err, &silent) {
		return graph.NotYet(fmt.Errorf("%w (%s does without it)", silent, a.Without))
	}
	return err
}
