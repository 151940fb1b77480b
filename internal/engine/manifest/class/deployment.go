package class

import (
	"cmp"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// deployment is a MachineDeployment with its copies of the templates.
type deployment struct {
	Object
	topology                  clusterv1.MachineDeploymentTopology
	typed                     *clusterv1.MachineDeployment
	bootstrap, infrastructure *item
}

// classOf returns a MachineDeployment class and its index.
func (e *expander) classOf(name string) (*clusterv1.MachineDeploymentClass, int) {
	for i := range e.class.Spec.Workers.MachineDeployments {
		if c := &e.class.Spec.Workers.MachineDeployments[i]; c.Class == name {
			return c, i
		}
	}
	return nil, -1
}

// deployment creates the MachineDeployment for one entry of the topology.
func (e *expander) deployment(n int) {
	topology := e.topology.Workers.MachineDeployments[n]
	class, c := e.classOf(topology.Class)
	inTopology := e.inCluster(indexed("workers.machineDeployments", n))
	inClass := e.inClass(indexed("workers.machineDeployments", c))
	labels := map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: topology.Name}
	d := &deployment{topology: topology}
	plain := e.cluster.Name + "-" + topology.Name
	d.bootstrap = e.createObject(e.template(class.Bootstrap.TemplateRef), false,
		e.shortened(plain, class.Bootstrap.TemplateRef.Kind, topology.Name), labels, nil, inTopology)
	d.infrastructure = e.createObject(e.template(class.Infrastructure.TemplateRef), false,
		e.shortened(plain, class.Infrastructure.TemplateRef.Kind, topology.Name), labels, nil, inTopology)
	name := e.name("machineDeployment", class.Naming.Template, plain, topology.Name, inClass.Below("naming.template"))
	d.typed = e.typedDeployment(d, class, name)
	if err := d.untype(inTopology, inClass, e); err != nil {
		e.fail(inTopology, err.Error(), "")
	}
	e.deployments = append(e.deployments, d)
}

func (e *expander) typedDeployment(d *deployment, class *clusterv1.MachineDeploymentClass, name string) *clusterv1.MachineDeployment {
	t := d.topology
	labels := merged(map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: t.Name}, e.owned(), t.Metadata.Labels, class.Metadata.Labels)
	annotations := merged(t.Metadata.Annotations, class.Metadata.Annotations)
	delete(annotations, clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation)
	delete(annotations, clusterv1.ClusterTopologyDeferUpgradeAnnotation)
	spec := clusterv1.MachineDeploymentSpec{
		ClusterName: e.cluster.Name,
		Replicas:    t.Replicas,
		Rollout:     rollout(&t, class),
		Deletion:    clusterv1.MachineDeploymentDeletionSpec{Order: cmp.Or(t.Deletion.Order, class.Deletion.Order)},
		Remediation: clusterv1.MachineDeploymentRemediationSpec{
			MaxInFlight: cmp.Or(t.HealthCheck.Remediation.MaxInFlight, class.HealthCheck.Remediation.MaxInFlight),
		},
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{
			clusterv1.ClusterNameLabel: e.cluster.Name, clusterv1.ClusterTopologyOwnedLabel: "",
			clusterv1.ClusterTopologyMachineDeploymentNameLabel: t.Name,
		}},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: labels, Annotations: annotations},
			Spec: clusterv1.MachineSpec{
				ClusterName:       e.cluster.Name,
				Version:           e.topology.Version,
				Bootstrap:         clusterv1.Bootstrap{ConfigRef: contract(&d.bootstrap.Object)},
				InfrastructureRef: contract(&d.infrastructure.Object),
				FailureDomain:     cmp.Or(t.FailureDomain, class.FailureDomain),
				Deletion: clusterv1.MachineDeletionSpec{
					NodeDrainTimeoutSeconds:        cmp.Or(t.Deletion.NodeDrainTimeoutSeconds, class.Deletion.NodeDrainTimeoutSeconds),
					NodeVolumeDetachTimeoutSeconds: cmp.Or(t.Deletion.NodeVolumeDetachTimeoutSeconds, class.Deletion.NodeVolumeDetachTimeoutSeconds),
					NodeDeletionTimeoutSeconds:     cmp.Or(t.Deletion.NodeDeletionTimeoutSeconds, class.Deletion.NodeDeletionTimeoutSeconds),
				},
				MinReadySeconds: cmp.Or(t.MinReadySeconds, class.MinReadySeconds),
				ReadinessGates:  inherited(t.ReadinessGates, class.ReadinessGates),
				Taints:          inherited(t.Taints, class.Taints),
			},
		},
	}
	return &clusterv1.MachineDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineDeployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.cluster.Namespace, Labels: labels, Annotations: annotations},
		Spec:       spec,
	}
}

