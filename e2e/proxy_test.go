//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// proxy passes requests to moto, and some of them fail on the way. It treats client tokens
// as AWS does, which moto ignores.
type proxy struct {
	*httptest.Server
	t      *testing.T
	moto   *moto.Server
	tokens *tokens

	mu    sync.Mutex
	seed  uint64
	rate  float64        // the part of requests that fail
	nth   map[string]int // requests so far, by operation
	sent  int            // requests of the current process
	death int            // the request at which it is killed; 0: it is not
	after bool           // killed when the request has had its effect
	kill  func()
	count map[fault]int
}

// fault is a failure of one request.
type fault string

const (
	none        fault = ""
	lostBefore  fault = "connection closed before the request arrives"
	lostAfter   fault = "answer lost"
	cut         fault = "answer cut off"
	broken      fault = "500"
	brokenAfter fault = "500 although it has had its effect"
	unavailable fault = "503"
	throttled   fault = "throttled"
)

func newProxy(t *testing.T, server *moto.Server) *proxy {
	t.Helper()
	p := &proxy{t: t, moto: server, tokens: newTokens(), nth: map[string]int{}, count: map[fault]int{}, kill: func() {}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// begin begins a life: its faults follow from the seed.
func (p *proxy) begin(seed uint64, rate float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seed, p.rate, p.nth, p.tokens = seed, rate, map[string]int{}, newTokens()
}

// watch begins a process, which is killed at that request; 0 lets it live.
func (p *proxy) watch(death int, after bool, kill func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent, p.death, p.after, p.kill = 0, death, after, kill
}

// requests returns the number of requests of the current process.
func (p *proxy) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process was killed while it sent the request
	}
	c := callOf(r, body)
	dies, f := p.fate(c)
	switch {
	case dies && !p.after:
		p.die(w)
		return
	case f == lostBefore:
		hangUp(w)
		return
	case f == broken || f == unavailable || f == throttled:
		c.refuse(w, f)
		return
	}
	a, err := p.tokens.once(c, func() (answer, error) { return p.forward(r, body) })
	if !assert.NoError(p.t, err, c.operation) {
		return
	}
	switch {
	case dies:
		p.die(w)
	case f == lostAfter:
		hangUp(w)
	case f == brokenAfter:
		c.refuse(w, broken)
	case f == cut && len(a.body) > 1:
		a.write(w, len(a.body)/2)
	default:
		a.write(w, len(a.body))
	}
}

// fate returns whether the process dies at a request, and the fault of the request. The
// fault depends on the seed, the operation, and how often it was called, so that the order
// of concurrent requests does not matter.
func (p *proxy) fate(c call) (dies bool, f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	p.nth[c.operation]++
	if p.sent == p.death {
		return true, none
	}
	h := fnv.New64()
	_, _ = fmt.Fprint(h, c.operation, " ", p.nth[c.operation])
	random := rand.New(rand.NewPCG(p.seed, h.Sum64()))
	if random.Float64() >= p.rate {
		return false, none
	}
	f = []fault{lostBefore, lostAfter, cut, broken, brokenAfter, unavailable, throttled}[random.IntN(7)]
	p.count[f]++
	return false, f
}

func (p *proxy) die(w http.ResponseWriter) {
	p.mu.Lock()
	kill := p.kill
	p.mu.Unlock()
	kill()
	hangUp(w)
}

// forward sends a request to moto and returns its answer.
func (p *proxy) forward(r *http.Request, body []byte) (answer, error) {
	out, err := http.NewRequestWithContext(p.t.Context(), r.Method, p.moto.URL+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	out.Header, out.Host = r.Header.Clone(), r.Host
	out.Header.Del("Accept-Encoding")
	in, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(out)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = in.Body.Close() }()
	content, err := io.ReadAll(in.Body)
	return answer{in.StatusCode, in.Header, content}, err
}

// answer is an answer of moto.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// write sends the first n bytes of the answer, and closes the connection if there are more.
func (a answer) write(w http.ResponseWriter, n int) {
	for name, values := range a.header {
		if !strings.EqualFold(name, "Connection") && !strings.EqualFold(name, "Transfer-Encoding") {
			w.Header()[name] = values
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body[:n])
	if n < len(a.body) {
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
}

// hangUp closes the connection without an answer.
func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// TestProxy checks that a client token is replayed as AWS does, and that calls fail in
// every way.
func TestProxy(t *testing.T) {
	server := moto.Start(t)
	p := newProxy(t, server)
	cfg := server.Config.Copy()
	cfg.BaseEndpoint = &p.URL
	c := ec2.NewFromConfig(cfg)
	vpc, err := c.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
	require.NoError(t, err)
	in := &ec2.CreateRouteTableInput{VpcId: vpc.Vpc.VpcId, ClientToken: aws.String("a")}
	first, err := c.CreateRouteTable(t.Context(), in)
	require.NoError(t, err)
	second, err := c.CreateRouteTable(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, first.RouteTable.RouteTableId, second.RouteTable.RouteTableId)
	in.TagSpecifications = []types.TagSpecification{
		{ResourceType: types.ResourceTypeRouteTable, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}},
	}
	_, err = c.CreateRouteTable(t.Context(), in)
	require.ErrorContains(t, err, "IdempotentParameterMismatch")
	in.ClientToken = aws.String("b")
	third, err := c.CreateRouteTable(t.Context(), in)
	require.NoError(t, err)
	assert.NotEqual(t, first.RouteTable.RouteTableId, third.RouteTable.RouteTableId)

	seen := map[fault]bool{}
	p.begin(1, 1)
	for len(seen) < 7 {
		_, err := c.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
		require.Error(t, err)
		p.mu.Lock()
		for f := range p.count {
			seen[f] = true
		}
		p.mu.Unlock()
	}
}
