package awssim

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"clusterawsadm/internal/kube"
	"clusterawsadm/internal/kubesim"
	"clusterawsadm/internal/ordered"
)

// How long the machines of a cluster take, from when they run. Nobody names
// figures; these are what people measure with Cluster API's images.
const (
	// BootTakes is how long a machine takes until cloud-init hands over.
	BootTakes = 40 * time.Second
	// InitTakes is how long kubeadm init takes until the API server answers.
	InitTakes = 60 * time.Second
	// JoinTakes is how long kubeadm join takes once the API server answers.
	JoinTakes = 20 * time.Second
	// EtcdTakes is how long a new member of etcd keeps the next one waiting.
	EtcdTakes = 15 * time.Second
	// JoinGivesUp is how long kubeadm join tries; our patience, not kubeadm's.
	JoinGivesUp = 20 * time.Minute
)

// Boot is what becomes of a machine that has booted.
type Boot struct {
	At           time.Time // when kubeadm began
	Failed       string    // why it did not come to anything; "" while it may
	Joined       time.Time // zero: not yet
	Node         string    // its name
	Host         string    // of the API server it joins, or begins
	Token        string
	Hashes       []string
	ControlPlane bool
	Version      string
	External     bool // a cloud controller manager tells the kubelet who it is
	Labels       map[string]string
}

// settleKubernetes boots machines, and has them join their clusters.
func (a *AWS) settleKubernetes() {
	now := a.now()
	var all []*Instance
	due := false
	for _, i := range a.state.EC2.Instances {
		all = append(all, i)
		due = due || i.Boot == nil || i.Boot.Failed == "" && (i.Boot.Joined.IsZero() || !i.Terminating.IsZero())
	}
	if !due {
		return
	}
	ordered.By(all, func(x, y *Instance) int {
		return cmp.Or(x.Running.Compare(y.Running), cmp.Compare(x.Index, y.Index), strings.Compare(x.ID, y.ID))
	})
	for _, i := range all {
		switch {
		case !i.Terminating.IsZero():
			a.unjoin(i)
		case i.Boot == nil && !i.Running.IsZero() && now.Sub(i.Running) >= BootTakes:
			i.Boot = a.boot(i)
		}
	}
	for again := true; again; { // a control plane that is up lets others join
		again = false
		for _, i := range all {
			if b := i.Boot; b != nil && b.Failed == "" && b.Joined.IsZero() && i.Terminating.IsZero() {
				a.join(i, b)
				again = again || !b.Joined.IsZero()
			}
		}
	}
}

// nodeName is the name of an instance's node: its private DNS name.
func (a *AWS) nodeName(i *Instance) string {
	return "ip-" + strings.ReplaceAll(a.privateIP(i), ".", "-") + "." + a.domain()
}

func (a *AWS) privateIP(i *Instance) string {
	for _, id := range i.Interfaces {
		if n := a.state.EC2.Interfaces[id]; n != nil {
			return n.PrivateIP
		}
	}
	return ""
}

// join has a machine join, if the time for it has come.
func (a *AWS) join(i *Instance, b *Boot) {
	c, why, at := a.state.Kubernetes[b.Host], "", b.At
	switch {
	case c == nil:
		why = "no API server answers at " + b.Host
	case c.EKS != "":
		at = later(at, c.Up)
	default:
		at, why = a.joinable(c, b)
	}
	at = at.Add(JoinTakes)
	if c != nil && b.ControlPlane && c.EKS == "" {
		for _, other := range a.state.EC2.Instances { // etcd takes one new member at a time
			if o := other.Boot; o != nil && o.ControlPlane && o.Host == b.Host && !o.Joined.IsZero() {
				at = later(at, o.Joined.Add(EtcdTakes))
			}
		}
	}
	switch now := a.now(); {
	case why != "" && now.Sub(b.At) > JoinGivesUp:
		b.Failed = why
	case why == "" && at.Sub(b.At) > JoinGivesUp+JoinTakes:
		b.Failed = "no API server answered in time"
	case why == "" && !at.After(now):
		b.Joined, b.Node = at, a.nodeName(i)
		c.Join(at, a.machineOf(i, b))
	}
}

