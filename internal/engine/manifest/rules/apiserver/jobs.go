package apiserver

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	invalid "k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// job checks what Jobs and the templates of CronJobs have (validateJobSpec in pkg/apis/batch/validation).
func (c *check) job(at string, s *batchv1.JobSpec) {
	for _, n := range []struct {
		name  string
		value *int32
	}{
		{"parallelism", s.Parallelism},
		{"completions", s.Completions},
		{"backoffLimit", s.BackoffLimit},
		{"ttlSecondsAfterFinished", s.TTLSecondsAfterFinished},
		{"backoffLimitPerIndex", s.BackoffLimitPerIndex},
		{"maxFailedIndexes", s.MaxFailedIndexes},
	} {
		c.notNegative(at+n.name, n.value)
	}
	between(c, at+"activeDeadlineSeconds", s.ActiveDeadlineSeconds, 0, math.MaxInt64)
	c.indexes(at, s)
	if s.ManagedBy != nil {
		c.errors(validation.IsDomainPrefixedPath(invalid.NewPath(at+"managedBy"), *s.ManagedBy))
	}
	if s.PodFailurePolicy != nil {
		c.failures(at+"podFailurePolicy.rules", s)
	}
	if s.PodReplacementPolicy != nil {
		permitted := []batchv1.PodReplacementPolicy{batchv1.Failed, batchv1.TerminatingOrFailed}
		if s.PodFailurePolicy != nil {
			permitted = permitted[:1]
		}
		oneOf(c, at+"podReplacementPolicy", *s.PodReplacementPolicy, permitted...)
	}
	switch p := s.Template.Spec.RestartPolicy; {
	case p != corev1.RestartPolicyNever && p != corev1.RestartPolicyOnFailure:
		c.refuse(at+"template.spec.restartPolicy", fmt.Sprintf("is %q: the pods of a Job are not always restarted", p), "write OnFailure or Never")
	case p != corev1.RestartPolicyNever && s.PodFailurePolicy != nil:
		c.refuse(at+"template.spec.restartPolicy", fmt.Sprintf("is %q, and podFailurePolicy is about pods that are not restarted", p), "write Never")
	}
	c.labels(at+"template.metadata.labels", s.Template.Labels)
	c.pod(at+"template.spec.", &s.Template.Spec, nil)
}

