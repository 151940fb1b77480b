package lab

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/lab/wire"
)

// newEKS starts an API server for EKS clusters until the end of the test, without kubelets and
// controllers, and returns a user of it. Clusters that are created later report its address.
// It stands in for that of EKS: it takes tokens of EKS, whoever made them.
func (l *Lab) newEKS(t *testing.T, cluster, manifest string) *Laptop {
	t.Helper()
	plane := controlplane.StartOn(t, l.laptop)
	u := l.NewLaptop(t, cluster, manifest)
	u.kubeconfig = plane.Kubeconfig(t)
	cfg, err := clientcmd.BuildConfigFromFlags("", u.kubeconfig)
	require.NoError(t, err)
	cfg.Dial = l.laptop.dial
	transport, err := rest.TransportFor(cfg)
	require.NoError(t, err)
	server, err := url.Parse(plane.URL)
	require.NoError(t, err)
	folder, ca := plane.ServingCertificate(t)
	address := serveTokens(t, l.laptop, folder, &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, // watches
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(server)
			p.Out.Header.Del("Authorization")
		},
	})
	text, err := json.Marshal(map[string]string{"endpoint": "https://" + address, "ca": base64.StdEncoding.EncodeToString(ca)})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(l.folder, eksFile), text, 0o600))
	return u
}

// serveTokens serves requests with a token of EKS on a host, and returns the address.
func serveTokens(t *testing.T, at namespace, certificates string, proxy http.Handler) string {
	t.Helper()
	listener, err := at.listen(context.WithoutCancel(t.Context()), "127.0.0.1:0")
	require.NoError(t, err)
	front := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer k8s-aws-v1.") {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() {
		_ = front.ServeTLS(listener, filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
	}() // until it is closed
	t.Cleanup(func() { _ = front.Close() })
	return listener.Addr().String()
}

// addNodes creates what EKS and its images do: the DaemonSet of the VPC CNI, and a Node for
// each instance with an image of EKS.
func (u *Laptop) addNodes(t *testing.T, want int) {
	t.Helper()
	objects := []string{`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: aws-node, namespace: kube-system},
		spec: {selector: {matchLabels: {k8s-app: aws-node}}, template: {metadata: {labels: {k8s-app: aws-node}}, spec: {containers: [{name: aws-node, image: cni}]}}}}`}
	instances, err := u.account.Instances(t.Context())
	require.NoError(t, err)
	var nodes []wire.Instance
	for _, i := range instances {
		if i.State == "running" && i.Image == eksImage && i.Tag("kubernetes.io/cluster/default_"+u.Cluster) != "" {
			nodes = append(nodes, i)
			objects = append(objects, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s}, spec: {providerID: "aws:///%s/%s"}}`, i.Name, i.Zone, i.ID))
		}
	}
	require.Len(t, nodes, want)
	file := filepath.Join(t.TempDir(), "eks.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(objects, "\n---\n")), 0o600))
	u.Kubectl(t, "apply", "-f", file)
	for _, i := range nodes {
		u.Kubectl(t, "patch", "node", i.Name, "--subresource", "status", "--type", "merge", "-p",
			`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"},`+
				`{"type":"MemoryPressure","status":"False"},{"type":"DiskPressure","status":"False"},{"type":"PIDPressure","status":"False"}],"nodeInfo":{"kubeletVersion":"v1.34.2"}}}`)
	}
}

// createEKS creates an EKS cluster. Its nodes exist before the last run, which waits for them.
func (l *Lab) createEKS(t *testing.T, cluster, manifest string, nodes int) *Laptop {
	t.Helper()
	u := l.newEKS(t, cluster, manifest)
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes", "--wait", "infrastructure")
	u.addNodes(t, nodes)
	u.Run(t, "cluster", "create", "-f", u.manifest, "--yes")
	return u
}
