package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Request is a request to AWS.
type Request struct {
	Time    time.Time
	Service string // from its signature, "ec2"
	Action  string // "RunInstances", or "DELETE /path" for services with the REST protocol
	Body    string
	Status  int // HTTP status of the response
}

// String returns one line.
func (r Request) String() string {
	kind := "read"
	if r.Write() {
		kind = "WRITE"
	}
	return fmt.Sprintf("%s %-5s %d %s %s %s", r.Time.Format("15:04:05.000"), kind, r.Status, r.Service, r.Action, r.Body)
}

// reads matches the actions that do not change the account. STS only returns credentials.
var reads = regexp.MustCompile(`^(Describe|Get|List|Head|Lookup|Search|BatchGet|Simulate|GET /|HEAD /)`)

// Write reports whether the request may change the account.
func (r Request) Write() bool { return r.Service != "sts" && !reads.MatchString(r.Action) }

// Repeated reports whether the request is one that CAPA 2.13 sends whenever it reconciles a
// Network Load Balancer or a bucket, also one that it has made itself, with the values that it
// has: it compares all attributes with the one that it sets (reconcileV2LB), never compares
// security groups (shouldReconcileSGs in pkg/cloud/services/elb/loadbalancer.go), and nothing
// of a bucket (ReconcileBucket and CreateForMachinePool in pkg/cloud/services/s3/s3.go).
func (r Request) Repeated() bool {
	switch r.Service {
	case "elasticloadbalancing":
		return r.Action == "SetSecurityGroups" || r.Action == "ModifyLoadBalancerAttributes"
	case "s3":
		return bucketWrites.MatchString(r.Action)
	}
	return false
}

// bucketWrites matches the creation of a bucket, its tags, policy and rules, and the
// configuration of a pool.
var bucketWrites = regexp.MustCompile(`^PUT /[^/?]+(/?|/?\?(tagging|policy|lifecycle)=?|/machine-pool/[^/]+/[0-9a-f]{64}\?x-id=PutObject)$`)

// TagsGateway reports whether the request gives a NAT gateway the tags of a cluster. CAPA
// 2.13 sends it once for those of a VPC that somebody else owns, unless its feature
// TagUnmanagedNetworkResources is off (reconcileNatGateways in
// pkg/cloud/services/network/natgateways.go). The tags say that the cluster owns the
// gateway, and name it after the cluster; clusterawsadm does not do that.
func (r Request) TagsGateway() bool {
	return r.Service == "ec2" && r.Action == "CreateTags" && strings.Contains(r.Body, "&ResourceId.1=nat-") && !strings.Contains(r.Body, "ResourceId.2")
}

// Recorder is a proxy before AWS that records all requests.
type Recorder struct {
	mu   sync.Mutex
	all  []Request
	from int // index of the first request after the last Reset
}

// newRecorder serves a proxy for the account at an address of a namespace, until the
// context ends.
func newRecorder(ctx context.Context, a *account, at namespace, address string) (*Recorder, error) {
	proxy, err := a.proxy()
	if err != nil {
		return nil, err
	}
	l, err := at.listen(ctx, address)
	if err != nil {
		return nil, err
	}
	r := &Recorder{}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.serve(proxy, w, q) })}
	go func() { _ = server.Serve(l) }() // until it is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return r, nil
}

func (r *Recorder) serve(proxy http.Handler, w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	record := Request{Time: time.Now(), Service: service(q), Action: action(q, body), Body: strings.ReplaceAll(string(body), "\n", " ")}
	status := &statusWriter{ResponseWriter: w}
	proxy.ServeHTTP(status, q)
	record.Status = status.status
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, record)
}

// scope matches the credential scope of a signature.
var scope = regexp.MustCompile(`Credential=[^/]+/[0-9]+/[^/]+/([^/]+)/aws4_request`)

func service(q *http.Request) string {
	if found := scope.FindStringSubmatch(q.Header.Get("Authorization")); found != nil {
		return found[1]
	}
	return "unsigned"
}

// action returns the action of a request, by the protocol of its service: JSON, Query, or
// REST.
func action(q *http.Request, body []byte) string {
	if _, name, found := strings.Cut(q.Header.Get("X-Amz-Target"), "."); found {
		return name
	}
	if strings.HasPrefix(q.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		if form, err := url.ParseQuery(string(body)); err == nil && form.Has("Action") {
			return form.Get("Action")
		}
	}
	return q.Method + " " + q.URL.RequestURI()
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// count returns the number of requests of an action since the last Reset.
func (r *Recorder) count(action string) (n int) {
	for _, q := range r.All() {
		if q.Action == action {
			n++
		}
	}
	return n
}

// All returns all requests since the last Reset.
func (r *Recorder) All() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[r.from:])
}

// Writes returns the requests that may have changed the account.
func (r *Recorder) Writes() []Request {
	return slices.DeleteFunc(r.All(), func(q Request) bool { return !q.Write() })
}

// Quiet waits until there was no request for a time.
func (r *Recorder) Quiet(t *testing.T, quiet, patience time.Duration) {
	t.Helper()
	last := func() time.Time {
		if all := r.All(); len(all) > 0 {
			return all[len(all)-1].Time
		}
		return time.Time{}
	}
	for began := time.Now(); time.Since(began) < quiet || time.Since(last()) < quiet; time.Sleep(time.Second) {
		require.Less(t, time.Since(began), patience, "requests to AWS do not end")
	}
}

// Reset makes All and Writes begin with the next request.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from = len(r.all)
}

// write writes all requests since the start to a file.
func (r *Recorder) write(file string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines strings.Builder
	for i, q := range r.all {
		if i > 0 && i == r.from {
			fmt.Fprintln(&lines, "--- Reset")
		}
		fmt.Fprintln(&lines, q)
	}
	return os.WriteFile(file, []byte(lines.String()), 0o600)
}