// joinable says from when on a machine can join with what it was given, or why
// it cannot.
func (a *AWS) joinable(c *kubesim.Cluster, b *Boot) (from time.Time, why string) {
	from = later(b.At, c.Up)
	ready, ok := a.reaches(b.Host, c)
	if from = later(from, ready); !ok {
		return from, "nothing behind the load balancer answers"
	}
	if !c.Quorate() {
		return from, "etcd has lost its quorum"
	}
	if !slices.Contains(b.Hashes, authorityHash(c.CA)) {
		return from, "the cluster CA is another one than the hash says"
	}
	if !c.TokenValid(b.Token, later(from, a.now())) {
		return from, "the bootstrap token is not valid"
	}
	return from, ""
}

func (a *AWS) machineOf(i *Instance, b *Boot) kubesim.Machine {
	return kubesim.Machine{
		Name: a.nodeName(i), IP: a.privateIP(i), ProviderID: "aws:///" + i.Zone + "/" + i.ID, Version: b.Version,
		ControlPlane: b.ControlPlane, Local: !b.External, Labels: b.Labels,
	}
}

// unjoin is what a cluster notices of a machine that is gone.
func (a *AWS) unjoin(i *Instance) {
	if i.Boot == nil || i.Boot.Joined.IsZero() {
		return
	}
	c := a.state.Kubernetes[i.Boot.Host]
	if c == nil {
		return
	}
	c.Lose(a.now(), i.Boot.Node)
	i.Boot.Failed = "terminated"
	for _, other := range a.state.EC2.Instances {
		if o := other.Boot; c.EKS != "" || o != nil && o.ControlPlane && o.Host == i.Boot.Host && o.Failed == "" {
			return
		}
	}
	delete(a.state.Kubernetes, i.Boot.Host) // and with its last machine the cluster
}

// reaches says from when on a load balancer of that name, or a name of the
// user's own, leads to an API server of the cluster.
func (a *AWS) reaches(host string, c *kubesim.Cluster) (from time.Time, ok bool) {
	serves := func(id string) bool {
		i := a.state.EC2.Instances[id]
		return i != nil && i.Terminating.IsZero() && i.Boot != nil && i.Boot.ControlPlane && a.state.Kubernetes[i.Boot.Host] == c && !i.Boot.Joined.IsZero() &&
			!slices.Contains(c.Left, i.Boot.Node)
	}
	for _, b := range a.state.ELB.LoadBalancers {
		if b.DNSName != host {
			continue
		}
		for _, l := range a.state.ELB.Listeners {
			g := a.state.ELB.TargetGroups[l.TargetGroup]
			if l.LoadBalancer == b.ARN && g != nil && slices.ContainsFunc(g.Targets, func(t *Target) bool { return t.Drained.IsZero() && serves(t.ID) }) {
				return b.Ready, true
			}
		}
		return b.Ready, false
	}
	for _, b := range a.state.ELB.Classic {
		if b.DNSName != host {
			continue
		}
		for id := range b.Instances {
			if serves(id) {
				return b.Born, true
			}
		}
		return b.Born, false
	}
	return c.Up, true
}

func later(x, y time.Time) time.Time {
	if y.After(x) {
		return y
	}
	return x
}

