package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/suggest"
)

// podsOf is an object that creates pods.
type podsOf struct {
	object

	namespace string
	at        string // the path of the specification of its pods
	pod       corev1.PodTemplateSpec
}

// workloads returns the objects that create pods, without those with zero replicas.
func (c *checks) workloads(documents []*manifest.Document) (all []podsOf) {
	for _, d := range documents {
		path, has := map[string]string{
			"/Pod": "", "/ReplicationController": "spec.template", "apps/Deployment": "spec.template", "apps/DaemonSet": "spec.template",
			"apps/StatefulSet": "spec.template", "apps/ReplicaSet": "spec.template", "batch/Job": "spec.template", "batch/CronJob": "spec.jobTemplate.spec.template",
		}[d.Group()+"/"+d.Kind()]
		at, is := d.Object, true
		if path != "" {
			at, is = manifest.ValueAt(d.Object, path).(map[string]any)
		}
		none := fmt.Sprint(manifest.ValueAt(d.Object, "spec.replicas")) == "0"
		w := podsOf{object{c, d}, namespaceOf(d), strings.TrimPrefix(path+".spec.", "."), corev1.PodTemplateSpec{}}
		if has && is && !none &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": at["metadata"], "spec": at["spec"]}, &w.pod) == nil {
			all = append(all, w)
		}
	}
	return all
}

// namespaceOf returns the namespace of an object of a namespaced kind.
func namespaceOf(d *manifest.Document) string {
	return cmp.Or(d.Metadata("namespace"), corev1.NamespaceDefault)
}

// refusePods reports that the API server refuses the pods of the object.
func (w podsOf) refusePods(report func(manifest.Problem), what, fix string) {
	refused := "the pods of " + w.Title()
	if w.Kind() == "Pod" {
		refused = w.Title()
	}
	report(w.problem(fmt.Sprintf("the API server refuses %s: %s", refused, what), fix))
}

// checkPods checks what the API server refuses only when pods are created: service account, priority, runtime class and security (the
// admission plugins ServiceAccount, Priority, RuntimeClass and PodSecurity, "Admission Control in Kubernetes"). If an object is only missing
// in the manifest, it is a warning, because something else may create it.
func (c *checks) checkPods(workloads []podsOf, made madeObjects) {
	for _, w := range workloads {
		c.checkAccount(w, made)
		c.checkPriority(w, made)
		c.checkRuntime(w, made)
		c.checkSecurity(w, made)
		c.checkStart(w)
	}
	c.checkSystemNamespace(made)
	for _, d := range made.second {
		object{c, d}.refuse(
			fmt.Sprintf("pods that name none have the PriorityClass %s already", made.usual.Name), "set globalDefault: true for one of them",
		)
	}
}

// madeObjects are the objects of the manifest to which pods refer.
type madeObjects struct {
	accounts   map[string]bool // NAMESPACE/NAME
	priorities map[string]schedulingv1.PriorityClass
	usual      *schedulingv1.PriorityClass // of pods that name none
	second     []*manifest.Document        // others with globalDefault
	runtimes   map[string]nodev1.RuntimeClass
	namespaces map[string]*manifest.Document
	core       map[string]*manifest.Document // objects of the core group, by KIND NAMESPACE/NAME
	told       map[string]bool               // what is missing, and reported
}

// made returns the objects to which pods refer: those of the manifest, and those that kubeadm, EKS and every API server create.
func (c *checks) made() madeObjects {
	m := madeObjects{
		accounts:   map[string]bool{"kube-system/kube-proxy": true, "kube-system/coredns": true},
		priorities: map[string]schedulingv1.PriorityClass{},
		runtimes:   map[string]nodev1.RuntimeClass{},
		namespaces: map[string]*manifest.Document{},
		core:       map[string]*manifest.Document{},
		told:       map[string]bool{},
	}
	for name, number := range map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000} {
		m.priorities[name] = schedulingv1.PriorityClass{Value: number}
	}
	if c.managed {
		m.accounts["kube-system/aws-node"] = true
	}
	for _, set := range c.cluster.ResourceSets {
		for _, d := range set.Documents {
			m.add(set.Reconcile, d)
		}
	}
	return m
}

