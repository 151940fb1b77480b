package apiserver

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// budget checks a PodDisruptionBudget.
func (c *check) budget(o *policyv1.PodDisruptionBudget) {
	if o.Spec.MinAvailable != nil && o.Spec.MaxUnavailable != nil {
		c.refuse("spec", "minAvailable and maxUnavailable are set", "remove one of them")
	}
	for field, n := range map[string]*intstr.IntOrString{"spec.minAvailable": o.Spec.MinAvailable, "spec.maxUnavailable": o.Spec.MaxUnavailable} {
		c.amount(field, n)
		c.atMostAll(field, n)
	}
	c.labelSelector("spec.selector", o.Spec.Selector)
	isOneOf(c, "spec.unhealthyPodEvictionPolicy", o.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget, policyv1.AlwaysAllow)
}

// oldAutoscaler checks a HorizontalPodAutoscaler of autoscaling/v1.
func (c *check) oldAutoscaler(o *autoscalingv1.HorizontalPodAutoscaler) {
	c.replicas(o.Spec.MinReplicas, o.Spec.MaxReplicas, false)
	c.scaleTarget("spec.scaleTargetRef.", o.Spec.ScaleTargetRef.Kind, o.Spec.ScaleTargetRef.Name, o.Spec.ScaleTargetRef.APIVersion)
	between(c, "spec.targetCPUUtilizationPercentage", o.Spec.TargetCPUUtilizationPercentage, 1, 1<<31-1)
}

// autoscaler checks a HorizontalPodAutoscaler (pkg/apis/autoscaling/validation).
func (c *check) autoscaler(o *autoscalingv2.HorizontalPodAutoscaler) {
	outside := false
	for i := range o.Spec.Metrics {
		m := &o.Spec.Metrics[i]
		outside = outside || m.Object != nil || m.External != nil
		c.metric(fmt.Sprintf("spec.metrics[%d]", i), m)
	}
	c.replicas(o.Spec.MinReplicas, o.Spec.MaxReplicas, outside)
	c.scaleTarget("spec.scaleTargetRef.", o.Spec.ScaleTargetRef.Kind, o.Spec.ScaleTargetRef.Name, o.Spec.ScaleTargetRef.APIVersion)
	if b := o.Spec.Behavior; b != nil {
		c.scaling("spec.behavior.scaleUp.", b.ScaleUp)
		c.scaling("spec.behavior.scaleDown.", b.ScaleDown)
	}
}

// replicas checks how many pods an autoscaler makes. outside is true if it has metrics that do not need a pod.
func (c *check) replicas(least *int32, most int32, outside bool) {
	const toZero = 36 // the first minor version that may scale to 0 without a feature gate
	from := int32(1)
	if least != nil {
		from = *least
	}
	fixed := c.Minor > 0 && c.Minor < toZero && c.Gates
	c.when(from < 0 || from == 0 && (fixed || !outside), "spec.minReplicas", fmt.Sprintf("%d is less than 1", from), "use 1 or more")
	if most < max(1, from) {
		c.refuse("spec.maxReplicas", fmt.Sprintf("%d is less than %d", most, max(1, from)), "use a larger number")
	}
}

// scaleTarget checks what an autoscaler scales. The API server of 1.34 demands the API group.
func (c *check) scaleTarget(at, kind, name, version string) {
	c.need(at+"name", name)
	c.need(at+"kind", kind)
	c.segment(at+"name", name)
	gv, err := schema.ParseGroupVersion(version)
	const strict = 34
	c.when(err != nil || gv.Group == "" && c.Minor >= strict, at+"apiVersion", fmt.Sprintf("%q has no API group", version), "write one such as apps/v1")
}

func (c *check) metric(at string, m *autoscalingv2.MetricSpec) {
	set := map[autoscalingv2.MetricSourceType]bool{
		autoscalingv2.ResourceMetricSourceType: m.Resource != nil, autoscalingv2.ContainerResourceMetricSourceType: m.ContainerResource != nil,
		autoscalingv2.PodsMetricSourceType: m.Pods != nil, autoscalingv2.ObjectMetricSourceType: m.Object != nil,
		autoscalingv2.ExternalMetricSourceType: m.External != nil,
	}
	if given, is := set[m.Type]; !given {
		what := fmt.Sprintf("the settings of the type %q are missing", m.Type)
		if !is {
			what = fmt.Sprintf("%q is not a type of metrics", m.Type)
		}
		c.refuse(at, what, "add them, such as resource of the type Resource")
		return
	}
	switch {
	case m.Resource != nil:
		c.need(at+".resource.name", string(m.Resource.Name))
		c.share(at+".resource.target", &m.Resource.Target)
	case m.ContainerResource != nil:
		c.need(at+".containerResource.name", string(m.ContainerResource.Name))
		c.need(at+".containerResource.container", m.ContainerResource.Container)
		if name := m.ContainerResource.Container; name != "" {
			c.label(at+".containerResource.container", name)
		}
		c.share(at+".containerResource.target", &m.ContainerResource.Target)
	case m.Pods != nil:
		c.named(at+".pods.metric.name", m.Pods.Metric.Name)
		c.target(at+".pods.target", &m.Pods.Target)
		c.when(m.Pods.Target.AverageValue == nil, at+".pods.target.averageValue", "a value is required", "set it, such as 100m")
	case m.Object != nil:
		c.named(at+".object.metric.name", m.Object.Metric.Name)
		c.value(at+".object.target", &m.Object.Target)
	default:
		c.named(at+".external.metric.name", m.External.Metric.Name)
		c.value(at+".external.target", &m.External.Target)
	}
}

// named checks the name of a metric.
func (c *check) named(field, name string) {
	c.need(field, name)
	c.segment(field, name)
}

// share checks which part of a resource pods should use.
func (c *check) share(at string, t *autoscalingv2.MetricTarget) {
	c.target(at, t)
	c.onlyOne(
		at,
		given(setting{"averageUtilization", t.AverageUtilization != nil}, setting{"averageValue", t.AverageValue != nil}),
		"averageUtilization, averageValue",
	)
}

// value checks which value a metric should have that is not one of pods.
func (c *check) value(at string, t *autoscalingv2.MetricTarget) {
	c.target(at, t)
	c.when(t.Value == nil && t.AverageValue == nil, at, "needs value or averageValue", "add one of them")
}

func (c *check) target(at string, t *autoscalingv2.MetricTarget) {
	c.need(at+".type", string(t.Type))
	oneOf(c, at+".type", t.Type, autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType)
	for field, n := range map[string]*resource.Quantity{".value": t.Value, ".averageValue": t.AverageValue} {
		if n != nil && n.Sign() <= 0 {
			c.refuse(at+field, n.String()+" is not positive", "use a larger value")
		}
	}
	between(c, at+".averageUtilization", t.AverageUtilization, 1, 1<<31-1)
}

// scaling checks how fast an autoscaler may scale.
func (c *check) scaling(at string, r *autoscalingv2.HPAScalingRules) {
	if r == nil {
		return
	}
	between(c, at+"stabilizationWindowSeconds", r.StabilizationWindowSeconds, 0, 3600)
	isOneOf(c, at+"selectPolicy", r.SelectPolicy, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect)
	for i, p := range r.Policies {
		field := fmt.Sprintf("%spolicies[%d].", at, i)
		c.need(field+"type", string(p.Type))
		oneOf(c, field+"type", p.Type, autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy)
		between(c, field+"value", &p.Value, 1, 1<<31-1)
		between(c, field+"periodSeconds", &p.PeriodSeconds, 1, 1800)
	}
}
