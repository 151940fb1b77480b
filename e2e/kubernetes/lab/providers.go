package lab

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterawsadm/clusterawsadm/e2e/kubernetes/controlplane"
)

// provider is a provider of Cluster API: a controller and the manifests of its release.
type provider struct {
	image  string // name of its image, which is that of the program here
	module string
	folder string // folder of its main package and manifests in the module
	port   int    // of its webhooks, on 127.0.0.1
}

func providers() []provider {
	const api, aws = "sigs.k8s.io/cluster-api", "sigs.k8s.io/cluster-api-provider-aws/v2"
	return []provider{
		{image: "cluster-api-controller", module: api, port: 9441},
		{image: "kubeadm-bootstrap-controller", module: api, folder: "bootstrap/kubeadm", port: 9442},
		{image: "kubeadm-control-plane-controller", module: api, folder: "controlplane/kubeadm", port: 9443},
		{image: "cluster-api-aws-controller", module: aws, port: 9444},
	}
}

// setting returns the value of a variable of the manifests, "NAME:=default".
func setting(variable string) string {
	name, value, _ := strings.Cut(variable, ":=")
	switch name {
	case "EXP_MACHINE_POOL", "EXP_BOOTSTRAP_FORMAT_IGNITION", "EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION":
		return "true"
	}
	return value
}

// build builds the controller.
func (p provider) build(ctx context.Context) (string, error) {
	_, version, err := controlplane.ProviderModule(ctx, p.module)
	if err != nil {
		return "", err
	}
	return controlplane.Build(ctx, controlplane.Program{
		Name: p.image, Version: version, Package: strings.TrimSuffix(p.module+"/"+p.folder, "/"), Module: controlplane.Providers,
	})
}

// release returns the objects of the provider's release, as "make release-manifests"
// builds them.
func (p provider) release(t *testing.T, m *Management) []*unstructured.Unstructured {
	t.Helper()
	dir, _, err := controlplane.ProviderModule(t.Context(), p.module)
	require.NoError(t, err)
	return controlplane.Parse(t, m.Kubectl(t, "kustomize", filepath.Join(dir, p.folder, "config", "default")))
}

// installed returns the objects to create in a management cluster whose controllers are
// processes: without what a Deployment needs (service accounts, certificates), and with
// webhooks at a port of 127.0.0.1.
func (p provider) installed(t *testing.T, release []*unstructured.Unstructured, ca []byte) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range release {
		switch o.GetKind() {
		case "Namespace":
		case "CustomResourceDefinition":
			if conversion, found, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook"); found {
				p.local(conversion, ca)
				require.NoError(t, unstructured.SetNestedMap(o.Object, conversion, "spec", "conversion", "webhook"))
			}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
			require.NoError(t, err)
			for _, hook := range hooks {
				p.local(hook.(map[string]any), ca)
			}
			require.NoError(t, unstructured.SetNestedSlice(o.Object, hooks, "webhooks"))
		default:
			continue
		}
		all = append(all, o)
	}
	return all
}

// local replaces the Service of a webhook.
func (p provider) local(hook map[string]any, ca []byte) {
	path, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path") // all webhooks of the providers have it
	hook["clientConfig"] = map[string]any{
		"url": fmt.Sprintf("https://127.0.0.1:%d%s", p.port, path), "caBundle": base64.StdEncoding.EncodeToString(ca),
	}
}

// run returns the namespace and the arguments of the controller, from its Deployment.
func (p provider) run(t *testing.T, release []*unstructured.Unstructured) (namespace string, args []string) {
	t.Helper()
	for _, o := range release {
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		require.Len(t, containers, 1)
		args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		require.NoError(t, err)
		for i := range args {
			args[i] = os.Expand(args[i], setting)
		}
		return o.GetNamespace(), args
	}
	require.Fail(t, "no Deployment", p.image)
	return "", nil
}
