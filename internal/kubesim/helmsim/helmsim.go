// Package helmsim simulates the program helm: it records releases in a cluster as helm does, and makes the workloads of
// a few charts, but downloads no chart. It is strict: flags that helm does not have, and operations that helm
// refuses, fail.
package helmsim

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// Object is one object as decoded JSON.
type Object = map[string]any

// Helm is a helm without charts.
type Helm struct {
	Four bool                      // helm 4, which has other flags
	Fail func(args []string) error // fails a command before it writes; may be nil
	Die  func(args []string) error // ends a command after it has recorded that it begins; may be nil
}

// Version implements cluster.Helm.
func (h *Helm) Version(context.Context) (string, error) {
	if h.Four {
		return "v4.3.1", nil
	}
	return "v3.19.0", nil
}

// Run implements cluster.Helm.
func (h *Helm) Run(ctx context.Context, args []string, stdin []byte, server string, api http.RoundTripper) error {
	c, err := parse(args, h.Four)
	if err != nil {
		return err
	}
	if h.Fail != nil {
		if err := h.Fail(args); err != nil {
			return err
		}
	}
	c.cluster, c.die = &cluster{ctx: ctx, server: strings.TrimSuffix(server, "/"), api: api}, func() error {
		if h.Die != nil {
			return h.Die(args)
		}
		return nil
	}
	switch c.verb {
	case "upgrade":
		return c.upgrade(stdin)
	case "uninstall":
		return c.uninstall()
	}
	return c.rollback()
}

// command is a command line.
type command struct {
	verb, release, chart string
	flags                map[string]string
	cluster              *cluster
	die                  func() error
}

// known are the flags of helm 3.19 for each command; those with "=" have a value.
func known(verb string) []string {
	switch verb {
	case "upgrade":
		return strings.Fields(`install namespace= labels= timeout= values= repo= version= atomic force history-max= create-namespace no-hooks wait
			wait-for-jobs dependency-update skip-crds render-subchart-notes disable-openapi-validation take-ownership cleanup-on-fail reuse-values
			reset-then-reuse-values reset-values insecure-skip-tls-verify`)
	case "uninstall":
		return strings.Fields(`namespace= ignore-not-found wait timeout= keep-history`)
	case "rollback":
		return strings.Fields(`namespace= wait timeout=`)
	}
	return nil
}

func parse(args []string, four bool) (*command, error) {
	c := &command{verb: args[0], flags: map[string]string{}}
	flags := known(c.verb)
	if four && c.verb == "upgrade" { // https://helm.sh/docs/helm/helm_upgrade
		flags = slices.DeleteFunc(flags, func(f string) bool { return f == "atomic" || f == "force" })
		flags = append(flags, "rollback-on-failure", "force-replace", "server-side=", "force-conflicts")
	}
	if flags == nil {
		return nil, fmt.Errorf("unknown command %q for \"helm\"", c.verb)
	}
	words, err := c.parseFlags(args[1:], flags)
	if err != nil {
		return nil, err
	}
	if c.flags["force-replace"] != "" && c.flags["server-side"] != "false" { // the default for a release of helm 4
		return nil, errors.New("UPGRADE FAILED: invalid operation: cannot use server-side apply and force replace together")
	}
	want := 1
	if c.verb == "upgrade" {
		want = 2
	}
	if len(words) != want {
		return nil, fmt.Errorf("%q requires %d arguments", "helm "+c.verb, want)
	}
	c.release = words[0]
	if want > 1 {
		c.chart = words[1]
	}
	return c, nil
}

// parseFlags sets the flags, and returns the other arguments.
func (c *command) parseFlags(args, flags []string) (words []string, err error) {
	for rest := args; len(rest) > 0; rest = rest[1:] {
		name, isFlag := strings.CutPrefix(rest[0], "--")
		if !isFlag {
			words = append(words, rest[0])
			continue
		}
		name, value, has := strings.Cut(name, "=")
		switch {
		case slices.Contains(flags, name) && !has:
			c.flags[name] = "true"
		case slices.Contains(flags, name+"=") && has:
			c.flags[name] = value
		case slices.Contains(flags, name+"=") && len(rest) > 1:
			c.flags[name] = rest[1]
			rest = rest[1:]
		default:
			return nil, fmt.Errorf("unknown flag: --%s", name)
		}
	}
	return words, nil
}

