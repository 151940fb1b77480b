package hooks

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
)

// The time in which a machine has to become a Node (MachineHealthCheck,
// checks.nodeStartupTimeoutSeconds): the default, and the least.
const (
	nodeStartupTimeout      = 600
	leastNodeStartupTimeout = 30
)

// DefaultHealthCheck sets the defaults of the MachineHealthCheck webhook.
func DefaultHealthCheck(c *clusterv1.MachineHealthCheck) {
	set(&c.Labels, clusterv1.ClusterNameLabel, c.Spec.ClusterName)
	if c.Spec.Checks.NodeStartupTimeoutSeconds == nil {
		timeout := int32(nodeStartupTimeout)
		c.Spec.Checks.NodeStartupTimeoutSeconds = &timeout
	}
}

// ValidateHealthCheck applies the rules of the MachineHealthCheck webhook.
func ValidateHealthCheck(c *clusterv1.MachineHealthCheck) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	switch selector, err := metav1.LabelSelectorAsSelector(&c.Spec.Selector); {
	case err != nil:
		errs = append(errs, field.Invalid(spec.Child("selector"), "", err.Error()))
	case selector.Empty():
		errs = append(errs, field.Required(spec.Child("selector"), "it must not be empty"))
	}
	if name, ok := c.Spec.Selector.MatchLabels[clusterv1.ClusterNameLabel]; ok && name != c.Spec.ClusterName {
		errs = append(errs, field.Invalid(spec.Child("selector"), name, "selects machines of another cluster than spec.clusterName"))
	}
	if t := *c.Spec.Checks.NodeStartupTimeoutSeconds; t != 0 && t < leastNodeStartupTimeout {
		errs = append(errs, field.Invalid(spec.Child("checks", "nodeStartupTimeoutSeconds"), t, "must be at least 30 seconds, or 0 for no limit"))
	}
	trigger := spec.Child("remediation", "triggerIf")
	if most := c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo; most != nil {
		if _, err := intstr.GetScaledValueFromIntOrPercent(most, 100, false); err != nil {
			errs = append(errs, field.Invalid(trigger.Child("unhealthyLessThanOrEqualTo"), most.String(), "must be a number or a percentage"))
		}
	}
	if text := c.Spec.Remediation.TriggerIf.UnhealthyInRange; text != "" {
		if _, _, err := manifest.UnhealthyRange(text); err != nil {
			errs = append(errs, field.Invalid(trigger.Child("unhealthyInRange"), text, err.Error()))
		}
	}
	return errs
}
