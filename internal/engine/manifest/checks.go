package manifest

// checks applies the rules to one manifest.
type checks struct {
	cluster  *Cluster
	objects  map[string]*object // by "Kind/name"
	infra    *object            // the object that describes the infrastructure; nil if it is invalid
	managed  bool               // EKS runs the control plane
	problems []Problem
	warnings []Problem
}

// Check applies the rules that the objects alone do not show to be broken: those that AWS, Kubernetes and CAPA's
// controllers would apply only while they create the cluster. The entries are those of the input.
func Check(cluster *Cluster, entries []*object) (problems, warnings []Problem) {
	c := &checks{cluster: cluster, objects: map[string]*object{}, managed: cluster.IsManaged()}
	for _, o := range entries {
		switch title := o.kind + "/" + o.name; o.namespace {
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
	c.checkWhole(c.lookup(kindCluster, cluster.Name))
	return c.problems, c.warnings
}

func (c *checks) fail(p Problem) { c.problems = append(c.problems, p) }

func (c *checks) warn(p Problem) { c.warnings = append(c.warnings, p) }

// refuse reports what makes a run be refused before its first write, when the account shows the
// same: for "validate", it is a problem of the manifest.
func (c *checks) refuse(p Problem) {
	p.Refused = true
	c.warn(p)
}

// lookup returns the object with that kind and name in the namespace of the Cluster.
func (c *checks) lookup(kind, name string) *object { return c.objects[kind+"/"+name] }