// inherited returns the list of the topology, or that of the class if the topology has
// none. An empty list counts as a list.
func inherited[T any](own, class []T) []T {
	if own != nil {
		return own
	}
	return class
}

// rollout returns the rollout of the topology, or that of the class; the two are not
// merged.
func rollout(t *clusterv1.MachineDeploymentTopology, class *clusterv1.MachineDeploymentClass) clusterv1.MachineDeploymentRolloutSpec {
	var r clusterv1.MachineDeploymentRolloutSpec
	if !reflect.DeepEqual(t.Rollout, clusterv1.MachineDeploymentTopologyRolloutSpec{}) {
		r.After = t.Rollout.After
		r.Strategy.Type = t.Rollout.Strategy.Type
		r.Strategy.RollingUpdate.MaxSurge = t.Rollout.Strategy.RollingUpdate.MaxSurge
		r.Strategy.RollingUpdate.MaxUnavailable = t.Rollout.Strategy.RollingUpdate.MaxUnavailable
		return r
	}
	r.Strategy.Type = class.Rollout.Strategy.Type
	r.Strategy.RollingUpdate.MaxSurge = class.Rollout.Strategy.RollingUpdate.MaxSurge
	r.Strategy.RollingUpdate.MaxUnavailable = class.Rollout.Strategy.RollingUpdate.MaxUnavailable
	return r
}

func contract(o *Object) clusterv1.ContractVersionedObjectReference {
	apiVersion, _ := o.Value["apiVersion"].(string)
	kind, _ := o.Value["kind"].(string)
	name, _ := valueAt(o.Value, "metadata", "name").(string)
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return clusterv1.ContractVersionedObjectReference{APIGroup: gv.Group, Kind: kind, Name: name}
}

// untype converts the typed MachineDeployment to JSON values, and records where each
// value comes from: the topology or the class.
func (d *deployment) untype(inTopology, inClass Place, e *expander) error {
	m, err := toUntyped(d.typed)
	if err != nil {
		return err
	}
	delete(m, "status")
	d.Object = Object{Value: m, Places: map[string]Place{}}
	t := d.topology
	either := func(set bool, path string) Place {
		if set {
			return inTopology.Below(path)
		}
		return inClass.Below(path)
	}
	rows := []struct {
		path  string
		place Place
	}{
		{"spec.replicas", inTopology.Below("replicas")},
		{"spec.rollout", either(!reflect.DeepEqual(t.Rollout, clusterv1.MachineDeploymentTopologyRolloutSpec{}), "rollout")},
		{"spec.deletion", either(t.Deletion.Order != "", "deletion")},
		{"spec.remediation", either(t.HealthCheck.Remediation.MaxInFlight != nil, "healthCheck")},
		{"spec.template.spec.version", e.inCluster("version")},
		{"spec.template.spec.failureDomain", either(t.FailureDomain != "", "failureDomain")},
		{"spec.template.spec.deletion", either(!reflect.DeepEqual(t.Deletion, clusterv1.MachineDeploymentTopologyMachineDeletionSpec{}), "deletion")},
		{"spec.template.spec.minReadySeconds", either(t.MinReadySeconds != nil, "minReadySeconds")},
		{"spec.template.spec.readinessGates", either(t.ReadinessGates != nil, "readinessGates")},
		{"spec.template.spec.taints", either(t.Taints != nil, "taints")},
		{"spec.template.spec.bootstrap", inClass.Below("bootstrap")},
		{"spec.template.spec.infrastructureRef", inClass.Below("infrastructure")},
	}
	d.recordPlaces(m, "", func(path string) Place {
		for _, r := range rows {
			if isBelow(path, r.path) {
				return r.place.Below(strings.TrimPrefix(strings.TrimPrefix(path, r.path), "."))
			}
		}
		return inTopology
	})
	return nil
}
