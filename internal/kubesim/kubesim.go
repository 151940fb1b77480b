// Package kubesim simulates a Kubernetes cluster in the process: an API server with the
// objects of a cluster, and those parts of its controllers that tools for clusters wait
// for. It speaks HTTP to client-go.
//
// Like the simulated AWS, it is not a mock: it has state, operations take time, and it
// rejects invalid requests. Unsupported kinds and patch types fail with "not simulated".
package kubesim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Object is one object as decoded JSON.
type Object = map[string]any

// Cluster is the state of one cluster. It can be written to a file and read again.
type Cluster struct {
	CA  []byte // PEM; client certificates must be signed by it
	EKS string // name of the EKS cluster, whose clients use tokens; "" for none
	// IPv6: pods and Services of the EKS cluster have IPv6 addresses.
	IPv6 bool
	// OwnNetwork: the pod network is part of the nodes, as in EKS Auto Mode.
	OwnNetwork bool
	// Unauthorized: AWS gives the VPC CNI no credentials, so that its containers end again and again.
	Unauthorized bool
	Up           time.Time // when the API server starts to answer
	Version      string    // "v1.34.2"
	Members      []*Member // of etcd
	ExternalEtcd bool      // etcd runs on other machines, and answers: there are no members
	Leader       uint64    // ID of the leader
	Left         []string  // Nodes whose members were removed: their API servers cannot answer
	Serial       int
	Objects      map[string]Object               // by path
	Applied      map[string]map[string]any       // by path and manager: the last applied configuration
	Dying        map[string]time.Time            // by path: when an object will be deleted
	Kinds        map[string][]metav1.APIResource // of custom resources, by group and version
	Joined       map[string]time.Time            // by name of the Node
	Logs         map[string]map[string]string    // by path and container: output of ended containers
	Defined      map[string]time.Time            // by path: when a CustomResourceDefinition will be served
	Running      time.Time                       // since when pods can run
	Broken       map[string]string               // images that do not run: Unpullable or Crashing
	TwoTags      bool                            // a control plane has the tags of two clusters, so that the cloud controller manager does not start
	Refused      map[string]bool                 // Nodes whose kubelets are answered with 401
	Denied       []string                        // resources that nobody may write, such as "pods/eviction", or list in all namespaces: "list secrets"
}

// New returns the cluster that kubeadm init or EKS creates.
func New(version string, up time.Time) *Cluster {
	c := &Cluster{Version: version, Up: up}
	c.fill()
	for _, ns := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		c.put("/api/v1/namespaces/"+ns, Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": ns}}, up)
	}
	c.makePriorities()
	return c
}

func (c *Cluster) fill() {
	if c.Objects == nil {
		c.Objects, c.Applied, c.Dying = map[string]Object{}, map[string]map[string]any{}, map[string]time.Time{}
		c.Logs = map[string]map[string]string{}
		c.Kinds, c.Joined = map[string][]metav1.APIResource{}, map[string]time.Time{}
	}
	if c.Defined == nil {
		c.Defined = map[string]time.Time{}
	}
}

// Put stores an object without the checks of the API server, and replaces an existing
// one.
func (c *Cluster) Put(now time.Time, o Object) {
	r, ok := c.resourceOf(text(o, "apiVersion"), text(o, "kind"))
	if !ok {
		panic("kubesim: no kind " + text(o, "kind"))
	}
	c.store(r.path(text(o, "metadata", "namespace"), text(o, "metadata", "name")), o, now)
}

// Get returns the object at a path, or nil.
func (c *Cluster) Get(path string) Object { return c.Objects[path] }

// put stores an object with the metadata that the API server adds.
func (c *Cluster) put(path string, o Object, now time.Time) {
	meta, _ := o["metadata"].(Object)
	c.Serial++
	meta["resourceVersion"] = fmt.Sprint(c.Serial)
	old, _ := c.Objects[path]["metadata"].(Object)
	for _, k := range []string{"uid", "creationTimestamp"} {
		if old[k] != nil {
			meta[k] = old[k]
		}
	}
	if meta["uid"] == nil {
		meta["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", c.Serial)
		meta["creationTimestamp"] = now.UTC().Format(time.RFC3339)
	}
	c.Objects[path] = o
	if text(o, "kind") == "CustomResourceDefinition" {
		c.Defined[path] = now.Add(definedTakes)
	}
}

// Settle updates everything that changes over time.
func (c *Cluster) Settle(now time.Time) {
	for path, at := range c.Dying {
		if !at.After(now) {
			delete(c.Objects, path)
			delete(c.Dying, path)
		}
	}
	c.settleDefinitions(now)
	c.cleanTokens(now)
	c.settleNodes(now)
	if c.Quorate() {
		c.settleNamespaces(now)
		c.settleTools(now)
		c.settlePods(now)
		c.settleBroken(now)
		c.settleBudgets(now)
		c.settleWorkloads(now)
		c.settleAPIServices(now)
	}
}

