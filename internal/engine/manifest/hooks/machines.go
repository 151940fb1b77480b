package hooks

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// nodeDeletionTimeout is the default of Machine.spec.deletion.nodeDeletionTimeoutSeconds.
const nodeDeletionTimeout = 10

// ValidateCluster applies the rules of the Cluster webhook.
func ValidateCluster(c *clusterv1.Cluster) field.ErrorList {
	errs := labelValue(c.Name, field.NewPath("metadata", "name"))
	spec := field.NewPath("spec")
	if c.Spec.Topology.IsDefined() {
		return errs // the topology could not be expanded, which was reported
	}
	if !c.Spec.ControlPlaneRef.IsDefined() && !c.Spec.InfrastructureRef.IsDefined() {
		errs = append(errs, field.Required(spec.Child("infrastructureRef"), "set it to the AWSCluster of the cluster"))
	}
	network := spec.Child("clusterNetwork")
	errs = append(errs, blocks(c.Spec.ClusterNetwork.Pods.CIDRBlocks, network.Child("pods", "cidrBlocks"))...)
	return append(errs, blocks(c.Spec.ClusterNetwork.Services.CIDRBlocks, network.Child("services", "cidrBlocks"))...)
}

func labelValue(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, what := range validation.IsValidLabelValue(name) {
		errs = append(errs, field.Invalid(path, name, "the name is used as the value of a label: "+what))
	}
	return errs
}

func blocks(cidrs []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range cidrs {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			errs = append(errs, field.Invalid(path.Index(i), cidr, "is not a CIDR block such as 192.168.0.0/16"))
		}
	}
	return errs
}

// WithV returns a version with the prefix v.
func WithV(version string) string {
	if version == "" || version[0] < '0' || version[0] > '9' {
		return version
	}
	return "v" + version
}

// versionErrors checks a Kubernetes version after withV.
func versionErrors(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return nil
	}
	if _, err := semver.Parse(strings.TrimPrefix(version, "v")); err != nil || !strings.HasPrefix(version, "v") {
		return field.ErrorList{field.Invalid(path, version, "is not a Kubernetes version such as v1.34.2")}
	}
	return nil
}

// DefaultDeployment sets the defaults of the MachineDeployment webhook.
func DefaultDeployment(d *clusterv1.MachineDeployment) field.ErrorList {
	set(&d.Labels, clusterv1.ClusterNameLabel, d.Spec.ClusterName)
	errs := defaultReplicas(&d.Spec.Replicas, d.Annotations)
	strategy := &d.Spec.Rollout.Strategy
	if strategy.Type == "" {
		strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	}
	if strategy.Type == clusterv1.RollingUpdateMachineDeploymentStrategyType {
		strategy.RollingUpdate.MaxSurge = intstr.ValueOrDefault(strategy.RollingUpdate.MaxSurge, intstr.FromInt32(1))
		strategy.RollingUpdate.MaxUnavailable = intstr.ValueOrDefault(strategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(0))
	}
	selector, template := &d.Spec.Selector, &d.Spec.Template
	if len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0 {
		set(&selector.MatchLabels, clusterv1.MachineDeploymentNameLabel, d.Name)
		set(&template.Labels, clusterv1.MachineDeploymentNameLabel, d.Name)
	}
	set(&selector.MatchLabels, clusterv1.ClusterNameLabel, d.Spec.ClusterName)
	set(&template.Labels, clusterv1.ClusterNameLabel, d.Spec.ClusterName)
	template.Spec.Version = WithV(template.Spec.Version)
	return errs
}

func set(m *map[string]string, name, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[name] = value
}

// defaultReplicas sets the autoscaler's minimum if both of its annotations exist,
// otherwise 1.
func defaultReplicas(number **int32, annotations map[string]string) field.ErrorList {
	if *number != nil {
		return nil
	}
	replicas := int32(1)
	*number = &replicas
	least, hasLeast := annotations[clusterv1.AutoscalerMinSizeAnnotation]
	most, hasMost := annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	if !hasLeast || !hasMost {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("metadata", "annotations")
	if n, err := strconv.ParseInt(least, 10, 32); err != nil {
		errs = append(errs, field.Invalid(path.Child(clusterv1.AutoscalerMinSizeAnnotation), least, "is not a number of machines"))
	} else {
		replicas = int32(n)
	}
	if _, err := strconv.ParseInt(most, 10, 32); err != nil {
		errs = append(errs, field.Invalid(path.Child(clusterv1.AutoscalerMaxSizeAnnotation), most, "is not a number of machines"))
	}
	return errs
}

// ValidateDeployment applies the rules of the MachineDeployment webhook.
func ValidateDeployment(d *clusterv1.MachineDeployment) field.ErrorList {
	spec := field.NewPath("spec")
	template := spec.Child("template")
	errs := labelValue(d.Name, field.NewPath("metadata", "name"))
	errs = append(errs, bootstrapErrors(d.Spec.Template.Spec.Bootstrap, template.Child("spec", "bootstrap"))...)
	errs = append(errs, selectorErrors(d, spec)...)
	if *d.Spec.Replicas < 0 {
		errs = append(errs, field.Invalid(spec.Child("replicas"), *d.Spec.Replicas, "must not be negative"))
	}
	if inner := d.Spec.Template.Spec.ClusterName; d.Spec.ClusterName != inner {
		errs = append(errs, field.Invalid(template.Child("spec", "clusterName"), inner,
			fmt.Sprintf("must be %q, as in spec.clusterName", d.Spec.ClusterName)))
	}
	errs = append(errs, rolloutErrors(d, spec)...)
	errs = append(errs, versionErrors(d.Spec.Template.Spec.Version, template.Child("spec", "version"))...)
	errs = append(errs, namingErrors(d.Spec.MachineNaming.Template, "machineSet", spec.Child("machineNaming", "template"))...)
	return append(errs, d.Spec.Template.Validate(template.Child("metadata"))...)
}

func bootstrapErrors(b clusterv1.Bootstrap, path *field.Path) field.ErrorList {
	if b.ConfigRef.IsDefined() || b.DataSecretName != nil {
		return nil
	}
	return field.ErrorList{field.Required(path, "set configRef or dataSecretName")}
}

func selectorErrors(d *clusterv1.MachineDeployment, spec *field.Path) field.ErrorList {
	selector, err := metav1.LabelSelectorAsSelector(&d.Spec.Selector)
	if err != nil {
		return field.ErrorList{field.Invalid(spec.Child("selector"), "", err.Error())}
	}
	if !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		return field.ErrorList{field.Forbidden(spec.Child("template", "metadata", "labels"),
			fmt.Sprintf("the labels must match spec.selector (%s)", selector))}
	}
	return nil
}