// authorityHash is the hash of a CA's key that kubeadm discovery goes by.
func authorityHash(ca []byte) string {
	block, _ := pem.Decode(ca)
	if block == nil {
		return ""
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Kubernetes carries requests to the API servers of the account's clusters, as
// seen from outside of their VPCs.
func (p *Process) Kubernetes(access kube.Access) http.RoundTripper { return &road{p, access} }

// road leads from a process to an API server.
type road struct {
	p      *Process
	access kube.Access
}

// RoundTrip implements http.RoundTripper.
func (r *road) RoundTrip(req *http.Request) (*http.Response, error) {
	a := r.p.aws
	if err := a.o.Clock.Sleep(req.Context(), a.o.Latency); err != nil {
		return nil, err
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	op := req.Method
	fault, err := r.p.admit("Kubernetes", op)
	if err != nil {
		return nil, err
	}
	switch fault {
	case Throttled:
		return answered(req, http.StatusTooManyRequests, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`)), nil
	case Denied:
		return answered(req, http.StatusForbidden, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not allowed"}`)), nil
	case Broken:
		return answered(req, http.StatusInternalServerError, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcdserver: leader changed"}`)), nil
	case LostBefore:
		return nil, errReset()
	case KillBefore:
		r.p.die()
		return nil, fmt.Errorf("awssim: %s: %w", op, req.Context().Err())
	case None, LostAfter, KillAfter:
	}
	code, answer, err := a.kubernetes(req, r.access, body)
	switch fault {
	case LostAfter:
		return nil, errReset()
	case KillAfter:
		r.p.die()
		return nil, fmt.Errorf("awssim: %s: %w", op, req.Context().Err())
	case None, Throttled, Denied, Broken, LostBefore, KillBefore: // they came before
	}
	if err != nil {
		return nil, err
	}
	return answered(req, code, answer), nil
}

func errReset() error { return &net.OpError{Op: "read", Net: "tcp", Err: errLost} }

func answered(req *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// kubernetes answers one request to an API server, with the lock held.
func (a *AWS) kubernetes(req *http.Request, access kube.Access, body []byte) (int, []byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle()
	a.calls = append(a.calls, Call{Service: "Kubernetes", Operation: req.Method + " " + req.URL.Path, At: a.now()})
	c, err := a.connected(req.URL, access)
	if err != nil {
		return 0, nil, err
	}
	if !a.mayEnter(c, access, req) {
		return http.StatusUnauthorized, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}`), nil
	}
	if node := a.dangling(c); node != "" { // one connection in so many would be bad; that is one too many
		return http.StatusInternalServerError, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcd on ` + node + ` is gone"}`), nil
	}
	code, answer := c.Serve(a.now(), req, body)
	if text, ok := answer.(kubesim.Text); ok {
		return code, []byte(text), nil
	}
	data, err := json.Marshal(answer)
	return code, data, err
}

// dangling names a node that a load balancer still sends to, and whose API
// server has no etcd any more.
func (a *AWS) dangling(c *kubesim.Cluster) string {
	node := func(id string) string {
		i := a.state.EC2.Instances[id]
		if i == nil || i.Boot == nil || !slices.Contains(c.Left, i.Boot.Node) || a.state.Kubernetes[i.Boot.Host] != c {
			return ""
		}
		return i.Boot.Node
	}
	for _, g := range a.state.ELB.TargetGroups {
		for _, t := range g.Targets {
			if t.Drained.IsZero() && node(t.ID) != "" {
				return node(t.ID)
			}
		}
	}
	for _, b := range a.state.ELB.Classic {
		for id := range b.Instances {
			if node(id) != "" {
				return node(id)
			}
		}
	}
	return ""
}

// connected returns the cluster whose API server answers at a URL.
func (a *AWS) connected(u *url.URL, access kube.Access) (*kubesim.Cluster, error) {
	host := u.Hostname()
	c := a.state.Kubernetes[host]
	if c == nil && !a.resolves(host) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
	if c == nil || c.Up.After(a.now()) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: connection refused")}
	}
	if c.EKS == "" {
		if from, ok := a.reaches(host, c); !ok || from.After(a.now()) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: connection refused")}
		}
	}
	if a.private(host) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("i/o timeout")}
	}
	if len(c.CA) > 0 && !bytes.Equal(bytes.TrimSpace(c.CA), bytes.TrimSpace(access.CA)) {
		return nil, x509.UnknownAuthorityError{}
	}
	return c, nil
}

// resolves reports whether a name is in the DNS.
func (a *AWS) resolves(host string) bool {
	for _, b := range a.state.ELB.LoadBalancers {
		if b.DNSName == host {
			return true
		}
	}
	for _, b := range a.state.ELB.Classic {
		if b.DNSName == host {
			return true
		}
	}
	return false
}

// private reports whether a name leads to addresses that only the VPC reaches.
func (a *AWS) private(host string) bool {
	if a.o.Inside {
		return false
	}
	for _, b := range a.state.ELB.LoadBalancers {
		if b.DNSName == host {
			return b.Scheme == "internal"
		}
	}
	for _, b := range a.state.ELB.Classic {
		if b.DNSName == host {
			return b.Scheme == "internal"
		}
	}
	return false
}

// mayEnter reports whether a cluster accepts the credentials of a request. The
// certificate of a client has to be signed by the cluster's CA, and make an
// administrator.
func (a *AWS) mayEnter(c *kubesim.Cluster, access kube.Access, req *http.Request) bool {
	if c.EKS != "" {
		return strings.HasPrefix(req.Header.Get("Authorization"), "Bearer k8s-aws-v1.")
	}
	block, _ := pem.Decode(access.Certificate)
	roots := x509.NewCertPool()
	if block == nil || !roots.AppendCertsFromPEM(c.CA) {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: a.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil && slices.Contains(cert.Subject.Organization, "system:masters")
}
