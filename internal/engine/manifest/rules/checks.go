// Package rules has the rules for a manifest that the schemas and webhooks of Cluster API do not have: those that AWS,
// Kubernetes, kubeadm and CAPA's controllers apply only while they create the cluster. Each file is about one kind of
// field, and says where its rules come from; docs/aws.md lists them. The simulated AWS has the same rules from the
// same sources, and shares no code with this package.
package rules

import (
	"slices"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// checks applies the rules to one manifest.
type checks struct {
	cluster  *manifest.Cluster
	objects  map[string]*manifest.Entry // by "Kind/name"
	infra    *manifest.Entry            // the object that describes the infrastructure; nil if it is invalid
	managed  bool                       // EKS runs the control plane
	problems []manifest.Problem
	warnings []manifest.Problem
}

// Check applies the rules that the objects alone do not show to be broken: those that AWS, Kubernetes and CAPA's
// controllers would apply only while they create the cluster. The entries are those of the input.
func Check(cluster *manifest.Cluster, entries []*manifest.Entry) (problems, warnings []manifest.Problem) {
	c := &checks{cluster: cluster, objects: map[string]*manifest.Entry{}, managed: cluster.IsManaged()}
	for _, o := range entries {
		switch title := o.Kind + "/" + o.Name; o.Namespace {
		case cluster.Namespace:
			c.objects[title] = o
		case "":
			if c.objects[title] == nil {
				c.objects[title] = o
			}
		}
	}
	if cluster.Infra != nil {
		c.infra = c.objects[cluster.InfraObject()]
	}
	c.checkWhole(c.lookup(manifest.KindCluster, cluster.Name))
	return c.problems, c.warnings
}

func (c *checks) fail(p manifest.Problem) { c.problems = append(c.problems, p) }

// failFirst reports a problem, unless there is one of the same field: a value that is none at all has no consequences.
func (c *checks) failFirst(p manifest.Problem) {
	if !slices.ContainsFunc(c.problems, func(q manifest.Problem) bool { return q.Object == p.Object && q.Path == p.Path }) {
		c.fail(p)
	}
}

func (c *checks) warn(p manifest.Problem) { c.warnings = append(c.warnings, p) }

// refuse reports what makes a run be refused before its first write, when the account shows the
// same: for "validate", it is a problem of the manifest.
func (c *checks) refuse(p manifest.Problem) {
	p.Refused = true
	c.warn(p)
}

// lookup returns the object with that kind and name in the namespace of the Cluster.
func (c *checks) lookup(kind, name string) *manifest.Entry { return c.objects[kind+"/"+name] }
