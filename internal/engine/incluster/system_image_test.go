package incluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
)

// Images are named as kubeadm names them.
func TestSystemImage(t *testing.T) {
	for _, x := range []struct{ name, given, tag, have, want string }{
		{"kube-proxy", "", "v1.34.2", "registry.k8s.io/kube-proxy:v1.33.0", "registry.k8s.io/kube-proxy:v1.34.2"},
		{"kube-proxy", "registry.k8s.io", "v1.34.2", "registry.k8s.io/kube-proxy:v1.33.0", "registry.k8s.io/kube-proxy:v1.34.2"},
		{"kube-proxy", "mirror.example:5000/k8s/", "v1.34.2", "registry.k8s.io/kube-proxy:v1.33.0@sha256:12", "mirror.example:5000/k8s/kube-proxy:v1.34.2"},
		{"coredns", "", "v1.12.1", "registry.k8s.io/coredns/coredns:v1.11.3", "registry.k8s.io/coredns/coredns:v1.12.1"},
		{"coredns", "registry.k8s.io", "v1.12.1", "registry.k8s.io/coredns/coredns:v1.11.3", "registry.k8s.io/coredns/coredns:v1.12.1"},
		{"coredns", "registry.k8s.io/", "v1.12.1", "mirror.example/coredns:v1.11.3", "registry.k8s.io/coredns/coredns:v1.12.1"},
		{"coredns", "registry.k8s.io/coredns", "v1.12.1", "registry.k8s.io/coredns/coredns:v1.11.3", "registry.k8s.io/coredns/coredns:v1.12.1"},
		{"coredns", "mirror.example/k8s", "v1.12.1", "registry.k8s.io/coredns/coredns:v1.11.3", "mirror.example/k8s/coredns:v1.12.1"},
	} {
		s := &incluster.SystemImage{Name: x.name, Given: x.given, Tag: x.tag}
		d := s.Diff(&incluster.SystemImageState{Name: x.name, Image: x.have})
		if assert.Len(t, d, 1) {
			assert.Equal(t, x.want, d[0].Want)
		}
		assert.Empty(t, s.Diff(&incluster.SystemImageState{Name: x.name, Image: x.want}))
	}
}
