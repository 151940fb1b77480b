package apiserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selectors "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	invalid "k8s.io/apimachinery/pkg/util/validation/field"
)

// workload checks an object that has pods (pkg/apis/apps/validation and pkg/apis/batch/validation).
func (c *check) workload(o runtime.Object) {
	switch o := o.(type) {
	case *corev1.Pod:
		c.pod("spec.", &o.Spec, nil)
		c.barePod(&o.Spec)
	case *appsv1.Deployment:
		c.notNegative("spec.replicas", o.Spec.Replicas)
		c.strategy(o.Spec.Strategy)
		c.deadlines(&o.Spec)
		c.template(o.Spec.Selector, &o.Spec.Template, nil)
	case *appsv1.ReplicaSet:
		c.notNegative("spec.replicas", o.Spec.Replicas)
		c.notNegative("spec.minReadySeconds", &o.Spec.MinReadySeconds)
		c.template(o.Spec.Selector, &o.Spec.Template, nil)
	case *appsv1.DaemonSet:
		c.daemonUpdate(o.Spec.UpdateStrategy)
		c.notNegative("spec.minReadySeconds", &o.Spec.MinReadySeconds)
		c.notNegative("spec.revisionHistoryLimit", o.Spec.RevisionHistoryLimit)
		c.template(o.Spec.Selector, &o.Spec.Template, nil)
	case *appsv1.StatefulSet:
		c.statefulSet(&o.Spec)
	case *batchv1.Job:
		c.jobSelector(o)
		c.indexedName(o)
		c.job("spec.", &o.Spec)
	case *batchv1.CronJob:
		c.cronJob(o)
	}
}