// busy is what helm says while another operation is recorded as pending (pkg/action/action.go).
var errBusy = errors.New("another operation (install/upgrade/rollback) is in progress")

func (c *command) upgrade(stdin []byte) error {
	if c.flags["values"] != "-" {
		return errors.New("not simulated: --values from a file")
	}
	var values Object
	if err := json.Unmarshal(stdin, &values); err != nil {
		return fmt.Errorf("failed to parse -: %w", err)
	}
	name, version, err := c.chartOf()
	if err != nil {
		return err
	}
	last, err := c.last()
	if err != nil {
		return err
	}
	status, revision := "pending-install", 1
	if last != nil {
		if strings.HasPrefix(last.status, "pending-") {
			return errBusy
		}
		status, revision = "pending-upgrade", last.revision+1
	}
	if err := c.namespace(); err != nil {
		return err
	}
	record := Object{
		"name": c.release, "namespace": c.flags["namespace"], "version": revision, "info": Object{"status": status},
		"chart": Object{"metadata": Object{"name": name, "version": version}}, "config": values,
	}
	if err := c.store(record, http.MethodPost); err != nil {
		return err
	}
	if err := c.die(); err != nil {
		return err
	}
	if err := c.define(name); err != nil {
		return err
	}
	if err := c.makeWorkloads(name, values); err != nil {
		return err
	}
	if last != nil {
		last.record["info"] = Object{"status": "superseded"}
		if err := c.store(last.record, http.MethodPut); err != nil {
			return err
		}
	}
	record["info"] = Object{"status": "deployed"}
	return c.store(record, http.MethodPut)
}

// chartOf returns the name and the version of the chart: of a folder, from its Chart.yaml.
func (c *command) chartOf() (name, version string, err error) {
	if c.flags["repo"] == "" && !strings.HasPrefix(c.chart, "oci://") {
		text, err := os.ReadFile(filepath.Join(c.chart, "Chart.yaml"))
		if err != nil {
			return "", "", fmt.Errorf("path %q not found", c.chart)
		}
		field := func(name string) string {
			m := regexp.MustCompile(`(?m)^` + name + `: *["']?([^"'\s]+)`).FindSubmatch(text)
			if m == nil {
				return ""
			}
			return string(m[1])
		}
		return field("name"), field("version"), nil
	}
	if repo := cmp.Or(c.flags["repo"], c.chart); !regex.Of(`^(https?|oci)://`).MatchString(repo) {
		return "", "", fmt.Errorf("could not find protocol handler for: %s", repo) // pkg/getter of Helm
	}
	if v := c.flags["version"]; v != "" && !regex.Of(`[0-9*xX]`).MatchString(v[:min(len(v), 4)]) {
		return "", "", fmt.Errorf("improper constraint: %s", v) // github.com/Masterminds/semver
	}
	name = c.chart[strings.LastIndex(c.chart, "/")+1:]
	version = strings.TrimLeft(c.flags["version"], "^~>=")
	if version == "" {
		version = "1.0.0" // the newest; no repository is asked
	}
	return name, version, nil
}

