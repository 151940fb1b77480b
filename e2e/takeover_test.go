//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/test/moto"
)

// heartbeatHolder passes requests to moto, and holds back the first heartbeat after a NAT gateway
// was created. Until it comes, the run does not learn that the gateway exists, so that it cannot
// end on a fast machine.
type heartbeatHolder struct {
	*httptest.Server
	held    chan struct{} // closed when the heartbeat is held
	release chan struct{} // the heartbeat is passed on when it is closed

	mu   sync.Mutex
	once bool      // a heartbeat was held
	sent []string  // the operations of all requests
	last time.Time // of the last request
}

func newHeartbeatHolder(t *testing.T, server *moto.Server) *heartbeatHolder {
	t.Helper()
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	h := &heartbeatHolder{held: make(chan struct{}), release: make(chan struct{})}
	pass := httputil.NewSingleHostReverseProxy(target)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if h.holds(r, body) {
			close(h.held)
			<-h.release
			r = r.WithContext(t.Context()) // the process may have closed the connection
		} else if h.waits(r, body) {
			select {
			case <-h.held:
			case <-r.Context().Done():
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

// holds records a request, and reports whether it is the heartbeat to hold.
func (h *heartbeatHolder) holds(r *http.Request, body []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent, h.last = append(h.sent, operation(r, body)), time.Now()
	heartbeat := operation(r, body) == "PutParameter" && bytes.Contains(body, []byte("/lock/")) && bytes.Contains(body, []byte(`"Overwrite":true`))
	if h.once || !heartbeat || !slices.Contains(h.sent, "CreateNatGateway") {
		return false
	}
	h.once = true
	return true
}

// waits reports whether a request asks for a NAT gateway that the run has created.
func (h *heartbeatHolder) waits(r *http.Request, body []byte) bool {
	return operation(r, body) == "DescribeNatGateways" && slices.Contains(h.requests(), "CreateNatGateway")
}

// requests returns the operations so far.
func (h *heartbeatHolder) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sent)
}

// untilQuiet waits until the process sends no request for a minute of its time, which is longer
// than it waits between two looks at a resource: all that it still has to do waits for the
// heartbeat.
func (h *heartbeatHolder) untilQuiet(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return time.Since(h.last) > quiet
	}, time.Minute, quiet/10)
}

// quiet is a minute for a process at the usual speed.
const quiet = 2 * time.Second

// operation returns the name of the operation of a request: from the header of a JSON
// protocol, from the form of a query protocol, or from the method of a REST protocol.
func operation(r *http.Request, body []byte) string {
	if _, name, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		return name
	}
	if form, err := url.ParseQuery(string(body)); err == nil && form.Get("Action") != "" {
		return form.Get("Action")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return "Get " + r.URL.Path
	}
	return r.Method + " " + r.URL.Path
}

// A process is stopped while its heartbeat is on the way and its writes wait for it, another one
// takes over its lock and runs to its end, the heartbeat arrives, and the process is continued: it
// writes nothing more, and fails. After a deletion, the heartbeat creates the record of the lock
// again.
func TestHeartbeatArrivesAfterTakeover(t *testing.T) {
	server := moto.Start(t)
	for _, command := range []string{"create", "delete"} {
		t.Run(command, func(t *testing.T) {
			server.Reset(t)
			server.Bootstrap(t)
			before := inventory(t, server)
			h := newHeartbeatHolder(t, server)
			manifest := example("quickstart")
			cmd, _, story := newShell(t, &moto.Server{URL: h.URL, Config: server.Config}).command(t.Context(), "create", "-f", manifest, "--yes")
			require.NoError(t, cmd.Start())
			select {
			case <-h.held:
			case <-time.After(time.Minute):
				require.Fail(t, "no heartbeat within a minute", story)
			}
			h.untilQuiet(t)
			require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))

			newShell(t, server).run(t, 0, command, "-f", manifest, "--yes")
			after, sent := inventory(t, server), len(h.requests())
			close(h.release)
			time.Sleep(2 * time.Second) // the heartbeat arrives
			require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
			_ = cmd.Wait() // only the exit code matters
			assert.NotZero(t, cmd.ProcessState.ExitCode(), story)
			assert.Contains(t, story.String(), cloud.ErrLockLost.Error())

			for _, op := range h.requests()[sent:] {
				assert.True(t, cloud.Reads(strings.TrimPrefix(op, "Get ")) || strings.HasPrefix(op, "Get "), "%s after the lock was lost", op)
			}
			if command == "delete" {
				assert.Equal(t, before, after, "the second process has deleted the cluster")
				after = append(after, "parameter /clusterawsadm/quickstart/lock/1")
				slices.Sort(after)
			}
			assert.Equal(t, after, inventory(t, server), "the first process has changed nothing")
		})
	}
}