// statefulSet checks a StatefulSet (ValidateStatefulSetSpec). The API server does not check the host names of its pods.
func (c *check) statefulSet(s *appsv1.StatefulSetSpec) {
	c.notNegative("spec.replicas", s.Replicas)
	c.notNegative("spec.minReadySeconds", &s.MinReadySeconds)
	oneOf(c, "spec.podManagementPolicy", s.PodManagementPolicy, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)
	const update = "spec.updateStrategy."
	oneOf(c, update+"type", s.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)
	if r := s.UpdateStrategy.RollingUpdate; r != nil {
		c.when(
			s.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType, update+"rollingUpdate", "is only for the type RollingUpdate",
			"remove it, or change the type",
		)
		c.notNegative(update+"rollingUpdate.partition", r.Partition)
	}
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		const at = "spec.persistentVolumeClaimRetentionPolicy."
		oneOf(c, at+"whenDeleted", p.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
		oneOf(c, at+"whenScaled", p.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	}
	if s.Ordinals != nil {
		c.notNegative("spec.ordinals.start", &s.Ordinals.Start)
	}
	const named = 34 // the first minor version that checks the name
	if s.ServiceName != "" && c.Minor >= named {
		c.label("spec.serviceName", s.ServiceName)
	}
	pods := s.Template.DeepCopy()
	pods.Spec.Hostname, pods.Spec.Subdomain = "", ""
	c.template(s.Selector, pods, s.VolumeClaimTemplates)
}

// deadlines checks how long an update of a Deployment may take.
func (c *check) deadlines(s *appsv1.DeploymentSpec) {
	const standard = 600
	c.notNegative("spec.minReadySeconds", &s.MinReadySeconds)
	c.notNegative("spec.revisionHistoryLimit", s.RevisionHistoryLimit)
	deadline := int32(standard)
	if s.ProgressDeadlineSeconds != nil {
		deadline = *s.ProgressDeadlineSeconds
	}
	c.when(
		deadline <= s.MinReadySeconds, "spec.progressDeadlineSeconds", fmt.Sprintf("%d is not more than minReadySeconds, %d", deadline, s.MinReadySeconds),
		"use a larger number",
	)
}

// controller checks a ReplicationController, whose selector is by default the labels of its pods.
func (c *check) controller(s *corev1.ReplicationControllerSpec) {
	c.notNegative("spec.replicas", s.Replicas)
	c.notNegative("spec.minReadySeconds", &s.MinReadySeconds)
	if s.Template == nil {
		c.need("spec.template", "")
		return
	}
	selector := s.Selector
	if len(selector) == 0 {
		selector = s.Template.Labels
	}
	c.template(&metav1.LabelSelector{MatchLabels: selector}, s.Template, nil)
}

// barePod checks what the API server permits in templates of pods only.
func (c *check) barePod(s *corev1.PodSpec) {
	for i := range s.InitContainers {
		c.trimmed(fmt.Sprintf("spec.initContainers[%d].image", i), s.InitContainers[i].Image)
	}
	for i := range s.Containers {
		c.trimmed(fmt.Sprintf("spec.containers[%d].image", i), s.Containers[i].Image)
	}
	c.when(s.NodeName != "" && len(s.SchedulingGates) > 0, "spec.nodeName", "is not possible beside schedulingGates", "remove one of them")
}

func (c *check) trimmed(field, text string) {
	c.when(strings.TrimSpace(text) != text, field, fmt.Sprintf("%q begins or ends with a space", text), "remove it")
}

func (c *check) strategy(s appsv1.DeploymentStrategy) {
	oneOf(c, "spec.strategy.type", s.Type, appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)
	const at = "spec.strategy.rollingUpdate"
	switch {
	case s.RollingUpdate == nil:
	case s.Type == appsv1.RecreateDeploymentStrategyType:
		c.refuse(at, "is not for the type Recreate", "remove it")
	default:
		surge, unavailable := s.RollingUpdate.MaxSurge, s.RollingUpdate.MaxUnavailable
		c.amount(at+".maxSurge", surge)
		c.amount(at+".maxUnavailable", unavailable)
		c.atMostAll(at+".maxUnavailable", unavailable)
		if isZero(surge) && isZero(unavailable) {
			c.refuse(at+".maxUnavailable", "is 0, and so is maxSurge: no pod could be replaced", "set one of them to 1")
		}
	}
}

func (c *check) daemonUpdate(s appsv1.DaemonSetUpdateStrategy) {
	oneOf(c, "spec.updateStrategy.type", s.Type, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType)
	const at = "spec.updateStrategy.rollingUpdate"
	if r := s.RollingUpdate; r != nil {
		c.amount(at+".maxSurge", r.MaxSurge)
		c.amount(at+".maxUnavailable", r.MaxUnavailable)
		c.atMostAll(at+".maxUnavailable", r.MaxUnavailable)
		c.atMostAll(at+".maxSurge", r.MaxSurge)
		if r.MaxSurge != nil && !isZero(r.MaxSurge) && !isZero(r.MaxUnavailable) {
			c.refuse(at+".maxSurge", "is possible only with maxUnavailable: 0, which is 1 by default", "remove it, or set maxUnavailable to 0")
		}
		if isZero(r.MaxUnavailable) && (r.MaxSurge == nil || isZero(r.MaxSurge)) {
			c.refuse(at, "maxUnavailable and maxSurge are 0: no pod could be replaced", "set one of them to 1")
		}
	}
}

func isZero(n *intstr.IntOrString) bool {
	return n != nil && (n.Type == intstr.Int && n.IntVal == 0 || n.Type == intstr.String && n.StrVal == "0%")
}

// atMostAll refuses a percentage of pods above 100%.
func (c *check) atMostAll(field string, n *intstr.IntOrString) {
	if n == nil || n.Type != intstr.String {
		return
	}
	if percent, err := strconv.Atoi(strings.TrimSuffix(n.StrVal, "%")); err == nil && percent > 100 {
		c.refuse(field, n.StrVal+" is more than 100%", "use at most 100%")
	}
}

// template checks the selector and the pod template of a workload whose pods are always restarted, unlike those of a Job.
func (c *check) template(selector *metav1.LabelSelector, pods *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) {
	given := pods.Labels
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		c.refuse("spec.selector", "a selector is required", "write matchLabels with labels of spec.template")
	} else if c.selector("spec.selector", selector) {
		if s, err := metav1.LabelSelectorAsSelector(selector); err == nil && !s.Matches(labels.Set(given)) {
			c.refuse("spec.template.metadata.labels", "spec.selector does not match them", "give both the same labels")
		}
	}
	if p := pods.Spec.RestartPolicy; p != "" && p != corev1.RestartPolicyAlways {
		c.refuse("spec.template.spec.restartPolicy", fmt.Sprintf("%q: pods that a Job does not run are always restarted", p), "remove it")
	}
	if pods.Spec.ActiveDeadlineSeconds != nil {
		c.refuse("spec.template.spec.activeDeadlineSeconds", "only pods of Jobs have a deadline", "remove it")
	}
	for i, claim := range claims {
		c.claim(fmt.Sprintf("spec.volumeClaimTemplates[%d].spec.", i), &claim.Spec)
	}
	c.labels("spec.template.metadata.labels", given)
	c.pod("spec.template.spec.", &pods.Spec, claims)
}

// selector checks the expressions of a label selector, and reports whether they are valid.
func (c *check) selector(at string, s *metav1.LabelSelector) bool {
	before := len(c.found)
	for i, e := range s.MatchExpressions {
		c.expression(fmt.Sprintf("%s.matchExpressions[%d].", at, i), string(e.Operator), e.Values, "In", "NotIn", "Exists", "DoesNotExist")
	}
	if len(c.found) == before {
		c.errors(selectors.ValidateLabelSelector(s, selectors.LabelSelectorValidationOptions{}, invalid.NewPath(at)))
	}
	return len(c.found) == before
}

// expression checks whether the operator of an expression is permitted, and whether it has as many values as it needs.
func (c *check) expression(at, operator string, values []string, permitted ...string) {
	if !slices.Contains(permitted, operator) {
		c.refuse(at+"operator", fmt.Sprintf("%q is not one of %s", operator, strings.Join(permitted, ", ")), "write one of them")
		return
	}
	switch operator {
	case "In", "NotIn":
		if len(values) == 0 {
			c.refuse(at+"values", fmt.Sprintf("the operator %s needs values", operator), "add them")
		}
	case "Gt", "Lt":
		if len(values) != 1 {
			c.refuse(at+"values", fmt.Sprintf("the operator %s needs one value", operator), "write one")
		}
	default:
		if len(values) > 0 {
			c.refuse(at+"values", fmt.Sprintf("the operator %s has no values", operator), "remove them")
		}
	}
}
