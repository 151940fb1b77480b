package node

import (
	"context"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Paths of the kubelet, which kubeadm expects.
const (
	kubeletConfig       = "/var/lib/kubelet/config.yaml"
	kubeletFlags        = "/var/lib/kubelet/kubeadm-flags.env"
	kubeletKeys         = "/var/lib/kubelet/pki"
	kubeletKubeconfig   = "/etc/kubernetes/kubelet.conf"
	bootstrapKubeconfig = "/etc/kubernetes/bootstrap-kubelet.conf"
	healthAddress       = "127.0.0.1:10248"
)

// kubelet replaces the real kubelet, which needs cgroups and a container runtime. It
// sends the same requests to the API server, at the same times.
type kubelet struct {
	self *Instance
	pods *pods
}

// newKubelet returns the service. Like a systemd service, it restarts until it has a
// configuration. When it is stopped, containers continue to run, as with the real kubelet.
func newKubelet(self *Instance) *unit {
	k := &kubelet{self: self, pods: newPods(self)}
	return &unit{run: func(ctx context.Context) {
		if await(ctx, func() bool { return exists(kubeletConfig) }) {
			k.run(ctx)
		}
	}}
}

// run runs the kubelet until the context ends.
func (k *kubelet) run(ctx context.Context) {
	log.Print("kubelet starts")
	health := &http.Server{Addr: healthAddress, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	})}
	go func() { _ = health.ListenAndServe() }() // until it is closed
	defer func() { _ = health.Close() }()

	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { k.pods.watchManifests(ctx) })
	client := k.connect(ctx)
	if client == nil {
		return
	}
	n := &registration{kubelet: k, client: client, flags: readFlags()}
	all.Go(func() { n.keep(ctx) })
	all.Go(func() { k.serve(ctx) })
	all.Go(func() { k.pods.serve(ctx, client, n) })
}

// connect returns a client with the node's certificate, which it requests if necessary.
func (k *kubelet) connect(ctx context.Context) (client kubernetes.Interface) {
	last := ""
	await(ctx, func() bool {
		var err error
		if !exists(kubeletKubeconfig) {
			err = k.bootstrap(ctx)
		}
		if err == nil {
			client, err = clientFrom(kubeletKubeconfig)
		}
		if err != nil && err.Error() != last {
			last = err.Error()
			log.Printf("kubelet: %v", err)
		}
		return err == nil
	})
	return client
}

func clientFrom(file string) (kubernetes.Interface, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	cfg.Timeout, cfg.QPS = 10*time.Second, -1
	return kubernetes.NewForConfig(cfg)
}

// readFlags returns the flags from kubeadm, without dashes.
func readFlags() map[string]string {
	text, err := os.ReadFile(kubeletFlags)
	if err != nil {
		return nil
	}
	flags := map[string]string{}
	_, args, _ := strings.Cut(strings.TrimSpace(string(text)), "=")
	for _, arg := range strings.Fields(strings.Trim(args, `"`)) {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		flags[name] = value
	}
	return flags
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// await checks a condition every half second until it is true, or the context ends.
func await(ctx context.Context, done func() bool) bool {
	for {
		if ctx.Err() != nil {
			return false
		}
		if done() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// write writes a file that only root can read, atomically.
func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
