package kube

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"k8s.io/streaming/pkg/httpstream"
)

// plainConn is a connection without addresses and deadlines.
type plainConn struct{ io.ReadWriteCloser }

// LocalAddr implements net.Conn.
func (plainConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (plainConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (plainConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (plainConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (plainConn) SetWriteDeadline(time.Time) error { return nil }

// dataStream is the data of a forwarded port. Its errors are those of the server.
type dataStream struct {
	httpstream.Stream
	why atomic.Value // of string
}

// Read implements io.Reader.
func (s *dataStream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if why, ok := s.why.Load().(string); err != nil && ok {
		err = fmt.Errorf("the kubelet: %s", why)
	}
	return n, err
}

// forwarded is a connection to a port of a pod.
type forwarded struct {
	plainConn
	all   httpstream.Connection
	under io.Closer
	stop  func() bool
}

// Close implements net.Conn.
func (f *forwarded) Close() error {
	f.stop()
	return errors.Join(f.all.Close(), f.under.Close())
}
