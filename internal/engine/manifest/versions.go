package manifest

// VersionField is a field with the Kubernetes version of a control plane or of machines.
type VersionField struct {
	Object, Path string // as for At
	Version      string // "v1.34.2"; for EKS it may be "v1.34"
}

// VersionFields lists the fields that set the Kubernetes version, those of the control plane
// first. In a topology it is one field. Fields that are not set are not in the list.
func (c *Cluster) VersionFields() (all []VersionField) {
	if cluster := KindCluster + "/" + c.Name; c.Sets(cluster, "spec.topology.version") {
		return []VersionField{{cluster, "spec.topology.version", c.Version}}
	}
	add := func(object, path, version string) {
		if version != "" {
			all = append(all, VersionField{object, path, version})
		}
	}
	const inTemplate = "spec.template.spec.version"
	switch {
	case c.EKS != nil:
		add(c.InfraObject(), "spec.version", c.Version)
	case c.ControlPlane != nil:
		add(KindControlPlane+"/"+c.ControlPlane.Object.Name, "spec.version", c.Version)
	}
	for _, m := range c.Machines {
		add(KindMachine+"/"+m.Object.Name, "spec.version", m.Object.Spec.Version)
	}
	for _, d := range c.Deployments {
		add(KindDeployment+"/"+d.Object.Name, inTemplate, d.Object.Spec.Template.Spec.Version)
	}
	for _, p := range c.Pools {
		add(KindPool+"/"+p.Object.Name, inTemplate, p.Object.Spec.Template.Spec.Version)
	}
	return all
}
