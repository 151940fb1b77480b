package incluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/incluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
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

// What Cluster API refuses of CoreDNS is a conflict: earlier versions, and those that corefile-migration does not know.
func TestCoreDNSThatClusterAPIRefuses(t *testing.T) {
	for _, x := range []struct{ image, tag, why string }{
		{"registry.k8s.io/coredns/coredns:v1.12.1", "v1.11.3", "cannot migrate up to '1.11.3' from '1.12.1'"},
		{"registry.k8s.io/coredns/coredns:v1.12.1", "v1.99.0", "cannot migrate up to '1.99.0'"},
		{"mirror.example:5000/coredns:v1.0.0@sha256:12", "v1.12.1", "start version '1.0.0' not supported"},
		{"registry.k8s.io/coredns/coredns:v1.12.1", "v1.12.1_custom.2", ""},
		{"registry.k8s.io/coredns/coredns:v1.9.3", "v1.14.7", ""},
		{"mirror.example/coredns@sha256:12", "v1.11.3", ""},
		{"mirror.example/coredns:mine", "v1.11.3", ""},
	} {
		d := (&incluster.SystemImage{Name: "coredns", Tag: x.tag}).Diff(&incluster.SystemImageState{Name: "coredns", Image: x.image})
		if !assert.Len(t, d, 1, x) {
			continue
		}
		if x.why == "" {
			assert.Equal(t, plan.InPlace, d[0].Remedy, x)
			continue
		}
		assert.Equal(t, plan.Replace, d[0].Remedy, x)
		assert.Contains(t, d[0].Advice, x.why)
	}
}