// Serve answers an authenticated request.
func (c *Cluster) Serve(now time.Time, r *http.Request, body []byte) (code int, answer any) {
	c.fill()
	c.Settle(now)
	if !c.Quorate() {
		return failure(http.StatusInternalServerError, "InternalError", "etcdserver: request timed out")
	}
	switch path := r.URL.Path; {
	case path == "/readyz" || path == "/healthz" || path == "/livez":
		return http.StatusOK, Text("ok") // https://kubernetes.io/docs/reference/using-api/health-checks/
	case path == "/version":
		return http.StatusOK, Object{"gitVersion": c.Version}
	case path == "/api":
		return http.StatusOK, Object{"kind": "APIVersions", "versions": []any{"v1"}}
	case path == "/apis":
		return http.StatusOK, c.groups()
	case path == "/api/v1" || strings.Count(path, "/") == 3 && strings.HasPrefix(path, "/apis/"):
		return c.discover(strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"))
	}
	at, ok := c.parse(r.URL.Path)
	if !ok {
		return failure(http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	}
	if code, answer := c.authorize(at, r.Method); code != 0 {
		return code, answer
	}
	dry := r.URL.Query().Get("dryRun") == metav1.DryRunAll
	if code, answer := c.hooked(now, at, r.Method, dry); code != 0 {
		return code, answer
	}
	return c.serve(now, at, r, body, dry)
}

func (c *Cluster) serve(now time.Time, at place, r *http.Request, body []byte, dry bool) (code int, answer any) {
	switch q := r.URL.Query(); r.Method {
	case http.MethodGet:
		if at.sub == "log" {
			return c.log(at, q.Get("container"))
		}
		return c.read(at, q.Get("labelSelector"), q.Get("fieldSelector"))
	case http.MethodPost:
		return c.post(now, at, body, dry)
	case http.MethodPatch:
		return c.patch(now, at, patch{
			kind: r.Header.Get("Content-Type"), body: body, manager: q.Get("fieldManager"), agent: agentOf(r), dry: dry,
		})
	case http.MethodPut:
		return c.replace(now, at, body, dry)
	case http.MethodDelete:
		if o := c.Objects[at.full()]; dry && o != nil {
			return http.StatusOK, o
		}
		return c.remove(now, at)
	}
	return failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "not simulated: "+r.Method)
}

// failure returns an error in the form of the API server.
func failure(code int, reason, message string) (int, any) {
	return code, Object{
		"kind": "Status", "apiVersion": "v1", "metadata": Object{}, "status": "Failure", "message": message, "reason": reason, "code": code,
	}
}

func (c *Cluster) read(at place, labels, fields string) (int, any) {
	if at.name != "" {
		if o := c.Objects[at.full()]; o != nil && at.sub == "" {
			return http.StatusOK, o
		}
		return missing(at)
	}
	items := []any{}
	asked := c.those(func(path string, _ Object) bool {
		is, _ := c.parse(path)
		return is.resource.Name == at.resource.Name && is.resource.gv == at.resource.gv && (at.namespace == "" || is.namespace == at.namespace)
	})
	for _, path := range asked {
		ok, err := selected(c.Objects[path], labels, fields)
		if err != nil {
			return failure(http.StatusBadRequest, "BadRequest", err.Error())
		}
		if ok {
			items = append(items, c.Objects[path])
		}
	}
	return http.StatusOK, Object{
		"kind":       at.resource.Kind + "List",
		"apiVersion": at.resource.gv,
		"metadata":   Object{"resourceVersion": fmt.Sprint(c.Serial)},
		"items":      items,
	}
}

func missing(at place) (int, any) {
	return failure(http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", at.resource.Name, at.name))
}

func (c *Cluster) post(now time.Time, at place, body []byte, dry bool) (int, any) {
	o := Object{}
	if err := json.Unmarshal(body, &o); err != nil {
		return failure(http.StatusBadRequest, "BadRequest", err.Error())
	}
	if at.sub == "eviction" {
		return c.evict(now, at, o)
	}
	if at.sub != "" || at.name != "" {
		return failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "not simulated: POST "+at.full())
	}
	at.name = text(o, "metadata", "name")
	if code, answer := c.admit(at, o); code != 0 {
		return code, answer
	}
	if code, answer := accept(o); code != 0 {
		return code, answer
	}
	if code, answer := c.terminating(at); code != 0 {
		return code, answer
	}
	if c.Objects[at.full()] != nil {
		return failure(http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", at.resource.Name, at.name))
	}
	stringData(o)
	if dry {
		c.defaults(o, nil)
		return http.StatusCreated, o
	}
	c.store(at.full(), o, now)
	return http.StatusCreated, o
}

// admit rejects objects that do not match the path of the request.
func (c *Cluster) admit(at place, o Object) (int, any) {
	meta, _ := o["metadata"].(Object)
	switch {
	case text(o, "apiVersion") != at.resource.gv || text(o, "kind") != at.resource.Kind:
		return failure(http.StatusBadRequest, "BadRequest", fmt.Sprintf("%s %s does not match %s", text(o, "apiVersion"), text(o, "kind"), at.full()))
	case at.name == "" || text(meta, "name") != at.name:
		return failure(http.StatusUnprocessableEntity, "Invalid", "metadata.name: Required value")
	case at.resource.Namespaced && c.Objects["/api/v1/namespaces/"+at.namespace] == nil:
		return failure(http.StatusNotFound, "NotFound", fmt.Sprintf("namespaces %q not found", at.namespace))
	}
	if why := c.ofDefinition(at, o); why != "" {
		return failure(http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("%s %q is invalid: %s", text(o, "kind"), at.name, why))
	}
	if at.resource.Namespaced {
		meta["namespace"] = at.namespace
	}
	if code, answer := c.secondDefault(at, o); code != 0 {
		return code, answer
	}
	if code, answer := c.allocated(at, o); code != 0 {
		return code, answer
	}
	return c.forbidden(at, o)
}

// accept rejects objects that are not valid.
func accept(o Object) (int, any) {
	if code, answer := valid(o); code != 0 {
		return code, answer
	}
	return labelled(o)
}

// labelled rejects invalid labels.
func labelled(o Object) (int, any) {
	marks, _ := value(o, "metadata", "labels").(Object)
	for _, k := range slices.Sorted(maps.Keys(marks)) {
		v, isText := marks[k].(string)
		wrong := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)...)
		if !isText && marks[k] != nil || len(wrong) > 0 {
			return failure(
				http.StatusUnprocessableEntity,
				"Invalid",
				fmt.Sprintf("%s %q is invalid: metadata.labels: Invalid value: %q: %s", text(o, "kind"), text(o, "metadata", "name"), k, strings.Join(wrong, "; ")),
			)
		}
	}
	return 0, nil
}

