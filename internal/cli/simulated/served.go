package simulated

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// What a served account has besides the API of AWS, for other commands with --simulate: its
// clock, and the API servers of its clusters.
const (
	clockPath = "/.clusterawsadm/clock"

	accessHeader  = "X-Clusterawsadm-Access"  // of a request to an API server: an access, JSON in base64
	failureHeader = "X-Clusterawsadm-Failure" // of a response: there was none, and the body is a failure
)

// servedClock is the answer at clockPath.
type servedClock struct {
	Now   time.Time
	Speed float64
}

// access is a reconcile.Access without tokens, which are in the request.
type access struct {
	Server               string
	CA, Certificate, Key []byte
}

// failure is an error of a connection to an API server.
type failure struct {
	DNS       *net.DNSError `json:",omitempty"`
	UnknownCA bool          `json:",omitempty"` // x509.UnknownAuthorityError
	Operation string        `json:",omitempty"` // of a net.OpError
	Text      string
}

// handler adds the clock and the API servers of the account to the API of AWS.
func (a *Account) handler(aws http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == clockPath:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(servedClock{a.Clock.Now(), a.speed}) // the client is gone
		case r.Header.Get(accessHeader) != "":
			a.forward(w, r)
		default:
			aws.ServeHTTP(w, r)
		}
	})
}

// forward passes a request to an API server of the account.
func (a *Account) forward(w http.ResponseWriter, r *http.Request) {
	var to access
	data, err := base64.StdEncoding.DecodeString(r.Header.Get(accessHeader))
	if err == nil {
		err = json.Unmarshal(data, &to)
	}
	server, parsed := url.Parse(to.Server)
	if err = errors.Join(err, parsed); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.Host, out.URL.Scheme, out.URL.Host = "", "", server.Scheme, server.Host
	out.Header.Del(accessHeader)
	answer, err := a.process.Kubernetes(kube.Access{Server: to.Server, CA: to.CA, Certificate: to.Certificate, Key: to.Key}).RoundTrip(out)
	if err != nil {
		w.Header().Set(failureHeader, "true")
		w.WriteHeader(http.StatusBadGateway)
		_ = json.NewEncoder(w).Encode(failureOf(err)) // the client is gone
		return
	}
	defer func() { _ = answer.Body.Close() }()
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // the client is gone
}

func failureOf(err error) failure {
	f := failure{Text: err.Error(), UnknownCA: errors.As(err, new(x509.UnknownAuthorityError))}
	_ = errors.As(err, &f.DNS)
	var op *net.OpError
	if errors.As(err, &op) {
		f.Operation, f.Text = op.Op, op.Err.Error()
	}
	return f
}

// err is the error, as from the network.
func (f failure) err() error {
	err := errors.New(f.Text)
	switch {
	case f.UnknownCA:
		return x509.UnknownAuthorityError{}
	case f.DNS != nil:
		err = f.DNS
	}
	if f.Operation != "" {
		return &net.OpError{Op: f.Operation, Net: "tcp", Err: err}
	}
	return err
}

// join opens an account that another process serves.
func (o Options) join(ctx context.Context, other *ServedError) (*Account, error) {
	if o.Faults != nil {
		return nil, fmt.Errorf("%w: only that one can have --faults", other)
	}
	endpoint := other.Endpoint
	at, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	now, err := askClock(ctx, endpoint)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", other, err)
	}
	return &Account{
		Config: aws.Config{Region: o.Region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("simulated", "simulated", "")},
		Kubernetes: func(to cluster.Access) http.RoundTripper {
			return &forwarded{at, access{to.Server, to.CA, to.Certificate, to.Key}}
		},
		Clock:    clock.Fast(now.Now, now.Speed),
		Endpoint: endpoint,
	}, nil
}

// answers is how long a served account may take for its clock.
const answers = 10 * time.Second

func askClock(ctx context.Context, endpoint string) (now servedClock, err error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+clockPath, nil)
	if err != nil {
		return now, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return now, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK || json.NewDecoder(answer.Body).Decode(&now) != nil || now.Speed < 1 {
		return now, errors.New("that is another version of this program")
	}
	return now, nil
}

// forwarded carries requests to an API server of a served account.
type forwarded struct {
	at *url.URL // of the served account
	to access
}

// RoundTrip implements http.RoundTripper.
func (f *forwarded) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := json.Marshal(f.to)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = f.at.Scheme, f.at.Host, ""
	out.Header.Set(accessHeader, base64.StdEncoding.EncodeToString(text))
	answer, err := http.DefaultTransport.RoundTrip(out)
	if err != nil || answer.Header.Get(failureHeader) == "" {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	var why failure
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&why); err != nil {
		return nil, err
	}
	return nil, why.err()
}
