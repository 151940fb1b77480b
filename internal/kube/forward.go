package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// The protocol of port forwarding (k8s.io/client-go/tools/portforward), and the protocol that
// the connection is upgraded to.
const (
	forwardProtocol = "portforward.k8s.io"
	upgradeTo       = "SPDY/3.1"
)

// upgrader returns an HTTP client for requests that upgrade their connection: HTTP/2 cannot do
// that, and there is no time limit for what follows.
func upgrader(cfg *rest.Config) (*http.Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 0
	if cfg.Transport == nil {
		cfg.NextProtos = []string{"http/1.1"}
	}
	return rest.HTTPClientFor(cfg)
}

// Forward connects to a port of a pod, by the API server and the kubelet, as "kubectl
// port-forward" does. The context ends the connection.
func (c *Client) Forward(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	conn, err := c.upgrade(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/portforward", namespace, pod))
	if err != nil {
		return nil, fmt.Errorf("port forwarding to pod %s: %w", pod, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	streams, err := spdy.NewClientConnection(conn)
	if err != nil {
		stop()
		return nil, err
	}
	data, err := openStreams(streams, port)
	if err != nil {
		stop()
		return nil, errors.Join(fmt.Errorf("port forwarding to pod %s: %w", pod, err), streams.Close())
	}
	return &forwarded{plainConn: plainConn{data}, all: streams, under: conn, stop: stop}, nil
}

// upgrade sends a request that upgrades its connection, with GET, because it changes nothing.
func (c *Client) upgrade(ctx context.Context, path string) (net.Conn, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.server, "/")+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	r.Header.Set(httpstream.HeaderUpgrade, upgradeTo)
	r.Header.Set(httpstream.HeaderProtocolVersion, forwardProtocol)
	answer, err := c.upgrades.Do(r)
	if err != nil {
		return nil, err
	}
	body, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer answer.Body.Close()                               //nolint:errcheck // it was only read
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300)) // for the message
		return nil, fmt.Errorf("%d %s: %s", answer.StatusCode, http.StatusText(answer.StatusCode), strings.TrimSpace(string(text)))
	}
	return plainConn{body}, nil
}

// openStreams opens the streams of one forwarded port, and returns that of the data. The server
// writes to the other one why it cannot connect, and closes that of the data.
func openStreams(all httpstream.Connection, port int) (io.ReadWriteCloser, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failure, err := all.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	if err := failure.Close(); err != nil { // nothing is written to it from this side
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := all.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	out := &dataStream{Stream: data}
	go func() {
		if text, err := io.ReadAll(io.LimitReader(failure, 500)); err == nil && len(text) > 0 {
			out.why.Store(string(text))
			_ = data.Reset()
		}
	}()
	return out, nil
}
