package simulated

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// onlyFor passes on requests to a server on this machine that are addressed to it: to an IP
// address, to localhost, or to the host of --listen. A page of a browser that is open on this
// machine could otherwise use the account under a name of its own that leads to the loopback
// address (DNS rebinding). A server that others can reach has no such limit: the command warns
// of it.
func onlyFor(listen string, l net.Listener, next http.Handler) http.Handler {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		return next
	}
	hosts := []string{"localhost"}
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" {
		hosts = append(hosts, strings.ToLower(host))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !addressed(r.Host, hosts) {
			http.Error(w, "the simulated account is http://"+l.Addr().String()+": it has no other host name", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// addressed reports whether the header Host of a request is an IP address, one of the hosts, or
// a name below one: clients of S3 put the name of the bucket first.
func addressed(host string, hosts []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	for _, h := range hosts {
		if host == h || strings.HasSuffix(host, "."+h) {
			return true
		}
	}
	return false
}
