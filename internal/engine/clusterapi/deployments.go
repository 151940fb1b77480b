package clusterapi

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// addDeployments adds the MachineSet of each MachineDeployment.
func (b *builder) addDeployments() {
	for _, d := range b.m.Deployments {
		owner := b.find("MachineDeployment", d.Object.Name)
		b.add(machineSet(d.Object, b.setName(d)), &Owner{owner.Object, true})
	}
}

// setName is the name of the MachineSet of a deployment. Names of machines begin with it.
func (b *builder) setName(d manifest.Deployment) string {
	for _, have := range b.s.Machines {
		if have.Group != d.Object.Name {
			continue
		}
		if i := strings.LastIndexByte(have.name(), '-'); i > 0 {
			return have.name()[:i]
		}
	}
	return d.Object.Name + "-00000" // it has no machines
}

// setOf returns the MachineSet of a deployment.
func (b *builder) setOf(d manifest.Deployment) (*clusterv1.MachineSet, error) {
	if x := b.find("MachineSet", b.setName(d)); x != nil {
		if set, ok := x.Object.(*clusterv1.MachineSet); ok {
			return set, nil
		}
	}
	return nil, fmt.Errorf("MachineDeployment/%s has no MachineSet", d.Object.Name)
}

// machineSet returns the MachineSet of a deployment. It has the template of the deployment:
// if they differed, the controller would make another MachineSet.
func machineSet(d *clusterv1.MachineDeployment, name string) *clusterv1.MachineSet {
	unique := map[string]string{clusterv1.MachineDeploymentUniqueLabel: name[strings.LastIndexByte(name, '-')+1:]}
	set := &clusterv1.MachineSet{
		ObjectMeta: meta(
			name,
			merged(d.Spec.Template.Labels, unique, map[string]string{clusterv1.ClusterNameLabel: d.Spec.ClusterName, clusterv1.MachineDeploymentNameLabel: d.Name}),
			nil,
		),
		Spec: clusterv1.MachineSetSpec{
			ClusterName: d.Spec.ClusterName, Replicas: d.Spec.Replicas, Template: *d.Spec.Template.DeepCopy(),
			Selector: *d.Spec.Selector.DeepCopy(), Deletion: clusterv1.MachineSetDeletionSpec{Order: d.Spec.Deletion.Order}, MachineNaming: d.Spec.MachineNaming,
		},
	}
	typeMeta(set, clusterv1.GroupVersion, "MachineSet")
	set.Spec.Template.Labels = merged(d.Spec.Template.Labels, unique)
	metav1.AddLabelToSelector(&set.Spec.Selector, clusterv1.MachineDeploymentUniqueLabel, unique[clusterv1.MachineDeploymentUniqueLabel])
	return set
}

// labelValue is a name as the value of a label: a hash, if the name is too long for that.
func labelValue(name string) string { return format.MustFormatValue(name) }
