package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/cri/streaming/portforward"
)

// The timeouts of the real kubelet.
const (
	forwardingIdle  = 4 * time.Hour
	forwardingStart = 30 * time.Second
)

// forwardPorts serves the port forwarding of a pod. The kubeadm control plane controller
// connects to etcd by it.
func (p *pods) forwardPorts(w http.ResponseWriter, r *http.Request) {
	pod := p.find(r.PathValue("namespace"), r.PathValue("pod"))
	if pod == nil {
		http.Error(w, "no such pod here", http.StatusNotFound)
		return
	}
	if !pod.object.Spec.HostNetwork {
		http.Error(w, "pods without host network have no network in the lab", http.StatusNotImplemented)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, hostForwarder{}, pod.object.Name, pod.object.UID, options, forwardingIdle, forwardingStart, portforward.SupportedProtocols)
}

// hostForwarder forwards to ports of pods in the network of the instance.
type hostForwarder struct{}

// PortForward implements portforward.PortForwarder. It ends when one side closes its
// connection.
func (hostForwarder) PortForward(ctx context.Context, name string, _ types.UID, port int32, stream io.ReadWriteCloser) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("forward to port %d of %s: %w", port, name, err)
	}
	defer func() { _ = c.Close() }()
	done := make(chan error, 2)
	pipe := func(w io.Writer, r io.Reader) {
		_, err := io.Copy(w, r)
		done <- err
	}
	go pipe(c, stream)
	go pipe(stream, c)
	return <-done
}