// rolloutErrors checks maxSurge, maxUnavailable and maxInFlight.
func rolloutErrors(d *clusterv1.MachineDeployment, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	rolling := d.Spec.Rollout.Strategy.RollingUpdate
	path := spec.Child("rollout", "strategy", "rollingUpdate")
	errs = append(errs, scaledErrors(rolling.MaxSurge, path.Child("maxSurge"))...)
	errs = append(errs, scaledErrors(rolling.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, scaledErrors(d.Spec.Remediation.MaxInFlight, spec.Child("remediation", "maxInFlight"))...)
	if isZero(rolling.MaxSurge) && isZero(rolling.MaxUnavailable) {
		errs = append(errs, field.Invalid(path, "", "maxSurge and maxUnavailable must not both be 0"))
	}
	return errs
}

func scaledErrors(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	if _, err := intstr.GetScaledValueFromIntOrPercent(v, 100, true); err != nil {
		return field.ErrorList{field.Invalid(path, v.String(), "must be a number or a percentage")}
	}
	return nil
}

func isZero(v *intstr.IntOrString) bool {
	return v != nil && v.Type == intstr.Int && v.IntVal == 0
}

// namingErrors checks a template for machine names. Its placeholders are .cluster.name,
// the name of the owner and .random.
func namingErrors(template, owner string, path *field.Path) field.ErrorList {
	if template == "" {
		return nil
	}
	placeholder := regexp.MustCompile(`\{\{-?\s*\.(cluster\.name|` + owner + `\.name|random)\s*-?\}\}`)
	if !strings.Contains(template, "{{ .random }}") {
		return field.ErrorList{field.Invalid(path, template, "must contain {{ .random }}")}
	}
	name := placeholder.ReplaceAllString(template, "x")
	if strings.Contains(name, "{{") {
		return field.ErrorList{field.Invalid(path, template, fmt.Sprintf("may only use {{ .cluster.name }}, {{ .%s.name }} and {{ .random }}", owner))}
	}
	if bad := validation.IsDNS1123Subdomain(name); len(bad) > 0 {
		return field.ErrorList{field.Invalid(path, template, "does not result in valid names: "+bad[0])}
	}
	return nil
}

// DefaultMachine sets the defaults of the Machine webhook.
func DefaultMachine(m *clusterv1.Machine) {
	set(&m.Labels, clusterv1.ClusterNameLabel, m.Spec.ClusterName)
	m.Spec.Version = WithV(m.Spec.Version)
	if m.Spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		seconds := int32(nodeDeletionTimeout)
		m.Spec.Deletion.NodeDeletionTimeoutSeconds = &seconds
	}
}

// ValidateMachine applies the rules of the Machine webhook.
func ValidateMachine(m *clusterv1.Machine) field.ErrorList {
	spec := field.NewPath("spec")
	errs := bootstrapErrors(m.Spec.Bootstrap, spec.Child("bootstrap"))
	return append(errs, versionErrors(m.Spec.Version, spec.Child("version"))...)
}

// DefaultResourceSet sets the default of the ClusterResourceSet webhook.
func DefaultResourceSet(s *addonsv1.ClusterResourceSet) {
	if s.Spec.Strategy == "" {
		s.Spec.Strategy = string(addonsv1.ClusterResourceSetStrategyApplyOnce)
	}
}

// ValidateResourceSet applies the rules of the ClusterResourceSet webhook.
func ValidateResourceSet(s *addonsv1.ClusterResourceSet) field.ErrorList {
	path := field.NewPath("spec", "clusterSelector")
	selector, err := metav1.LabelSelectorAsSelector(&s.Spec.ClusterSelector)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	if selector.Empty() {
		return field.ErrorList{field.Required(path, "an empty selector selects no cluster")}
	}
	return nil
}

// AddonSecretType is the type that a Secret needs in a ClusterResourceSet.
const AddonSecretType corev1.SecretType = "addons.cluster.x-k8s.io/resource-set" //nolint:gosec // a type, not a secret
