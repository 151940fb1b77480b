// Package kube is the only door to the API servers of the clusters that are
// made.
package kube

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
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
)

// FieldManager is who the API server says made a change.
const FieldManager = "clusterawsadm"

// patience is how long one request may take. Those that ask whether a server
// has come up are asked again.
const patience = 10 * time.Second

// Access is how to reach an API server, and who to be there.
type Access struct {
	Server           string // "https://host:port"
	CA               []byte // PEM
	Certificate, Key []byte // PEM, of a client; or
	Token            func(context.Context) (string, error)
}

// Transport carries requests to the API server of an access; it stands in for
// the network and TLS.
type Transport func(Access) http.RoundTripper

// Client talks to one API server.
type Client struct {
	objects dynamic.Interface
	raw     rest.Interface
	served  served
}

// New prepares to talk to an API server. It makes no call. The transport may be
// nil, for the network; guard sees every request first.
func New(a Access, via Transport, guard func(http.RoundTripper) http.RoundTripper) (*Client, error) {
	cfg := &rest.Config{
		Host: a.Server, QPS: -1, Timeout: patience, UserAgent: FieldManager,
		WarningHandler: rest.NoWarnings{}, // deprecations are told to those who write the objects
	}
	if via != nil {
		cfg.Transport = via(a)
	} else {
		cfg.TLSClientConfig = rest.TLSClientConfig{CAData: a.CA, CertData: a.Certificate, KeyData: a.Key}
		cfg.Dial = (&net.Dialer{Timeout: patience}).DialContext
	}
	if a.Token != nil {
		cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &bearer{rt, a.Token} })
	}
	cfg.Wrap(guard)
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // or what the API server says of an error cannot be read
	cfg = rest.CopyConfig(cfg)
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(cfg)
	return &Client{objects: objects, raw: raw}, err
}

// bearer gives every request a token.
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

// Get reads the JSON at a path; into a *[]byte whatever is there: a log.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	path, query, _ := strings.Cut(path, "?")
	r := c.raw.Get().AbsPath(path)
	for pair := range strings.SplitSeq(query, "&") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			r = r.Param(k, v)
		}
	}
	result := r.Do(ctx)
	if err := result.Error(); err != nil { // Raw's does not say what the API server said
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
	return json.Unmarshal(data, into)
}

// Ready asks the API server whether it is. The error says in a few words why
// not.
func (c *Client) Ready(ctx context.Context) error {
	result := c.raw.Get().AbsPath("/readyz").Do(ctx)
	return result.Error()
}

// Objects is where the objects of a kind are; the namespace is "" for kinds
// that have none.
func (c *Client) Objects(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.objects.Resource(resource)
	}
	return c.objects.Resource(resource).Namespace(namespace)
}

// Core is the resource of that name in the core group.
func Core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// Post sends a JSON document to a path: a subresource like an eviction. What
// the API server is too busy for, or a disruption budget forbids, is not tried
// again.
func (c *Client) Post(ctx context.Context, path string, body any) error {
	return send(ctx, c.raw.Post().MaxRetries(0), path, "application/json", body)
}

// Merge changes the object at a path: what the document names becomes as there,
// and what is null there goes (RFC 7396).
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

// Unanswered reports whether there was no API server to answer, and says why
// in a few words: it may still come up, or be out of reach.
func Unanswered(err error) (why string, yes bool) {
	var (
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		op      *net.OpError
		api     apierrors.APIStatus
	)
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &dns):
		return "its name " + dns.Name + " is not known yet", true
	case errors.As(err, &unknown):
		return "it shows a certificate of another CA", true
	case errors.As(err, &host):
		return "its certificate is not for this name", true
	case errors.As(err, &op):
		return op.Err.Error(), true
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "no answer", true
	case errors.As(err, &api):
		if code := api.Status().Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests {
			return fmt.Sprintf("it answers with %d %s", code, http.StatusText(int(code))), true
		}
		return "", false
	}
	return err.Error(), true
}

// Refused reports whether an API server answered, and will not do what it was
// asked for however often that is repeated.
func Refused(err error) bool {
	var api apierrors.APIStatus
	if errors.As(err, new(*UnknownKindError)) {
		return true
	}
	if _, unanswered := Unanswered(err); unanswered {
		return false
	}
	return errors.As(err, &api)
}

// Why says in a few words why an API server has not done what it was asked for.
func Why(err error) string {
	if why, unanswered := Unanswered(err); unanswered {
		return why
	}
	return err.Error()
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
