// The program says what Cluster API's add-on provider Helm (CAAPH) makes of a HelmChartProxy. It reads questions as lines of
// JSON, and writes the answers in the same order: whether the webhook accepts the object, and the HelmReleaseProxy that the
// controller creates for the cluster. It is a module of its own, because CAAPH and the program cannot be linked together.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	addonsv1 "sigs.k8s.io/cluster-api-addon-provider-helm/api/v1alpha1"
	"sigs.k8s.io/cluster-api-addon-provider-helm/controllers/helmchartproxy"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"
)

// question has a HelmChartProxy and the objects of a cluster.
type question struct {
	Chart   json.RawMessage
	Objects []json.RawMessage
}

// answer is what CAAPH makes of it.
type answer struct {
	Denied  string                         // by the webhook
	Failed  string                         // by the controller
	Release *addonsv1.HelmReleaseProxySpec // nil: the selector does not match
	Values  map[string]any                 // of the release, as helm reads them
	Unread  string                         // why helm cannot read the values
}

// hooks are the webhooks of CAAPH, by path.
type hooks map[string]http.Handler

// server is a webhook server that only registers.
type server struct {
	webhook.Server

	hooks hooks
}

func (s server) Register(path string, hook http.Handler) { s.hooks[path] = hook }

func (s server) WebhookMux() *http.ServeMux { return http.NewServeMux() }

func main() {
	log.SetLogger(logr.Discard())
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	known := hooks{}
	m, err := manager.New(&rest.Config{}, manager.Options{
		Scheme: scheme, WebhookServer: server{hooks: known},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		return err
	}
	if err := (&addonsv1.HelmChartProxy{}).SetupWebhookWithManager(m); err != nil {
		return err
	}
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	const longest = 1 << 22
	in.Buffer(nil, longest)
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return err
		}
		a, err := ask(scheme, known, q)
		if err != nil {
			return fmt.Errorf("%w: %s", err, in.Bytes())
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return in.Err()
}

func ask(scheme *runtime.Scheme, known hooks, q question) (a answer, err error) {
	ctx := context.Background()
	raw := []byte(q.Chart)
	for path, hook := range known {
		w, is := hook.(*admission.Webhook)
		if !is || !strings.HasPrefix(path, "/mutate") {
			continue
		}
		r := review(ctx, w, raw)
		if len(r.Patch) > 0 {
			patch, err := jsonpatch.DecodePatch(r.Patch)
			if err != nil {
				return a, err
			}
			if raw, err = patch.Apply(raw); err != nil {
				return a, err
			}
		}
	}
	for path, hook := range known {
		w, is := hook.(*admission.Webhook)
		if !is || !strings.HasPrefix(path, "/validate") {
			continue
		}
		if r := review(ctx, w, raw); !r.Allowed {
			a.Denied = r.Result.Message
			return a, nil
		}
	}
	chart := &addonsv1.HelmChartProxy{}
	if err := json.Unmarshal(raw, chart); err != nil {
		a.Denied = err.Error()
		return a, nil
	}
	build := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&addonsv1.HelmChartProxy{}).WithObjects(chart)
	for _, o := range q.Objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(o); err != nil { // as an API server: integers stay integers
			return a, err
		}
		build = build.WithObjects(u)
	}
	c := build.Build()
	r := &helmchartproxy.HelmChartProxyReconciler{Client: c, Scheme: scheme}
	for range 2 { // the first adds the finalizer
		if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: chart.Namespace, Name: chart.Name}}); err != nil {
			a.Failed = err.Error()
		}
	}
	var all addonsv1.HelmReleaseProxyList
	if err := c.List(ctx, &all, client.InNamespace(chart.Namespace)); err != nil {
		return a, err
	}
	if len(all.Items) > 0 {
		a.Release = &all.Items[0].Spec
		if err := yaml.Unmarshal([]byte(a.Release.Values), &a.Values); err != nil { // as ReadValues of Helm does
			a.Unread = err.Error()
		}
	}
	return a, nil
}

func review(ctx context.Context, w *admission.Webhook, object []byte) admission.Response {
	r := admission.Request{}
	r.Operation = admissionv1.Create
	r.Object.Raw = object
	out := w.Handle(ctx, r)
	_ = out.Complete(r)
	return out
}
