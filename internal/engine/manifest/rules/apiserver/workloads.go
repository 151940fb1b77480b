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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// workload checks an object that has pods (pkg/apis/apps/validation and pkg/apis/batch/validation).
func (c *check) workload(o runtime.Object) {
	switch o := o.(type) {
	case *corev1.Pod:
		c.pod("spec.", &o.Spec, nil)
	case *appsv1.Deployment:
		c.notNegative("spec.replicas", o.Spec.Replicas)
		c.strategy(o.Spec.Strategy)
		c.template(o.Spec.Selector, &o.Spec.Template, nil)
	case *appsv1.ReplicaSet:
		c.notNegative("spec.replicas", o.Spec.Replicas)
		c.template(o.Spec.Selector, &o.Spec.Template, nil)
	case *appsv1.DaemonSet:
		c.daemonUpdate(o.Spec.UpdateStrategy)
		c.template(o.Spec.Selector, &o.Spec.Template, nil)
	case *appsv1.StatefulSet:
		c.notNegative("spec.replicas", o.Spec.Replicas)
		oneOf(c, "spec.podManagementPolicy", o.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)
		oneOf(c, "spec.updateStrategy.type", o.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)
		c.template(o.Spec.Selector, &o.Spec.Template, o.Spec.VolumeClaimTemplates)
	case *batchv1.Job:
		c.job("spec.", &o.Spec)
	case *batchv1.CronJob:
		c.schedule("spec.schedule", o.Spec.Schedule)
		oneOf(c, "spec.concurrencyPolicy", o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
		c.job("spec.jobTemplate.spec.", &o.Spec.JobTemplate.Spec)
	}
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
	c.pod("spec.template.spec.", &pods.Spec, claims)
}

// selector checks the expressions of a label selector, and reports whether they are valid.
func (c *check) selector(at string, s *metav1.LabelSelector) bool {
	before := len(c.found)
	for i, e := range s.MatchExpressions {
		c.expression(fmt.Sprintf("%s.matchExpressions[%d].", at, i), string(e.Operator), e.Values, "In", "NotIn", "Exists", "DoesNotExist")
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

func (c *check) job(at string, s *batchv1.JobSpec) {
	for _, n := range []struct {
		name  string
		value *int32
	}{{"parallelism", s.Parallelism}, {"completions", s.Completions}, {"backoffLimit", s.BackoffLimit}} {
		c.notNegative(at+n.name, n.value)
	}
	if p := s.Template.Spec.RestartPolicy; p != corev1.RestartPolicyNever && p != corev1.RestartPolicyOnFailure {
		c.refuse(at+"template.spec.restartPolicy", fmt.Sprintf("is %q: the pods of a Job are not always restarted", p), "write OnFailure or Never")
	}
	c.pod(at+"template.spec.", &s.Template.Spec, nil)
}

// schedule checks the schedule of a CronJob, which Kubernetes parses with ParseStandard of github.com/robfig/cron.
func (c *check) schedule(field, text string) {
	fix := `write five fields, such as "0 3 * * *", or @daily`
	fields := strings.Fields(text)
	switch {
	case text == "":
		c.need(field, "")
	case strings.HasPrefix(text, "@"):
		if !slices.Contains([]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}, text) && !strings.HasPrefix(text, "@every ") {
			c.refuse(field, fmt.Sprintf("%q is not a schedule", text), fix)
		}
	case strings.HasPrefix(text, "TZ="), strings.HasPrefix(text, "CRON_TZ="):
		c.refuse(field, "has a time zone", "write it in spec.timeZone")
	case len(fields) != 5:
		c.refuse(field, fmt.Sprintf("%q has %d fields", text, len(fields)), fix)
	default:
		c.scheduleFields(field, fields)
	}
}

// scheduleFields checks the minutes, hours, days, months and days of the week of a schedule.
func (c *check) scheduleFields(field string, fields []string) {
	names := "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|SUN|MON|TUE|WED|THU|FRI|SAT"
	form := regex.Of(`(?i)^(\*|\?|(\d+|` + names + `)(-(\d+|` + names + `))?)(/\d+)?$`)
	for i, f := range fields {
		for part := range strings.SplitSeq(f, ",") {
			m := form.FindStringSubmatch(part)
			if m == nil {
				c.refuse(field, fmt.Sprintf("%q is no part of a schedule", part), `write one such as 5, 1-5, */10 or *`)
				continue
			}
			least, most := [5]int{0, 0, 1, 1, 0}[i], [5]int{59, 23, 31, 12, 6}[i]
			for _, text := range []string{m[2], m[4]} {
				if n, err := strconv.Atoi(text); err == nil && (n < least || n > most) {
					c.refuse(field, fmt.Sprintf("%d is not between %d and %d", n, least, most), "change it")
				}
			}
		}
	}
}
