package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// kubeletPort is the port on which API servers connect to a kubelet.
const kubeletPort = 10250

// serve serves "kubectl logs" and port forwarding, for clients with a certificate of the
// cluster's CA.
func (k *kubelet) serve(ctx context.Context) {
	if !await(ctx, func() bool { return exists(authority) }) {
		return
	}
	config, err := servingConfig(k.self)
	if err != nil {
		log.Printf("kubelet: server: %v", err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		text, err := k.pods.readLog(r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(text) // the client may have disconnected
	})
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.pods.forwardPorts)
	server := &http.Server{
		Addr: net.JoinHostPort(k.self.nodeIP(), strconv.Itoa(kubeletPort)), Handler: mux, TLSConfig: config, ReadHeaderTimeout: time.Second,
	}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		log.Printf("kubelet: server: %v", err)
	}
}

// authority is the CA of the cluster.
const authority = "/etc/kubernetes/pki/ca.crt"

// servingConfig returns a self-signed serving certificate, as the real kubelet has by
// default.
func servingConfig(self *Instance) (*tls.Config, error) {
	ca, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(
			1,
		),
		Subject:     pkix.Name{CommonName: self.Name},
		DNSNames:    []string{self.Name},
		IPAddresses: []net.IP{net.ParseIP(self.Address), net.ParseIP(self.IPv6)},
		NotBefore:   time.Now().Add(-time.Minute),
		NotAfter:    time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// readLog returns the output of the last process of a container.
func (p *pods) readLog(namespace, name, of string) ([]byte, error) {
	pod := p.find(namespace, name)
	if pod == nil {
		return nil, errors.New("no such pod here: " + namespace + "/" + name)
	}
	for _, c := range append(append([]*container{}, pod.init...), pod.containers...) {
		if c.spec.Name == of {
			text, err := os.ReadFile(c.log)
			if os.IsNotExist(err) {
				return nil, nil // it was not started, or has no process
			}
			return text, err
		}
	}
	return nil, errors.New("no such container here: " + namespace + "/" + name + "/" + of)
}

// find returns a pod by its name in the API server; nil if it is not here.
func (p *pods) find(namespace, name string) *pod {
	for _, pod := range p.all() {
		object := pod.object
		if object.Namespace == namespace && (object.Name == name || object.Name+"-"+p.self.Name == name) {
			return pod
		}
	}
	return nil
}

func (p *pods) all() (all []*pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range p.static {
		all = append(all, pod)
	}
	for _, pod := range p.bound {
		all = append(all, pod)
	}
	return all
}

// endpoints are the addresses of the kubelet.
func endpoints() corev1.NodeDaemonEndpoints {
	return corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}}
}