func (c *command) namespace() error {
	name := c.flags["namespace"]
	switch code, err := c.cluster.do(http.MethodGet, "/api/v1/namespaces/"+name, nil, nil); {
	case err != nil:
		return err
	case code == http.StatusOK:
		return nil
	case c.flags["create-namespace"] == "":
		return fmt.Errorf("namespaces %q not found", name)
	}
	return c.cluster.create(Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": name}})
}

// revision is a recorded revision.
type revision struct {
	revision int
	status   string
	record   Object
}

func (c *command) all() (found []revision, err error) {
	var list struct{ Items []Object }
	if _, err := c.cluster.do(http.MethodGet, c.secrets()+"?labelSelector=owner%3Dhelm%2Cname%3D"+c.release, nil, &list); err != nil {
		return nil, err
	}
	for _, s := range list.Items {
		data, _ := s["data"].(Object)
		text, _ := data["release"].(string)
		record, err := unpack(text)
		if err != nil {
			return nil, err
		}
		number, _ := record["version"].(float64)
		info, _ := record["info"].(Object)
		status, _ := info["status"].(string)
		found = append(found, revision{int(number), status, record})
	}
	slices.SortFunc(found, func(a, b revision) int { return a.revision - b.revision })
	return found, nil
}

func (c *command) last() (*revision, error) {
	all, err := c.all()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[len(all)-1], nil
}

func (c *command) secrets() string { return "/api/v1/namespaces/" + c.flags["namespace"] + "/secrets" }

// store writes the record of a revision.
func (c *command) store(record Object, method string) error {
	number := 0
	switch v := record["version"].(type) {
	case int:
		number = v
	case float64:
		number = int(v)
	}
	info, _ := record["info"].(Object)
	text, err := pack(record)
	if err != nil {
		return err
	}
	labels := Object{"name": c.release, "owner": "helm", "status": info["status"], "version": strconv.Itoa(number)}
	if key, value, ok := strings.Cut(c.flags["labels"], "="); ok {
		labels[key] = value
	}
	name, path := fmt.Sprintf("sh.helm.release.v1.%s.v%d", c.release, number), c.secrets()
	if method == http.MethodPut {
		path += "/" + name
	}
	return c.cluster.write(method, path, Object{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": Object{"release": text},
		"metadata": Object{"name": name, "namespace": c.flags["namespace"], "labels": labels},
	})
}

func (c *command) uninstall() error {
	all, err := c.all()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		if c.flags["ignore-not-found"] != "" {
			return nil
		}
		return fmt.Errorf("uninstall: Release not loaded: %s: release: not found", c.release)
	}
	chart, _ := all[len(all)-1].record["chart"].(Object)
	metadata, _ := chart["metadata"].(Object)
	name, _ := metadata["name"].(string)
	for _, o := range workloads(name, c.flags["namespace"]) {
		if o["kind"] != "Namespace" {
			if _, err := c.cluster.do(http.MethodDelete, pathOf(o)+"/"+nameOf(o), nil, nil); err != nil {
				return err
			}
		}
	}
	for _, r := range all {
		if _, err := c.cluster.do(http.MethodDelete, fmt.Sprintf("%s/sh.helm.release.v1.%s.v%d", c.secrets(), c.release, r.revision), nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// rollback records the revision before the last one as a new one.
func (c *command) rollback() error {
	all, err := c.all()
	if err != nil {
		return err
	}
	if len(all) < 2 {
		return errors.New("release has no 0 version")
	}
	last, before := all[len(all)-1], all[len(all)-2]
	c.flags["labels"] = ""
	for _, r := range all {
		r.record["info"] = Object{"status": "superseded"}
		if err := c.store(r.record, http.MethodPut); err != nil {
			return err
		}
	}
	before.record["version"], before.record["info"] = last.revision+1, Object{"status": "deployed"}
	return c.store(before.record, http.MethodPost)
}

// workloads are the objects of the charts that are known: what makes Nodes ready, and what makes volumes.
func workloads(chart, namespace string) []Object {
	object := func(kind, namespace, name string, volumes ...any) Object {
		labels := Object{"app": name}
		return Object{
			"apiVersion": "apps/v1", "kind": kind, "metadata": Object{"name": name, "namespace": namespace},
			"spec": Object{"selector": Object{"matchLabels": labels}, "template": Object{
				"metadata": Object{"labels": labels},
				"spec":     Object{"containers": []any{Object{"name": "main", "image": "registry.example.com/" + name}}, "volumes": volumes},
			}},
		}
	}
	cni := Object{"name": "cni", "hostPath": Object{"path": "/etc/cni/net.d"}}
	switch chart {
	case "cilium":
		return []Object{object("DaemonSet", namespace, "cilium", cni), object("Deployment", namespace, "cilium-operator")}
	case "tigera-operator":
		return []Object{
			object("Deployment", namespace, "tigera-operator"),
			{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": "calico-system"}},
			object("DaemonSet", "calico-system", "calico-node", cni),
		}
	case "flannel":
		return []Object{object("DaemonSet", namespace, "kube-flannel-ds", cni)}
	case "aws-cloud-controller-manager":
		return []Object{object("DaemonSet", namespace, "aws-cloud-controller-manager")}
	case "karpenter":
		return []Object{object("Deployment", namespace, "karpenter")}
	case "aws-ebs-csi-driver":
		return []Object{object("Deployment", namespace, "ebs-csi-controller"), object("DaemonSet", namespace, "ebs-csi-node")}
	}
	return nil
}

// makeWorkloads makes the workloads of a chart.
func (c *command) makeWorkloads(chart string, values Object) error {
	without, err := c.withoutNetwork(chart, values)
	if err != nil {
		return err
	}
	for _, o := range workloads(chart, c.flags["namespace"]) {
		if without && o["kind"] == "DaemonSet" {
			continue
		}
		place(o, chart, values)
		if err := c.cluster.create(o); err != nil {
			return err
		}
	}
	return nil
}

// withoutNetwork reports whether the pod network of a chart does not start, because its values have other pod addresses than the configuration
// of kubeadm: the operator of Calico then creates no calico-node (https://github.com/tigera/operator/issues/1512), and flannel exits.
func (c *command) withoutNetwork(chart string, values Object) (bool, error) {
	var network []string
	switch chart {
	case "cilium":
		return c.withoutServer(values)
	case "flannel":
		network = []string{"10.244.0.0/16"}
		if given, is := values["podCidr"].(string); is {
			network[0] = given
		}
	case "tigera-operator":
		installation, _ := values["installation"].(Object)
		calico, _ := installation["calicoNetwork"].(Object)
		pools, _ := calico["ipPools"].([]any)
		for _, x := range pools {
			pool, _ := x.(Object)
			network = append(network, fmt.Sprint(pool["cidr"]))
		}
	}
	if len(network) == 0 {
		return false, nil
	}
	var config struct {
		Data struct{ ClusterConfiguration string }
	}
	code, err := c.cluster.do(http.MethodGet, "/api/v1/namespaces/kube-system/configmaps/kubeadm-config", nil, &config)
	if code == http.StatusNotFound {
		return false, nil
	}
	var doc struct{ Networking struct{ PodSubnet string } }
	if err = errors.Join(err, yaml.Unmarshal([]byte(config.Data.ClusterConfiguration), &doc)); err != nil {
		return false, err
	}
	for _, text := range network {
		block, bad := netip.ParsePrefix(text)
		inside := false
		for pods := range strings.SplitSeq(doc.Networking.PodSubnet, ",") {
			p, err := netip.ParsePrefix(strings.TrimSpace(pods))
			inside = inside || err == nil && bad == nil && p.Overlaps(block)
		}
		if !inside {
			return true, nil
		}
	}
	return false, nil
}

// withoutServer reports whether the agents of Cilium do not reach the API server: without kube-proxy, its Service has no address on the Nodes, and
// they need k8sServiceHost and k8sServicePort ("Kubernetes Without kube-proxy", https://docs.cilium.io/en/stable/network/kubernetes/kubeproxy-free/).
func (c *command) withoutServer(values Object) (bool, error) {
	code, err := c.cluster.do(http.MethodGet, "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy", nil, nil)
	if code != http.StatusNotFound {
		return false, err
	}
	return c.cluster.server != fmt.Sprintf("https://%v:%v", values["k8sServiceHost"], values["k8sServicePort"]), nil
}

// place sets the nodeSelector and the tolerations of the pods of a chart. Pods of a pod network run on all Nodes; others run where the
// defaults of their chart (values.yaml of aws-cloud-controller-manager 0.0.12 and of aws-ebs-csi-driver) or the values say.
func place(o Object, chart string, values Object) {
	spec, _ := o["spec"].(Object)
	template, _ := spec["template"].(Object)
	pod, _ := template["spec"].(Object)
	if pod == nil {
		return
	}
	const plane = "node-role.kubernetes.io/control-plane"
	pod["tolerations"] = []any{Object{"operator": "Exists"}}
	if chart != "aws-cloud-controller-manager" {
		return
	}
	pod["tolerations"] = []any{
		Object{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}, Object{"key": plane, "effect": "NoSchedule"},
	}
	if given, is := values["tolerations"].([]any); is {
		pod["tolerations"] = given
	}
	selector := Object{plane: ""}
	given, _ := values["nodeSelector"].(Object)
	for k, v := range given {
		if selector[k] = v; v == nil {
			delete(selector, k)
		}
	}
	pod["nodeSelector"] = selector
}

// define makes the CustomResourceDefinitions in the folder crds of a chart, which helm never deletes
// (https://helm.sh/docs/chart_best_practices/custom_resource_definitions).
func (c *command) define(chart string) error {
	if chart != "karpenter" || c.flags["skip-crds"] != "" {
		return nil
	}
	for _, k := range [][3]string{
		{"NodePool", "nodepools", "karpenter.sh"}, {"NodeClaim", "nodeclaims", "karpenter.sh"}, {"EC2NodeClass", "ec2nodeclasses", "karpenter.k8s.aws"},
	} {
		if err := c.cluster.create(Object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": Object{"name": k[1] + "." + k[2]},
			"spec": Object{
				"group": k[2], "scope": "Cluster", "names": Object{"kind": k[0], "plural": k[1], "singular": strings.ToLower(k[0])},
				"versions": []any{Object{
					"name": "v1", "served": true, "storage": true,
					"schema": Object{"openAPIV3Schema": Object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// pack encodes a record as helm does: JSON, gzip, base64; data of a Secret is base64 of that.
func pack(record Object) (string, error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(raw); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(b.Bytes()))), nil
}

func unpack(text string) (record Object, err error) {
	for range 2 {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return record, json.NewDecoder(z).Decode(&record)
}

// cluster sends requests to an API server.
type cluster struct {
	ctx    context.Context //nolint:containedctx // of one command
	server string
	api    http.RoundTripper
}

func nameOf(o Object) string {
	metadata, _ := o["metadata"].(Object)
	name, _ := metadata["name"].(string)
	return name
}

// pathOf returns the path of the list that an object is in.
func pathOf(o Object) string {
	metadata, _ := o["metadata"].(Object)
	switch o["kind"] {
	case "Namespace":
		return "/api/v1/namespaces"
	case "CustomResourceDefinition":
		return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	case "Deployment":
		return fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments", metadata["namespace"])
	}
	return fmt.Sprintf("/apis/apps/v1/namespaces/%s/daemonsets", metadata["namespace"])
}

// create creates an object that may exist.
func (c *cluster) create(o Object) error {
	code, err := c.do(http.MethodPost, pathOf(o), o, nil)
	if err == nil && code >= http.StatusBadRequest && code != http.StatusConflict {
		return fmt.Errorf("create %s %s: %d %s", o["kind"], nameOf(o), code, http.StatusText(code))
	}
	return err
}

func (c *cluster) write(method, path string, o Object) error {
	code, err := c.do(method, path, o, nil)
	if err == nil && code >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %d %s", method, path, code, http.StatusText(code))
	}
	return err
}

// do sends a request, and decodes its answer.
func (c *cluster) do(method, path string, body, into any) (code int, err error) {
	var content io.Reader = http.NoBody
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(c.ctx, method, c.server+path, content)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.api.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(answer.Body)
	if err != nil || into == nil || answer.StatusCode != http.StatusOK {
		return answer.StatusCode, err
	}
	return answer.StatusCode, json.Unmarshal(data, into)
}
