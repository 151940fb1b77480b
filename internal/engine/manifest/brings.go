package manifest

import (
	"slices"
	"strings"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

// ResourceSet is what is brought into the cluster once its API server answers:
// a ClusterResourceSet whose selector matches, or a file that the user has
// named. Its objects are in the order in which Cluster API applies them:
// resource by resource, key by key in alphabetical order, and within a key what
// others need first.
type ResourceSet struct {
	Name      string                       // one of its own among all
	Origin    string                       // "cluster.yaml:98 ClusterResourceSet/cni", "calico.yaml"
	Object    *addonsv1.ClusterResourceSet // nil for a file
	Reconcile bool                         // keep the objects as they are written; else make those that are missing
	Network   bool                         // the user says that it brings the pod network
	Documents []*Document
}

// Document is one object of a ResourceSet.
type Document struct {
	Origin string         // "cluster.yaml:31 ConfigMap/cni data.calico.yaml", "calico.yaml:17"
	Object map[string]any // as JSON has it
}

// Kind is the kind of the object.
func (d *Document) Kind() string { return stringField(d.Object, "kind") }

// Title names the object: "DaemonSet kube-system/calico-node".
func (d *Document) Title() string {
	if ns := d.metadata("namespace"); ns != "" {
		return d.Kind() + " " + ns + "/" + d.metadata("name")
	}
	return d.Kind() + " " + d.metadata("name")
}

func (d *Document) metadata(name string) string {
	metadata, _ := d.Object["metadata"].(map[string]any)
	return stringField(metadata, name)
}

func (d *Document) group() string {
	group, _, ok := strings.Cut(stringField(d.Object, "apiVersion"), "/")
	if !ok {
		return ""
	}
	return group
}

// identity is the same for two documents that are about the same object.
func (d *Document) identity() string {
	return strings.Join([]string{d.group(), d.Kind(), orElse(d.metadata("namespace"), "default"), d.metadata("name")}, "/")
}

// BringsNetwork reports whether nodes get a pod network without further ado:
// EKS brings one, unless it is told not to, and so may a ClusterResourceSet or a
// file.
func (c *Cluster) BringsNetwork() bool {
	if c.EKS != nil {
		spec := c.EKS.ControlPlane.Spec
		if spec.BootstrapSelfManagedAddons && !spec.VpcCni.Disable {
			return true
		}
		for i := 0; spec.Addons != nil && i < len(*spec.Addons); i++ {
			if (*spec.Addons)[i].Name == "vpc-cni" {
				return true
			}
		}
	}
	for _, s := range c.ResourceSets {
		if s.BringsNetwork() {
			return true
		}
	}
	return false
}

// BringsCloudController reports whether a ClusterResourceSet or a file brings
// the AWS cloud controller manager.
func (c *Cluster) BringsCloudController() bool {
	for _, s := range c.ResourceSets {
		if BringsCloudController(s.Documents) {
			return true
		}
	}
	return false
}

// BringsNetwork reports whether nodes cannot become ready without it: because
// the user says so, or by what its objects are.
func (s *ResourceSet) BringsNetwork() bool { return s.Network || BringsNetwork(s.Documents) }

// BringsNetwork reports whether objects bring a pod network: a DaemonSet that
// lays down a CNI plugin or its configuration on every node, or what tells
// Calico's operator to make one.
func BringsNetwork(documents []*Document) bool {
	return slices.ContainsFunc(documents, func(d *Document) bool {
		if d.Kind() == "Installation" && d.group() == "operator.tigera.io" {
			return true
		}
		return d.Kind() == "DaemonSet" && slices.ContainsFunc(d.list("spec.template.spec.volumes"), func(volume any) bool {
			path, _ := at(volume, "hostPath.path").(string)
			path = strings.TrimSuffix(path, "/") + "/"
			return strings.HasPrefix(path, "/etc/cni/") || strings.HasPrefix(path, "/opt/cni/")
		})
	})
}

// BringsCloudController reports whether objects bring the AWS cloud controller
// manager, which tells nodes which machines they are: by its image, or by what
// it is told.
func BringsCloudController(documents []*Document) bool {
	return slices.ContainsFunc(documents, func(d *Document) bool {
		return slices.ContainsFunc(d.list("spec.template.spec.containers"), func(container any) bool {
			image, _ := at(container, "image").(string)
			args, _ := at(container, "args").([]any)
			command, _ := at(container, "command").([]any)
			return strings.Contains(image, "cloud-controller-manager") &&
				(strings.Contains(image, "aws") || slices.Contains(slices.Concat(command, args), any("--cloud-provider=aws")))
		})
	})
}

func (d *Document) list(path string) []any {
	list, _ := at(d.Object, path).([]any)
	return list
}