func (c *Cluster) replace(now time.Time, at place, body []byte, dry bool) (int, any) {
	o := Object{}
	if err := json.Unmarshal(body, &o); err != nil {
		return failure(http.StatusBadRequest, "BadRequest", err.Error())
	}
	if code, answer := c.admit(at, o); code != 0 {
		return code, answer
	}
	if code, answer := accept(o); code != 0 {
		return code, answer
	}
	have := c.Objects[at.full()]
	switch is := text(o, "metadata", "resourceVersion"); {
	case have == nil:
		return missing(at)
	case is != "" && is != text(have, "metadata", "resourceVersion"):
		return failure(http.StatusConflict, "Conflict", "the object has been modified")
	}
	stringData(o)
	c.defaults(o, have)
	if code, answer := update(at, have, o); code != 0 {
		return code, answer
	}
	if !dry {
		c.store(at.full(), o, now)
	}
	return http.StatusOK, o
}

// grace is how long a pod takes to terminate.
const grace = 5 * time.Second

func (c *Cluster) remove(now time.Time, at place) (int, any) {
	o := c.Objects[at.full()]
	if o == nil {
		return missing(at)
	}
	meta, _ := o["metadata"].(Object)
	if at.resource.Name == "namespaces" {
		if Going(o).IsZero() {
			meta["deletionTimestamp"], o["status"] = now.UTC().Format(time.RFC3339), Object{"phase": "Terminating"}
		}
		return http.StatusOK, o
	}
	if given, ok := value(o, "spec", "terminationGracePeriodSeconds").(float64); at.resource.Name == "pods" && text(o, "spec", "nodeName") != "" &&
		(!ok || given > 0) {
		if _, dying := c.Dying[at.full()]; !dying {
			meta["deletionTimestamp"] = now.UTC().Format(time.RFC3339)
			if node := c.Objects["/api/v1/nodes/"+text(o, "spec", "nodeName")]; node == nil || !unreachable(node) { // otherwise nobody completes the deletion
				c.Dying[at.full()] = now.Add(grace)
			}
		}
		return http.StatusOK, o
	}
	if f, _ := meta["finalizers"].([]any); len(f) > 0 {
		meta["deletionTimestamp"] = now.UTC().Format(time.RFC3339)
		return http.StatusOK, o
	}
	delete(c.Objects, at.full())
	return http.StatusOK, Object{"kind": "Status", "apiVersion": "v1", "metadata": Object{}, "status": "Success"}
}

// text returns the string at a path of an object, or "".
func text(o Object, path ...string) string {
	s, _ := value(o, path...).(string)
	return s
}

// value returns the value at a path of an object, or nil.
func value(o Object, path ...string) any {
	var at any = o
	for _, p := range path {
		m, ok := at.(Object)
		if !ok {
			return nil
		}
		at = m[p]
	}
	return at
}

// ClusterConfiguration returns the document that kubeadm keeps in the cluster.
func (c *Cluster) ClusterConfiguration() string {
	return text(c.Objects["/api/v1/namespaces/kube-system/configmaps/kubeadm-config"], "data", "ClusterConfiguration")
}
