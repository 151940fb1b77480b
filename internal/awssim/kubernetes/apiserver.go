package kubernetes

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
	"github.com/clusterawsadm/clusterawsadm/internal/kubesim"
)

// Transport returns the transport for a program's requests to the API servers of the
// account's clusters, as seen from outside of the VPCs.
func (svc *Service) Transport(p *core.Process, access kube.Access) http.RoundTripper {
	return &transport{svc, p, access}
}

// transport passes requests of a process to an API server.
type transport struct {
	svc    *Service
	p      *core.Process
	access kube.Access
}

// RoundTrip implements http.RoundTripper.
func (r *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	svc := r.svc
	if err := svc.Clock.Sleep(req.Context(), svc.Latency); err != nil {
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
	fault, err := r.p.Admit("Kubernetes", op)
	if err != nil {
		return nil, err
	}
	switch fault {
	case core.Throttled:
		return answered(req, http.StatusTooManyRequests, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`)), nil
	case core.Denied:
		return answered(
			req,
			http.StatusForbidden,
			[]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not allowed"}`),
		), nil
	case core.Broken:
		return answered(
			req,
			http.StatusInternalServerError,
			[]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcdserver: leader changed"}`),
		), nil
	case core.Unsent:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: req.URL.Hostname(), IsNotFound: true}}
	case core.LostBefore, core.Held: // requests to an API server are not held
		return nil, errReset()
	case core.KillBefore, core.KillHeld:
		r.p.Die()
		return nil, fmt.Errorf("awssim: %s: %w", op, req.Context().Err())
	case core.None,
		core.Cut,
		core.Silent,
		core.Stale,
		core.Old,
		core.Used,
		core.Endless,
		core.Circle,
		core.LostAfter,
		core.KillAfter: // an API server answers from a quorum
	}
	if strings.HasSuffix(req.URL.Path, "/portforward") && fault != core.LostAfter && fault != core.KillAfter && fault != core.Silent {
		return svc.connectedForward(req, r.access, fault == core.Cut)
	}
	code, answer, err := svc.answer(req, r.access, body)
	switch fault {
	case core.LostAfter, core.Cut:
		return nil, errReset()
	case core.KillAfter:
		r.p.Die()
		return nil, fmt.Errorf("awssim: %s: %w", op, req.Context().Err())
	case core.Silent:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case core.None, core.Stale, core.Old, core.Used, core.Endless, core.Circle: // of AWS only
	case core.Throttled, core.Denied, core.Broken, core.Unsent, core.LostBefore, core.KillBefore, core.Held, core.KillHeld: // handled above
	}
	if err != nil {
		return nil, err
	}
	return answered(req, code, answer), nil
}

func errReset() error { return &net.OpError{Op: "read", Net: "tcp", Err: core.ErrLost} }

func answered(req *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// answer handles one request to an API server.
func (svc *Service) answer(req *http.Request, access kube.Access, body []byte) (code int, data []byte, err error) {
	svc.Do(func() {
		svc.Record(core.Call{Service: "Kubernetes", Operation: req.Method + " " + req.URL.Path})
		code, data, err = svc.serve(req, access, body)
	})
	return code, data, err
}

// connectedForward answers a request for port forwarding of those who may use the API server.
func (svc *Service) connectedForward(req *http.Request, access kube.Access, cut bool) (answer *http.Response, err error) {
	svc.Do(func() {
		svc.Record(core.Call{Service: "Kubernetes", Operation: req.Method + " " + req.URL.Path})
		c, refused := svc.connected(req.URL, access)
		switch {
		case refused != nil:
			err = refused
		case svc.refusal(c, access, req) != 0:
			code := svc.refusal(c, access, req)
			answer = answered(req, code, []byte(http.StatusText(code))) //nolint:bodyclose // the caller closes it
		case !c.Quorate():
			answer = answered(req, http.StatusInternalServerError, []byte("etcdserver: request timed out")) //nolint:bodyclose // as above
		}
	})
	if answer != nil || err != nil {
		return answer, err
	}
	return svc.forward(req, cut)
}

// serve is answer with the account locked.
func (svc *Service) serve(req *http.Request, access kube.Access, body []byte) (int, []byte, error) {
	c, err := svc.connected(req.URL, access)
	if err != nil {
		return 0, nil, err
	}
	switch svc.refusal(c, access, req) {
	case http.StatusUnauthorized:
		return http.StatusUnauthorized, []byte(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}`,
		), nil
	case http.StatusForbidden:
		return http.StatusForbidden, []byte(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"User \"simulated\" cannot ` +
				strings.ToLower(req.Method) + ` ` + req.URL.Path + `"}`,
		), nil
	}
	if node := svc.dangling(c); node != "" { // a real load balancer would fail only for some connections
		return http.StatusInternalServerError, []byte(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcd on ` + node + ` is gone"}`,
		), nil
	}
	code, answer := c.Serve(svc.Now(), req, body)
	if text, ok := answer.(kubesim.Text); ok {
		return code, []byte(text), nil
	}
	data, err := json.Marshal(answer)
	return code, data, err
}

// dangling returns a Node that a load balancer still sends to, although its etcd member
// was removed; "" for none.
func (svc *Service) dangling(c *kubesim.Cluster) string {
	node := func(id string) string {
		i := svc.EC2.Instance(id)
		if i == nil || !svc.EC2.InstanceRuns(i) || i.Boot == nil || !slices.Contains(c.Left, i.Boot.Node) || svc.clusters[i.Boot.Host] != c {
			return ""
		}
		return i.Boot.Node
	}
	for id := range svc.ELB.TargetIDs() {
		if name := node(id); name != "" {
			return name
		}
	}
	return ""
}

// connected returns the cluster of the API server with a URL.
func (svc *Service) connected(u *url.URL, access kube.Access) (*kubesim.Cluster, error) {
	host := u.Hostname()
	c := svc.clusters[host]
	if _, resolves := svc.ELB.SchemeOf(host); c == nil && !resolves {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
	if c == nil || c.Up.After(svc.Now()) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: connection refused")}
	}
	if c.EKS == "" {
		if from, ok := svc.reaches(host, c); !ok || from.After(svc.Now()) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: connection refused")}
		}
	}
	if plane := svc.EKS.ClusterNamed(c.EKS); svc.private(host) || plane != nil && !plane.Public && !svc.Inside {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("i/o timeout")}
	}
	if len(c.CA) > 0 && !bytes.Equal(bytes.TrimSpace(c.CA), bytes.TrimSpace(access.CA)) {
		return nil, x509.UnknownAuthorityError{}
	}
	return c, nil
}

// private reports whether a name resolves to addresses that are reachable only in the
// VPC.
func (svc *Service) private(host string) bool {
	if svc.Inside {
		return false
	}
	scheme, _ := svc.ELB.SchemeOf(host)
	return scheme == "internal"
}

// refusal returns the status with which an API server refuses a caller; 0 if it does not. A client
// certificate has to be signed by the cluster's CA, and be that of an administrator.
func (svc *Service) refusal(c *kubesim.Cluster, access kube.Access, req *http.Request) int {
	if c.EKS != "" {
		return svc.refusalOfEKS(c, req)
	}
	block, _ := pem.Decode(access.Certificate)
	roots := x509.NewCertPool()
	if block == nil || !roots.AppendCertsFromPEM(c.CA) {
		return http.StatusUnauthorized
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return http.StatusUnauthorized
	}
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: svc.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil || !slices.Contains(cert.Subject.Organization, "system:masters") {
		return http.StatusUnauthorized
	}
	return 0
}