func (m *madeObjects) add(reconcile bool, d *manifest.Document) {
	name := d.Metadata("name")
	if d.Group() == "" {
		m.core[d.Kind()+" "+namespaceOf(d)+"/"+name] = d
	}
	switch d.Group() + "/" + d.Kind() {
	case "/ServiceAccount":
		m.accounts[namespaceOf(d)+"/"+name] = true
	case "/Namespace":
		if reconcile || !slices.Contains(firstNamespaces(), name) { // a set that is applied once changes no object that is there before
			m.namespaces[name] = d
		}
	case "scheduling.k8s.io/PriorityClass":
		var o schedulingv1.PriorityClass
		if runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &o) == nil {
			switch m.priorities[name] = o; {
			case o.GlobalDefault && m.usual == nil:
				m.usual = &o
			case o.GlobalDefault:
				m.second = append(m.second, d)
			}
		}
	case "node.k8s.io/RuntimeClass":
		var o nodev1.RuntimeClass
		if runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &o) == nil {
			m.runtimes[name] = o
		}
	}
}

// firstNamespaces are the namespaces that every cluster has.
func firstNamespaces() []string {
	return []string{corev1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
}

// madeElsewhere reports whether Helm charts or add-ons of EKS may create more objects.
func (c *checks) madeElsewhere() bool {
	return len(c.cluster.Charts) > 0 || c.cluster.EKS != nil && c.cluster.EKS.ControlPlane.Spec.Addons != nil
}

// admits reports whether an admission plugin that is on by default is certainly on, with its default settings.
func (c *checks) admits(plugin string) bool {
	configs := []*bootstrapv1.ClusterConfiguration{}
	if p := c.cluster.ControlPlane; p != nil {
		configs = append(configs, &p.Object.Spec.KubeadmConfigSpec.ClusterConfiguration)
	}
	for _, m := range c.cluster.Machines {
		if m.ControlPlane && m.Bootstrap != nil {
			configs = append(configs, &m.Bootstrap.Spec.ClusterConfiguration)
		}
	}
	return !slices.ContainsFunc(configs, func(config *bootstrapv1.ClusterConfiguration) bool {
		return slices.ContainsFunc(config.APIServer.ExtraArgs, func(a bootstrapv1.Arg) bool {
			return a.Name == "disable-admission-plugins" && slices.Contains(strings.Split(manifest.Deref(a.Value), ","), plugin) ||
				a.Name == "admission-control-config-file"
		})
	})
}

// checkAccount warns about a service account that is not in the manifest.
func (c *checks) checkAccount(w podsOf, made madeObjects) {
	name := cmp.Or(w.pod.Spec.ServiceAccountName, w.pod.Spec.DeprecatedServiceAccount, "default")
	key := w.namespace + "/" + name
	if name == "default" || made.accounts[key] || c.isForeign(w.namespace, made) {
		return
	}
	var near []string
	for _, other := range slices.Sorted(maps.Keys(made.accounts)) {
		if n, is := strings.CutPrefix(other, w.namespace+"/"); is {
			near = append(near, n)
		}
	}
	c.missing(w, made, "ServiceAccount", key, fmt.Sprintf("%sserviceAccountName: nothing in the manifest makes the ServiceAccount %s", w.at, key), name, near)
}

// missing warns about an object to which pods refer and that is not in the manifest. It warns once for each object.
func (c *checks) missing(w podsOf, made madeObjects, kind, key, what, name string, names []string) {
	if made.told[kind+key] {
		return
	}
	made.told[kind+key] = true
	fix := "bring the " + kind + " too"
	if near := suggest.Nearest(name, names); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	w.refusePods(c.warn, what, fix)
}

// checkPriority checks the priority of pods (admitPod in plugin/pkg/admission/priority of Kubernetes).
func (c *checks) checkPriority(w podsOf, made madeObjects) {
	if !c.admits("Priority") {
		return
	}
	name, class := w.pod.Spec.PriorityClassName, schedulingv1.PriorityClass{}
	switch known, has := made.priorities[name]; {
	case has:
		class = known
	case c.madeElsewhere():
		return
	case name != "":
		names := slices.Sorted(maps.Keys(made.priorities))
		c.missing(w, made, "PriorityClass", name, fmt.Sprintf("%spriorityClassName: nothing in the manifest makes the PriorityClass %s", w.at, name), name, names)
		return
	case made.usual != nil:
		class = *made.usual
	}
	if n := w.pod.Spec.Priority; n != nil && *n != class.Value {
		w.refusePods(c.fail, fmt.Sprintf("%spriority is %d, and that of its PriorityClass is %d", w.at, *n, class.Value), "remove it: the API server sets it")
	}
	has := corev1.PreemptLowerPriority
	if class.PreemptionPolicy != nil {
		has = *class.PreemptionPolicy
	}
	if given := w.pod.Spec.PreemptionPolicy; given != nil && *given != has {
		w.refusePods(c.fail, fmt.Sprintf("%spreemptionPolicy is %s, and that of its PriorityClass is %s", w.at, *given, has), "remove it: the API server sets it")
	}
}

// checkRuntime checks the runtime of pods (plugin/pkg/admission/runtimeclass of Kubernetes).
func (c *checks) checkRuntime(w podsOf, made madeObjects) {
	if !c.admits("RuntimeClass") {
		return
	}
	name, class := manifest.Deref(w.pod.Spec.RuntimeClassName), nodev1.RuntimeClass{}
	switch known, has := made.runtimes[name]; {
	case has:
		class = known
	case name != "" && c.madeElsewhere():
		return
	case name != "":
		names := slices.Sorted(maps.Keys(made.runtimes))
		c.missing(w, made, "RuntimeClass", name, fmt.Sprintf("%sruntimeClassName: nothing in the manifest makes the RuntimeClass %s", w.at, name), name, names)
		return
	}
	if given := w.pod.Spec.Overhead; len(given) > 0 && (class.Overhead == nil || !apiequality.Semantic.DeepEqual(given, class.Overhead.PodFixed)) {
		w.refusePods(c.fail, w.at+"overhead is not that of its RuntimeClass", "remove it: the API server sets it")
	}
	if class.Scheduling == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		if given, set := w.pod.Spec.NodeSelector[key]; set && given != class.Scheduling.NodeSelector[key] {
			w.refusePods(c.fail, fmt.Sprintf(
				"%snodeSelector has %s=%s, and the RuntimeClass %s has %[2]s=%[5]s", w.at, key, given, name, class.Scheduling.NodeSelector[key],
			), "change one of them")
		}
	}
}

