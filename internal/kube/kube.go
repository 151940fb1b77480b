// Package kube is the only package that calls the API servers of clusters.
package kube

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
)

// FieldManager is the name with which changes are recorded in managedFields.
const FieldManager = "clusterawsadm"

// requestTimeout is the timeout of one request. Callers that wait for a server repeat the
// request.
const requestTimeout = 10 * time.Second

// Access is the address of an API server and the credentials for it.
type Access struct {
	Server           string // "https://host:port"
	CA               []byte // PEM
	Certificate, Key []byte // PEM, of a client certificate; or
	Token            func(context.Context) (string, error)
}

// Transport carries requests to an API server; it replaces the network and TLS.
type Transport func(Access) http.RoundTripper

// Client talks to one API server.
type Client struct {
	objects  dynamic.Interface
	raw      rest.Interface
	upgrades *http.Client // for Forward
	server   string
	served   served
}

// New returns a client of an API server. It makes no call. If via is nil, requests go to
// the network. guard wraps the transport and sees every request first. The client waits on the clock.
func New(a Access, via Transport, guard func(http.RoundTripper) http.RoundTripper, on *clock.Clock) (*Client, error) {
	cfg := &rest.Config{
		Host: a.Server, QPS: -1, UserAgent: FieldManager,
		WarningHandler: rest.NoWarnings{}, // warnings about deprecations are for the authors of the objects
	}
	if via != nil {
		cfg.Transport = via(a)
	} else {
		cfg.TLSClientConfig = rest.TLSClientConfig{CAData: a.CA, CertData: a.Certificate, KeyData: a.Key}
		cfg.Dial = (&net.Dialer{Timeout: requestTimeout}).DialContext
	}
	if a.Token != nil {
		cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &bearer{rt, a.Token} })
	}
	cfg.Wrap(awshttp.LimitBodies)
	cfg.Wrap(guard)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &patient{RoundTripper: rt, clock: on} })
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // needed to decode the Status of an error
	cfg = rest.CopyConfig(cfg)
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	upgrades, err := upgrader(cfg)
	return &Client{objects: objects, raw: raw, upgrades: upgrades, server: a.Server}, err
}

// bearer adds a bearer token to every request.
type bearer struct {
	next  http.RoundTripper
	token func(context.Context) (string, error)
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := b.token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(r)
}

// Get reads the JSON at a path. If into is a *[]byte, Get stores the body as it is, for
// logs.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	path, query, _ := strings.Cut(path, "?")
	r := c.raw.Get().AbsPath(path)
	for pair := range strings.SplitSeq(query, "&") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			r = r.Param(k, v)
		}
	}
	result := r.Do(ctx)
	if err := result.Error(); err != nil { // the error of Raw lacks the message of the API server
		return err
	}
	data, err := result.Raw()
	if err != nil || into == nil {
		return err
	}
	if text, ok := into.(*[]byte); ok {
		*text = data
		return nil
	}
	if !strings.HasPrefix(path, "/api") { // such as /version
		return json.Unmarshal(data, into)
	}
	return Decode(data, into)
}

// Decode decodes an object or a list. An API server states the kind of each; an answer without
// one, such as {}, comes from somebody else, and would be an object without content.
func Decode(data []byte, into any) error {
	var is struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &is); err != nil || is.Kind == "" {
		return ErrNotKubernetes
	}
	return json.Unmarshal(data, into)
}

// ErrNotKubernetes is the error of an answer that is not one of an API server.
var ErrNotKubernetes = errors.New("this is not an answer of an API server: is there a proxy or a login page? Check the address of the server and HTTPS_PROXY")

// Ready returns nil if the API server reports that it is ready, and otherwise an error
// with a short reason.
func (c *Client) Ready(ctx context.Context) error {
	result := c.raw.Get().AbsPath("/readyz").Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	text, err := result.Raw()
	if err == nil && strings.TrimSpace(string(text)) != "ok" { // https://kubernetes.io/docs/reference/using-api/health-checks/
		err = ErrNotKubernetes
	}
	return err
}

// Objects returns the client for the objects of a resource type. The namespace is "" for
// types without namespaces.
func (c *Client) Objects(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.objects.Resource(resource)
	}
	return c.objects.Resource(resource).Namespace(namespace)
}

// Core returns the resource type with that name in the core group.
func Core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// Post sends a JSON document to a path, such as an eviction subresource. It does not
// retry when the API server is overloaded or a disruption budget forbids the eviction.
func (c *Client) Post(ctx context.Context, path string, body any) error {
	return send(ctx, c.raw.Post().MaxRetries(0), path, "application/json", body)
}

// Merge applies a JSON merge patch (RFC 7396) to the object at a path.
func (c *Client) Merge(ctx context.Context, path string, body any) error {
	return send(ctx, c.raw.Patch(types.MergePatchType), path, string(types.MergePatchType), body)
}

// Delete removes the object at a path.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.raw.Delete().AbsPath(path).Do(ctx).Error()
}

func send(ctx context.Context, r *rest.Request, path, kind string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return r.AbsPath(path).SetHeader("Content-Type", kind).Body(data).Do(ctx).Error()
}

// Unavailable reports whether the API server could not be reached or was not able to
// answer, with a short reason. It may become available later.
func Unavailable(err error) (why string, yes bool) {
	var (
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		op      *net.OpError
		api     apierrors.APIStatus
		lost    *lostError
	)
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &dns):
		return "the DNS name " + dns.Name + " does not resolve yet", true
	case errors.As(err, &unknown):
		return "its certificate is signed by another CA", true
	case errors.As(err, &host):
		return "its certificate is not valid for this name", true
	case errors.As(err, &op):
		return op.Err.Error(), true
	case errors.As(err, &lost):
		return lost.Error(), true
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "no answer", true
	case errors.As(err, &api):
		if code := api.Status().Code; code >= http.StatusInternalServerError && !Unfit(err) || code == http.StatusTooManyRequests {
			return fmt.Sprintf("it answers with %d %s", code, http.StatusText(int(code))), true
		}
		return "", false
	}
	return err.Error(), true
}

// Unfit reports whether an API server answered 500 although it will not accept the object later: a server-side apply of an object that does
// not fit the schema of its kind (k8s.io/apimachinery/pkg/util/managedfields), or an object that is too large for etcd.
func Unfit(err error) bool {
	var api apierrors.APIStatus
	if !errors.As(err, &api) || api.Status().Code != http.StatusInternalServerError {
		return false
	}
	return slices.ContainsFunc(
		[]string{"failed to create typed patch object", "etcdserver: request is too large", "trying to send message larger than max"},
		func(what string) bool { return strings.Contains(api.Status().Message, what) },
	)
}

// Rejected reports whether the API server answered with an error that repeating the
// request does not change.
func Rejected(err error) bool {
	var api apierrors.APIStatus
	if errors.As(err, new(*UnknownKindError)) {
		return true
	}
	if _, unavailable := Unavailable(err); unavailable {
		return false
	}
	return errors.As(err, &api)
}

// Reason says in a few words why an API server has not done what was requested.
func Reason(err error) string {
	if why, unavailable := Unavailable(err); unavailable {
		return why
	}
	return err.Error()
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
