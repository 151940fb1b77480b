package incluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/corefile-migration/migration"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/version"

	"github.com/clusterawsadm/clusterawsadm/internal/cloud"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/boot"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/graph"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// SystemImage is the image of a workload that kubeadm init installs and kubeadm join does
// not upgrade: kube-proxy, CoreDNS. A cluster may have neither.
type SystemImage struct {
	API       *API
	Server    *graph.Ref[APIServerState]
	Workload  string // "daemonsets" or "deployments"
	Name      string // of the workload and of its container, in kube-system
	Container string
	Tag       string // desired tag
	// Given is the desired repository; "" keeps the current one.
	Given string
	After []graph.Edge
}

// SystemImageState is the current image.
type SystemImageState struct {
	Name, Image string // "" if the cluster has no such workload
}

// CloudID implements graph.State.
func (s SystemImageState) CloudID() string { return "kube-system/" + s.Name }

var (
	_ graph.Desired[SystemImageState] = (*SystemImage)(nil)
	_ graph.Updater[SystemImageState] = (*SystemImage)(nil)
)

// Needs implements graph.Desired.
func (s *SystemImage) Needs() []graph.Edge { return append(graph.On(s.Server), s.After...) }

// Find implements graph.Desired.
func (s *SystemImage) Find(ctx context.Context, c *cloud.Clients) (*SystemImageState, error) {
	have := &SystemImageState{Name: s.Name}
	if !answers(s.Server) {
		return nil, nil // the API server does not answer yet
	}
	client, err := s.API.Client(c)
	if err != nil {
		return nil, err
	}
	var w struct { // a DaemonSet or a Deployment
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	err = client.Get(ctx, "/apis/apps/v1/namespaces/kube-system/"+s.Workload+"/"+s.Name, &w)
	if apierrors.IsNotFound(err) {
		return have, nil
	}
	if err != nil {
		return nil, retryUnavailable(ctx, err)
	}
	for _, x := range w.Spec.Template.Spec.Containers {
		if x.Name == s.Container {
			have.Image = x.Image
		}
	}
	return have, nil
}

// Diff implements graph.Desired.
func (s *SystemImage) Diff(have *SystemImageState) (d plan.Diff) {
	if have.Image == "" {
		return d
	}
	if advice := s.obstacle(have.Image); advice != "" {
		d.Fixed("image", have.Image, s.image(have.Image), advice)
		return d
	}
	d.Set("image", have.Image, s.image(have.Image))
	return d
}

// obstacle returns why Cluster API refuses to change CoreDNS to the version; "" if it does not. Its webhook and its controller use
// corefile-migration, which supports no downgrades, and no versions that it does not know (validateCoreDNSVersion in
// controlplane/kubeadm/webhooks/admission, validateCoreDNSImageTag in controlplane/kubeadm/pkg/workload_cluster_coredns.go). Images without a
// version in their tags are not checked.
func (s *SystemImage) obstacle(image string) string {
	if s.Name != "coredns" {
		return ""
	}
	_, tag := cutTag(image)
	from, err1 := version.ParseTolerantImageTag(tag)
	to, err2 := version.ParseTolerantImageTag(s.Tag)
	if tag == "" || err1 != nil || err2 != nil || version.Compare(to, from, version.WithoutPreReleases()) == 0 {
		return ""
	}
	if err := migration.ValidUpMigration(version.MajorMinorPatch(from).String(), version.MajorMinorPatch(to).String()); err != nil {
		return fmt.Sprintf(
			"Cluster API does not change CoreDNS in this way (%s): set clusterConfiguration.dns.imageTag back to %s or to a later version that corefile-migration knows, "+
				"or set the annotation %s of the KubeadmControlPlane and update CoreDNS yourself",
			err,
			tag,
			controlplanev1.SkipCoreDNSAnnotation,
		)
	}
	return ""
}

// cutTag splits an image into its name and its tag. The tag is "" if the image has none.
func cutTag(image string) (name, tag string) {
	name, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		return name[:at], name[at+1:]
	}
	return name, ""
}

// image returns the desired image in place of another.
func (s *SystemImage) image(have string) string {
	name, _ := cutTag(have)
	if s.Given != "" {
		repository := strings.TrimSuffix(s.Given, "/")
		if repository == boot.DefaultRepository && s.Name == "coredns" {
			repository += "/coredns" // kubeadm appends this to its default repository only
		}
		name = repository + name[strings.LastIndexByte(name, '/'):]
	}
	return name + ":" + s.Tag
}

// Update implements graph.Updater.
func (s *SystemImage) Update(ctx context.Context, c *cloud.Clients, have *SystemImageState, _ plan.Diff) (*SystemImageState, error) {
	client, err := s.API.Client(c)
	if err != nil {
		return nil, err
	}
	kind := map[string]string{"daemonsets": "DaemonSet", "deployments": "Deployment"}[s.Workload]
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": s.Name, "namespace": metav1.NamespaceSystem},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": s.Container, "image": s.image(have.Image)}},
		}}},
	}}
	_, err = client.Apply(ctx, o, false)
	if err != nil {
		return nil, retryUnavailable(ctx, fmt.Errorf("image of %s: %w", s.Name, err))
	}
	return nil, nil // nil: Find has to read it
}
