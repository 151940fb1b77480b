package simulated

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

type listener struct {
	net.Listener

	ip net.IP
}

func (l listener) Addr() net.Addr { return &net.TCPAddr{IP: l.ip, Port: 4600} }

// A name that leads to this machine (DNS rebinding) is refused, with the names that look like
// an address or like a name of the server, too.
func TestOnlyFor(t *testing.T) {
	for _, c := range []struct {
		listen, ip, host string
		want             int
	}{
		{"127.0.0.1:0", "127.0.0.1", "127.0.0.1:4600", http.StatusOK},
		{"127.0.0.1:0", "127.0.0.1", "[::1]:4600", http.StatusOK},
		{"127.0.0.1:0", "127.0.0.1", "LOCALHOST.:4600", http.StatusOK},
		{"localhost:0", "127.0.0.1", "bucket.localhost:4600", http.StatusOK},
		{"aws.test:0", "127.0.0.1", "bucket.aws.test:4600", http.StatusOK},
		{"0.0.0.0:4600", "0.0.0.0", "simulator:4600", http.StatusOK},
		{"127.0.0.1:0", "127.0.0.1", "evil.example:4600", http.StatusMisdirectedRequest},
		{"127.0.0.1:0", "127.0.0.1", "127.0.0.1.evil.example:4600", http.StatusMisdirectedRequest},
		{"127.0.0.1:0", "127.0.0.1", "localhost.evil.example", http.StatusMisdirectedRequest},
		{"127.0.0.1:0", "127.0.0.1", "notlocalhost:4600", http.StatusMisdirectedRequest},
		{"127.0.0.1:0", "127.0.0.1", "aws.test", http.StatusMisdirectedRequest},
		{":0", "::1", "evil.example", http.StatusMisdirectedRequest},
		{"127.0.0.1:0", "127.0.0.1", "", http.StatusMisdirectedRequest},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		onlyFor(c.listen, listener{ip: net.ParseIP(c.ip)}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		assert.Equal(t, c.want, w.Code, "%+v", c)
	}
}
