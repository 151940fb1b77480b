package manifest

import (
	"cmp"
	"slices"
	"strings"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// ResourceSet is a set of objects to apply to the cluster when its API server is
// available: a ClusterResourceSet whose selector matches, or a file from Options. Its
// objects are in the order in which Cluster API applies them: by resource, by key in
// alphabetical order, and within a key by createRank.
type ResourceSet struct {
	Name      string                       // unique
	Origin    string                       // "cluster.yaml:98 ClusterResourceSet/cni", "calico.yaml"
	Object    *addonsv1.ClusterResourceSet // nil for a file
	Reconcile bool                         // update objects that differ; otherwise only create those that are missing
	Network   bool                         // the user has declared that it installs the pod network (--cni)
	Documents []*Document
}

// Document is one object of a ResourceSet.
type Document struct {
	Origin string         // "cluster.yaml:31 ConfigMap/cni data.calico.yaml", "calico.yaml:17"
	Object map[string]any // decoded JSON

	At    Problem             // the position of the object, for problems
	Line  int                 // in the file
	Lines map[string]Position // of the fields of the object, by path
}

// ProblemAt returns a problem of a field, or of its nearest parent that is set. A path may have [name] for .name, as Kubernetes writes it.
func (d *Document) ProblemAt(path, what, fix string) Problem {
	p := d.At
	p.What, p.Fix = what, fix
	for path = regex.Of(`\[([^\]]*[^\]\d][^\]]*)\]`).ReplaceAllString(path, ".$1"); path != ""; path = Parent(path) {
		if at, set := d.Lines[path]; set {
			p.Position = at
			return p
		}
	}
	return p
}

func (d *Document) Kind() string { return StringField(d.Object, "kind") }

// Title identifies the object: "DaemonSet kube-system/calico-node".
func (d *Document) Title() string {
	if ns := d.Metadata("namespace"); ns != "" {
		return d.Kind() + " " + ns + "/" + d.Metadata("name")
	}
	return d.Kind() + " " + d.Metadata("name")
}

func (d *Document) Metadata(name string) string {
	metadata, _ := d.Object["metadata"].(map[string]any)
	return StringField(metadata, name)
}

func (d *Document) Group() string {
	group, _, ok := strings.Cut(StringField(d.Object, "apiVersion"), "/")
	if !ok {
		return ""
	}
	return group
}

// Identity is equal for two documents that describe the same object.
func (d *Document) Identity() string {
	return strings.Join([]string{d.Group(), d.Kind(), cmp.Or(d.Metadata("namespace"), "default"), d.Metadata("name")}, "/")
}

// HasPodNetwork reports whether the cluster gets a pod network: from EKS, unless that is
// disabled, from a ClusterResourceSet, a Helm chart or a file.
func (c *Cluster) HasPodNetwork() bool {
	if c.EKS != nil && c.HasVPCCNI() {
		return true
	}
	for _, s := range c.ResourceSets {
		if s.HasPodNetwork() {
			return true
		}
	}
	return slices.ContainsFunc(c.Charts, func(chart Chart) bool { return chart.HasPodNetwork() })
}

// HasCloudController reports whether a ClusterResourceSet or a file installs the AWS
// cloud controller manager.
func (c *Cluster) HasCloudController() bool {
	for _, s := range c.ResourceSets {
		if HasCloudController(s.Documents) {
			return true
		}
	}
	return slices.ContainsFunc(c.Charts, func(chart Chart) bool { return IsCloudControllerChart(chart.Title) })
}

// AppliesObjects reports whether commands or scripts of the control plane install objects in the cluster, such as a pod network.
func (c *Cluster) AppliesObjects() bool {
	if c.ControlPlane == nil {
		return false
	}
	spec := &c.ControlPlane.Object.Spec.KubeadmConfigSpec
	texts := append(slices.Clone(spec.PreKubeadmCommands), spec.PostKubeadmCommands...)
	for _, f := range spec.Files {
		texts = append(texts, f.Content)
	}
	return slices.ContainsFunc(texts, regex.Of(`\bkubectl\b.*\b(apply|create|replace)\b|\bhelm\b.*\b(install|upgrade)\b|\bcilium\s+install\b`).MatchString)
}

// HasPodNetwork reports whether the set installs the pod network: because the user
// declares it (--cni), or judging by its objects.
func (s *ResourceSet) HasPodNetwork() bool { return s.Network || HasPodNetwork(s.Documents) }

// HasPodNetwork reports whether objects install a pod network: a DaemonSet that mounts
// the CNI directories of the node, or the Installation object of Calico's operator.
func HasPodNetwork(documents []*Document) bool {
	return slices.ContainsFunc(documents, func(d *Document) bool {
		if d.Kind() == "Installation" && d.Group() == "operator.tigera.io" {
			return true
		}
		return d.Kind() == "DaemonSet" && slices.ContainsFunc(d.list("spec.template.spec.volumes"), func(volume any) bool {
			path, _ := ValueAt(volume, "hostPath.path").(string)
			path = strings.TrimSuffix(path, "/") + "/"
			return strings.HasPrefix(path, "/etc/cni/") || strings.HasPrefix(path, "/opt/cni/")
		})
	})
}

// HasCloudController reports whether objects install the AWS cloud controller manager.
func HasCloudController(documents []*Document) bool {
	return slices.ContainsFunc(documents, func(d *Document) bool { return d.cloudControllerImage() != "" })
}

// ExternalCloudProvider reports whether the kubelets of a configuration leave it to a cloud
// controller manager to initialize their Nodes.
func ExternalCloudProvider(spec *bootstrapv1.KubeadmConfigSpec) bool {
	is := func(a bootstrapv1.Arg) bool {
		return a.Name == "cloud-provider" && a.Value != nil && *a.Value == "external"
	}
	return slices.ContainsFunc(KubeletArguments(spec.InitConfiguration.NodeRegistration.KubeletExtraArgs), is) ||
		slices.ContainsFunc(KubeletArguments(spec.JoinConfiguration.NodeRegistration.KubeletExtraArgs), is)
}

func (d *Document) list(path string) []any {
	list, _ := ValueAt(d.Object, path).([]any)
	return list
}