// enforced returns the Pod Security Standard that a Namespace of the manifest enforces; false if it enforces none.
func (c *checks) enforced(namespace *manifest.Document) (podsecurity.LevelVersion, bool) {
	lowest := podsecurity.LevelVersion{Level: podsecurity.LevelPrivileged, Version: podsecurity.LatestVersion()}
	if namespace == nil || !c.admits("PodSecurity") {
		return lowest, false
	}
	labels := map[string]string{}
	given, _ := manifest.ValueAt(namespace.Object, "metadata.labels").(map[string]any)
	for key := range given {
		labels[key] = manifest.StringField(given, key)
	}
	wanted, wrong := podsecurity.PolicyToEvaluate(labels, podsecurity.Policy{Enforce: lowest, Audit: lowest, Warn: lowest})
	return wanted.Enforce, len(wrong) == 0 && wanted.Enforce.Level != podsecurity.LevelPrivileged
}

// checkSecurity checks pods against the Pod Security Standard of their namespace, with the code of the API server
// (https://kubernetes.io/docs/concepts/security/pod-security-admission/). It is a warning if a mutating webhook may make the pods conform.
func (c *checks) checkSecurity(w podsOf, made madeObjects) {
	level, is := c.enforced(made.namespaces[w.namespace])
	if !is {
		return
	}
	var own *podsecurity.Version
	if minor := c.versionOf("").minor; minor > 0 {
		own = new(podsecurity.MajorMinorVersion(1, int(minor))) //nolint:gosec // a small number
	}
	with, err := policy.NewEvaluator(policy.DefaultChecks(), own)
	if err != nil {
		return
	}
	result := policy.AggregateCheckResults(with.EvaluatePod(level, &w.pod.ObjectMeta, &w.pod.Spec))
	if result.Allowed {
		return
	}
	report := c.fail
	if c.madeElsewhere() || c.hasObject(func(d *manifest.Document) bool { return strings.HasPrefix(d.Kind(), "Mutating") }) {
		report = c.warn
	}
	w.refusePods(
		report,
		fmt.Sprintf("the Namespace %s enforces the Pod Security Standard %s: %s", w.namespace, level.Level, result.ForbiddenDetail()),
		"change the pods, or the label "+podsecurity.EnforceLevelLabel+" of the Namespace",
	)
}

// checkSystemNamespace refuses a Pod Security Standard for kube-system, because kube-proxy and the static pods of the control plane are
// privileged.
func (c *checks) checkSystemNamespace(made madeObjects) {
	d := made.namespaces[metav1.NamespaceSystem]
	level, is := c.enforced(d)
	if !is {
		return
	}
	report := c.fail
	if c.managed { // which may have no kube-proxy
		report = c.warn
	}
	report(object{c, d}.problem(
		fmt.Sprintf(
			"the Namespace kube-system enforces the Pod Security Standard %s: the API server refuses the pods of kube-proxy, which are privileged",
			level.Level,
		),
		"set the label "+podsecurity.EnforceLevelLabel+" to privileged",
	))
}
