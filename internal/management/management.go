// Package management changes objects in a management cluster: a cluster in which Cluster
// API and its AWS provider run.
package management

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterawsadm/clusterawsadm/internal/awshttp"
	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/internal/kube"
)

// fieldManager is the name with which changes are recorded in managedFields.
const fieldManager = "clusterawsadm"

// Options select the management cluster.
type Options struct {
	// Kubeconfig is the file to read. If it is "", existing ones of Files are merged; the
	// first file with an entry takes precedence. If no file exists, the cluster is the
	// one in which the program runs.
	Kubeconfig string
	Files      []string
	Context    string // "" means the current context
	UserAgent  string
	Clock      *clock.Clock // nil means the system clock
}

// Cluster is a management cluster.
type Cluster struct {
	objects dynamic.Interface
	raw     rest.Interface
	name    string // for messages: address and context
	clock   *clock.Clock
}

// Connect reads the kubeconfig. It makes no call.
func Connect(o Options) (*Cluster, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig, Precedence: o.Files, WarnIfAllMissing: false}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	raw, err := loader.RawConfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("kubeconfig: there is no file %s", o.Kubeconfig)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	none := fmt.Errorf("no kubeconfig of a management cluster (searched: %s): use --kubeconfig FILE, or set KUBECONFIG",
		strings.Join(append(o.Files, o.Kubeconfig)[:max(1, len(o.Files))], ", "))
	if o.Context != "" && api.IsConfigEmpty(&raw) {
		return nil, none
	}
	current, err := o.context(&raw)
	if err != nil {
		return nil, err
	}
	cfg, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, none
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	cfg.UserAgent = o.UserAgent
	cfg.QPS = -1                           // the API server limits requests by itself
	cfg.WarningHandler = rest.NoWarnings{} // API deprecations do not concern the user
	cfg.Wrap(awshttp.LimitBodies)
	c := &Cluster{name: "the management cluster at " + cfg.Host, clock: o.Clock}
	if current != "" {
		c.name += " (context " + current + ")"
	}
	if c.objects, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // needed to decode the Status of an error
	cfg = rest.CopyConfig(cfg)
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if c.raw, err = rest.UnversionedRESTClientFor(cfg); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return c, nil
}

// context returns the context to use: the given one, which must exist, or the current
// one, or "" if there is none.
func (o Options) context(raw *api.Config) (string, error) {
	current := raw.CurrentContext
	if o.Context != "" {
		current = o.Context
	}
	if _, ok := raw.Contexts[current]; !ok && current != "" {
		known := "none"
		if len(raw.Contexts) > 0 {
			known = strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
		}
		return "", fmt.Errorf("kubeconfig: context %q does not exist; contexts: %s", current, known)
	}
	return current, nil
}

// Name identifies the cluster in messages.
func (c *Cluster) Name() string { return c.name }

// kind returns the version and resource name of a kind: in the version that the cluster
// prefers, unless that lacks the kind. It uses the discovery API, which all users may
// read, unlike CustomResourceDefinitions.
func (c *Cluster) kind(ctx context.Context, group, kind string) (schema.GroupVersionResource, error) {
	none := schema.GroupVersionResource{}
	var found metav1.APIGroup
	err := c.get(ctx, "/apis/"+group, &found)
	if apierrors.IsNotFound(err) {
		return none, fmt.Errorf("%s has no kinds of the group %s: %s", c.name, group, notInstalled(group))
	}
	if err != nil {
		return none, c.explain(err, "ask for the kinds of the group "+group)
	}
	versions := []string{found.PreferredVersion.Version}
	for _, v := range found.Versions {
		if v.Version != versions[0] {
			versions = append(versions, v.Version)
		}
	}
	for _, v := range versions {
		var list metav1.APIResourceList
		if err := c.get(ctx, "/apis/"+group+"/"+v, &list); err != nil {
			return none, c.explain(err, "ask for the kinds of "+group+"/"+v)
		}
		if name := resource(list, kind); name != "" {
			return schema.GroupVersionResource{Group: group, Version: v, Resource: name}, nil
		}
	}
	return none, fmt.Errorf("%s has no kind %s in the group %s: %s", c.name, kind, group, notInstalled(group))
}

// resource returns the name of the resource of a kind among those of an API version; "" if it
// has none.
func resource(list metav1.APIResourceList, kind string) string {
	for _, r := range list.APIResources {
		if r.Kind == kind && !strings.Contains(r.Name, "/") {
			return r.Name
		}
	}
	return ""
}

// core returns a resource of the core API.
func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// patch changes fields of an object.
func (c *Cluster) patch(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = c.objects.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

func notInstalled(group string) string {
	if group == clusterGroup {
		return "is Cluster API installed in it ('clusterctl init --infrastructure aws')? Is it the right context?"
	}
	return "is the provider installed in it ('clusterctl init --infrastructure aws')?"
}

func (c *Cluster) get(ctx context.Context, path string, into any) error {
	result := c.raw.Get().AbsPath(path).Do(ctx)
	if err := result.Error(); err != nil { // Raw's does not say what the API server said
		return err
	}
	data, err := result.Raw()
	if err != nil {
		return err
	}
	return kube.Decode(data, into)
}

// explain adds the operation to an error, and explains common errors.
func (c *Cluster) explain(err error, what string) error {
	var unreachable *url.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %s does not accept the credentials of the kubeconfig; they may have expired: %w", what, c.name, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: the user of the kubeconfig lacks a permission in %s: %w", what, c.name, err)
	case errors.As(err, &unreachable):
		return fmt.Errorf("%s: %s cannot be reached: %w", what, c.name, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// MissingError says that an object does not exist.
type MissingError struct{ text string }

func (e *MissingError) Error() string { return e.text }

// missing returns the MissingError of an object, which says whether its namespace exists.
func (c *Cluster) missing(ctx context.Context, what, namespace, hint string) error {
	if _, err := c.objects.Resource(core("namespaces")).Get(ctx, namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return &MissingError{fmt.Sprintf("there is no %s, and no namespace %s, in %s: set the namespace with --namespace; %s", what, namespace, c.name, hint)}
	}
	return &MissingError{fmt.Sprintf("there is no %s in namespace %s of %s; %s", what, namespace, c.name, hint)}
}
