package loader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// builtInGroups are the API groups that every API server serves, apart from those that have been removed
// (https://kubernetes.io/docs/reference/kubernetes-api/).
func builtInGroups() []string {
	return []string{
		"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io",
		"autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions",
		"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
		"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
	}
}

// groupsOfEKS are the API groups of the CustomResourceDefinitions that EKS installs with the VPC CNI and its controllers.
func groupsOfEKS() []string {
	return []string{"crd.k8s.amazonaws.com", "vpcresources.k8s.aws", "networking.k8s.aws"}
}

// checkServed finds objects of add-ons whose kind the API server serves only with a CustomResourceDefinition that none
// of the add-ons brings. Something else may install it, so that is a warning; the manifest of a cluster, passed as an
// add-on, is a mistake.
func (l *loader) checkServed() {
	served := builtInGroups()
	if l.managed {
		served = append(served, groupsOfEKS()...)
	}
	for _, c := range l.cluster.Charts {
		if c.Title == "karpenter" {
			served = append(served, "karpenter.sh", "karpenter.k8s.aws")
		}
	}
	for _, set := range l.cluster.ResourceSets {
		for _, d := range set.Documents {
			if spec, ok := d.Object["spec"].(map[string]any); ok && d.Kind() == "CustomResourceDefinition" {
				served = append(served, manifest.StringField(spec, "group"))
			}
		}
	}
	for _, set := range l.cluster.ResourceSets {
		for _, d := range set.Documents {
			group := d.Group()
			if slices.Contains(served, group) {
				continue
			}
			p := d.At
			if set.Object == nil && (group == "cluster.x-k8s.io" || strings.HasSuffix(group, ".cluster.x-k8s.io")) {
				p.What, p.Fix = d.Title()+" is of Cluster API: the file is no add-on, but the manifest of a cluster", "pass it with -f"
				l.fail(p)
				return
			}
			served = append(served, group) // once for each group
			p.What = fmt.Sprintf("the API server serves the kind %s of %s only with its CustomResourceDefinition, which no add-on brings", d.Kind(), group)
			p.Fix = "add the CustomResourceDefinition, unless something else installs it before"
			l.warn(p)
		}
	}
}