// indexes checks the settings of Jobs whose pods have numbers.
func (c *check) indexes(at string, s *batchv1.JobSpec) {
	isOneOf(c, at+"completionMode", s.CompletionMode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion {
		for _, name := range given(
			setting{"backoffLimitPerIndex", s.BackoffLimitPerIndex != nil}, setting{"maxFailedIndexes", s.MaxFailedIndexes != nil},
			setting{"successPolicy", s.SuccessPolicy != nil},
		) {
			c.refuse(at+name, "is only for completionMode: Indexed", "remove it, or change completionMode")
		}
		return
	}
	const most = 100_000
	c.when(s.Completions == nil && s.Parallelism != nil, at+"completions", "completionMode: Indexed needs it", "set it to the number of pods")
	between(c, at+"parallelism", s.Parallelism, math.MinInt32, most)
	between(c, at+"maxFailedIndexes", s.MaxFailedIndexes, math.MinInt32, most)
	c.when(s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil, at+"backoffLimitPerIndex", "maxFailedIndexes needs it", "set it")
	c.when(
		s.Completions != nil && s.MaxFailedIndexes != nil && *s.MaxFailedIndexes > *s.Completions, at+"maxFailedIndexes", "is more than completions",
		"use a smaller number",
	)
	if s.SuccessPolicy == nil {
		return
	}
	c.when(len(s.SuccessPolicy.Rules) == 0, at+"successPolicy.rules", "at least one rule is required", "add one, or remove successPolicy")
	for i, r := range s.SuccessPolicy.Rules {
		field := fmt.Sprintf("%ssuccessPolicy.rules[%d]", at, i)
		c.when(r.SucceededCount == nil && r.SucceededIndexes == nil, field, "needs succeededCount or succeededIndexes", "add one of them")
		if s.Completions != nil {
			between(c, field+".succeededCount", r.SucceededCount, 0, int64(*s.Completions))
		}
	}
}

// failures checks what happens if a pod of a Job fails (validatePodFailurePolicy).
func (c *check) failures(at string, s *batchv1.JobSpec) {
	names := []string{}
	for _, of := range slices.Concat(s.Template.Spec.InitContainers, s.Template.Spec.Containers) {
		names = append(names, of.Name)
	}
	for i, r := range s.PodFailurePolicy.Rules {
		field := fmt.Sprintf("%s[%d]", at, i)
		c.need(field+".action", string(r.Action))
		oneOf(
			c, field+".action", r.Action, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionFailIndex,
			batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount,
		)
		c.when(
			r.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil, field+".action",
			"FailIndex needs backoffLimitPerIndex of the Job", "set it",
		)
		c.onlyOne(
			field,
			given(setting{"onExitCodes", r.OnExitCodes != nil}, setting{"onPodConditions", len(r.OnPodConditions) > 0}),
			"onExitCodes, onPodConditions",
		)
		if r.OnExitCodes != nil {
			c.exitCodes(field+".onExitCodes.", r.OnExitCodes, names)
		}
		for j, p := range r.OnPodConditions {
			c.qualified(fmt.Sprintf("%s.onPodConditions[%d].type", field, j), string(p.Type))
			oneOf(c, fmt.Sprintf("%s.onPodConditions[%d].status", field, j), p.Status, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)
		}
	}
}

func (c *check) exitCodes(at string, codes *batchv1.PodFailurePolicyOnExitCodesRequirement, containers []string) {
	c.need(at+"operator", string(codes.Operator))
	oneOf(c, at+"operator", codes.Operator, batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn)
	if name := codes.ContainerName; name != nil {
		c.when(!slices.Contains(containers, *name), at+"containerName", fmt.Sprintf("the pod has no container %s", *name), "correct the name")
	}
	c.when(len(codes.Values) == 0, at+"values", "at least one value is required", "add it")
	for i, n := range codes.Values {
		field := fmt.Sprintf("%svalues[%d]", at, i)
		c.when(n == 0 && codes.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn, field, "is 0, which is no failure", "remove it")
		c.when(i > 0 && codes.Values[i-1] >= n, at+"values", fmt.Sprintf("%d is after %d", n, codes.Values[max(0, i-1)]), "write each once, in ascending order")
	}
}

// jobSelector checks the selector of a Job, which Kubernetes makes itself unless manualSelector is set.
func (c *check) jobSelector(o *batchv1.Job) {
	s := &o.Spec
	if s.Selector == nil {
		c.when(yes(s.ManualSelector), "spec.selector", "manualSelector needs it", "set it, or remove manualSelector")
		return
	}
	if !c.selector("spec.selector", s.Selector) {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	if err != nil {
		return
	}
	own := labels.Set{batchv1.JobNameLabel: o.Name, "job-name": o.Name, batchv1.ControllerUidLabel: s.Selector.MatchLabels[batchv1.ControllerUidLabel]}
	switch {
	case yes(s.ManualSelector):
		c.when(!selector.Matches(labels.Set(s.Template.Labels)), "spec.template.metadata.labels", "spec.selector does not match them", "give both the same labels")
	case !selector.Matches(own):
		c.refuse("spec.selector", "the API server makes the selector of a Job itself", "remove it, or set manualSelector: true")
	}
}

// indexedName refuses a name that is too long for the host names of the pods.
func (c *check) indexedName(o *batchv1.Job) {
	s := &o.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batchv1.IndexedCompletion || s.Completions == nil || *s.Completions < 1 {
		return
	}
	c.invalid("metadata.name", o.Name, validation.IsDNS1123Label(fmt.Sprintf("%s-%d", o.Name, *s.Completions-1)))
}

func (c *check) cronJob(o *batchv1.CronJob) {
	const longest = 52 // the names of its Jobs have 11 characters more
	c.when(
		len(o.Name) > longest,
		"metadata.name",
		fmt.Sprintf("has %d characters, and the longest possible name has %d", len(o.Name), longest),
		"use a shorter name",
	)
	c.schedule("spec.schedule", o.Spec.Schedule)
	c.timeZone("spec.timeZone", o.Spec.TimeZone)
	oneOf(c, "spec.concurrencyPolicy", o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	between(c, "spec.startingDeadlineSeconds", o.Spec.StartingDeadlineSeconds, 0, math.MaxInt64)
	c.notNegative("spec.successfulJobsHistoryLimit", o.Spec.SuccessfulJobsHistoryLimit)
	c.notNegative("spec.failedJobsHistoryLimit", o.Spec.FailedJobsHistoryLimit)
	s := &o.Spec.JobTemplate.Spec
	c.when(s.Selector != nil, "spec.jobTemplate.spec.selector", "the API server makes the selectors of the Jobs itself", "remove it")
	c.when(yes(s.ManualSelector), "spec.jobTemplate.spec.manualSelector", "is not possible: each Job has a selector of its own", "remove it")
	c.job("spec.jobTemplate.spec.", s)
}

// timeZone refuses a time zone that does not exist. Without the database of time zones of this machine, or with an old one, it judges the form
// only.
func (c *check) timeZone(field string, name *string) {
	if name == nil {
		return
	}
	const fix, recent = "write one such as Europe/Berlin or Etc/UTC", "Europe/Kyiv"
	form := regex.Of(`^[A-Za-z.\-_0-9+]{1,14}(/[A-Za-z.\-_0-9+]{1,14})*$`).MatchString(*name)
	_, unknown := time.LoadLocation(*name)
	_, old := time.LoadLocation(recent)
	switch {
	case !form, strings.EqualFold(*name, "local"), unknown != nil && old == nil:
		c.refuse(field, fmt.Sprintf("%q is not a time zone", *name), fix)
	}
}

// schedule checks the schedule of a CronJob, which Kubernetes parses with ParseStandard of github.com/robfig/cron.
func (c *check) schedule(field, text string) {
	fix := `write five fields, such as "0 3 * * *", or @daily`
	fields := strings.Fields(text)
	every, periodic := strings.CutPrefix(text, "@every ")
	switch {
	case text == "":
		c.need(field, "")
	case strings.Contains(text, "TZ"):
		c.refuse(field, "has a time zone", "write it in spec.timeZone")
	case periodic:
		_, err := time.ParseDuration(every)
		c.when(err != nil, field, fmt.Sprintf("%q is not a duration", every), "write one such as @every 1h30m")
	case strings.HasPrefix(text, "@"):
		if !slices.Contains([]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}, text) {
			c.refuse(field, fmt.Sprintf("%q is not a schedule", text), fix)
		}
	case len(fields) != 5:
		c.refuse(field, fmt.Sprintf("%q has %d fields", text, len(fields)), fix)
	default:
		c.scheduleFields(field, fields)
	}
}

// scheduleFields checks the minutes, hours, days, months and days of the week of a schedule.
func (c *check) scheduleFields(field string, fields []string) {
	months := []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	days := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	for i, f := range fields {
		least, most := [5]int{0, 0, 1, 1, 0}[i], [5]int{59, 23, 31, 12, 6}[i]
		names := [5][]string{3: months, 4: days}[i]
		for part := range strings.SplitSeq(f, ",") {
			c.schedulePart(field, part, names, least, most)
		}
	}
}

// schedulePart checks a number, a range or * in a schedule, with or without a step. names are those of the numbers from the least one.
func (c *check) schedulePart(field, part string, names []string, least, most int) {
	number := func(text string) int {
		if i := slices.Index(names, strings.ToLower(text)); i >= 0 {
			return least + i
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return -1
		}
		return n
	}
	m := regex.Of(`^(?:\*|\?|(\w+)(?:-(\w+))?)(?:/(\d+))?$`).FindStringSubmatch(part)
	if m == nil {
		c.refuse(field, fmt.Sprintf("%q is no part of a schedule", part), `write one such as 5, 1-5, */10 or *`)
		return
	}
	first := true
	for _, text := range m[1:3] {
		if n := number(text); text != "" && first && (n < least || n > most) {
			first = false
			c.refuse(field, fmt.Sprintf("%s is not between %d and %d", text, least, most), "change it")
		}
	}
	c.when(first && m[2] != "" && number(m[1]) > number(m[2]), field, fmt.Sprintf("%s ends before it begins", part), "write the smaller one first")
	c.when(strings.Trim(m[3], "0") == "" && m[3] != "", field, fmt.Sprintf("the step of %s is 0", part), "use 1 or more")
}
