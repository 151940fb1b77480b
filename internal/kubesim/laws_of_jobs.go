package kubesim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// rolloutLaws are the rules about updates of workloads.
func rolloutLaws() []law {
	const claims = "spec.persistentVolumeClaimRetentionPolicy."
	return []law{
		{"Deployment DaemonSet StatefulSet ReplicaSet", "spec.minReadySeconds", counted},
		{"Deployment DaemonSet", "spec.revisionHistoryLimit", counted},
		{"Deployment", "spec.progressDeadlineSeconds", func(v any, in Object) string {
			deadline, is := number(v)
			if !is {
				deadline = 600
			}
			if least, _ := number(in["minReadySeconds"]); deadline <= least {
				return fmt.Sprintf("Invalid value: %.0f: must be greater than minReadySeconds", deadline)
			}
			return ""
		}},
		{"DaemonSet", "spec.updateStrategy.rollingUpdate.maxSurge", func(v any, _ Object) string {
			if n, err := strconv.Atoi(strings.TrimSuffix(fmt.Sprint(v), "%")); err == nil && n > 100 && strings.HasSuffix(fmt.Sprint(v), "%") {
				return fmt.Sprintf("Invalid value: %q: must not be greater than 100%%", v)
			}
			return ""
		}},
		{"StatefulSet", "spec.updateStrategy.rollingUpdate", func(v any, in Object) string {
			if v != nil && text(in, "type") == "OnDelete" {
				return "Invalid value: only allowed for updateStrategy 'RollingUpdate'"
			}
			return ""
		}},
		{"StatefulSet", "spec.updateStrategy.rollingUpdate.partition", counted},
		{"StatefulSet", "spec.ordinals.start", counted},
		{"StatefulSet", "spec.serviceName", label},
		{"StatefulSet", "spec.volumeClaimTemplates[].spec.accessModes", needed},
		{"StatefulSet", claims + "whenDeleted", among("Delete", "Retain")},
		{"StatefulSet", claims + "whenScaled", among("Delete", "Retain")},
	}
}

// jobLaws are the rules about Jobs, and about the Jobs of CronJobs.
func jobLaws() (all []law) {
	for kind, at := range map[string]string{"Job": "spec.", "CronJob": "spec.jobTemplate.spec."} {
		for _, field := range []string{
			"parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimitPerIndex", "maxFailedIndexes",
		} {
			all = append(all, law{kind, at + field, counted})
		}
		all = append(all,
			law{kind, at + "completionMode", among("Indexed", "NonIndexed")},
			law{kind, at + "template", indexed},
			law{kind, at + "template", failurePolicy},
			law{kind, at + "managedBy", func(v any, _ Object) string {
				if s, is := v.(string); is && !regex.Of(`^[a-z0-9.-]+/.+$`).MatchString(s) {
					return fmt.Sprintf("Invalid value: %q: must be a domain-prefixed path", s)
				}
				return ""
			}},
		)
	}
	const cronJob = "CronJob"
	return append(all,
		law{"Job", "spec.template", generated},
		law{cronJob, "metadata.name", func(v any, _ Object) string {
			if s, _ := v.(string); len(s) > 52 {
				return fmt.Sprintf("Invalid value: %q: must be no more than 52 characters", s)
			}
			return ""
		}},
		law{cronJob, "spec.timeZone", timeZone},
		law{cronJob, "spec.startingDeadlineSeconds", counted},
		law{cronJob, "spec.successfulJobsHistoryLimit", counted},
		law{cronJob, "spec.failedJobsHistoryLimit", counted},
		law{cronJob, "spec.jobTemplate.spec.selector", never("`selector` will be auto-generated")},
		law{cronJob, "spec.jobTemplate.spec.manualSelector", func(v any, _ Object) string {
			if v == true {
				return "Unsupported value: true: supported values: \"nil\", \"false\""
			}
			return ""
		}},
	)
}

// indexed is the rule of Jobs whose pods have numbers.
func indexed(_ any, in Object) string {
	if text(in, "completionMode") != "Indexed" {
		for _, field := range []string{"backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"} {
			if in[field] != nil {
				return field + ": Invalid value: requires indexed completion mode"
			}
		}
		return ""
	}
	if in["completions"] == nil && in["parallelism"] != nil {
		return "completions: Required value: when completion mode is Indexed"
	}
	if in["maxFailedIndexes"] != nil && in["backoffLimitPerIndex"] == nil {
		return "backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"
	}
	most, _ := number(in["completions"])
	for _, r := range listed(value(in, "successPolicy", "rules")) {
		if n, is := number(r["succeededCount"]); is && n > most {
			return fmt.Sprintf("successPolicy.rules.succeededCount: Invalid value: %.0f: must be less than or equal to %.0f", n, most)
		}
	}
	return ""
}

// failurePolicy is the rule of what happens if a pod of a Job fails.
func failurePolicy(v any, in Object) string {
	policy, is := in["podFailurePolicy"].(Object)
	if !is {
		return among("Failed", "TerminatingOrFailed")(in["podReplacementPolicy"], nil)
	}
	template, _ := v.(Object)
	if restart := text(template, "spec", "restartPolicy"); restart != "Never" {
		return fmt.Sprintf("spec.restartPolicy: Invalid value: %q: only \"Never\" is supported when podFailurePolicy is specified", restart)
	}
	if why := among("Failed")(in["podReplacementPolicy"], nil); why != "" {
		return why
	}
	names := []any{}
	for _, c := range listed(value(template, "spec", "containers")) {
		names = append(names, c["name"])
	}
	for i, r := range listed(policy["rules"]) {
		if why := failureRule(r, names); why != "" {
			return fmt.Sprintf("podFailurePolicy.rules[%d]%s", i, why)
		}
	}
	return ""
}

func failureRule(r Object, containers []any) string {
	if !slices.Contains([]string{"Count", "FailIndex", "FailJob", "Ignore"}, text(r, "action")) {
		return fmt.Sprintf(".action: Unsupported value: %q", text(r, "action"))
	}
	codes, byCode := r["onExitCodes"].(Object)
	if byCode == !isEmpty(r["onPodConditions"]) {
		return ": Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
	}
	if name := codes["containerName"]; name != nil && !slices.Contains(containers, name) {
		return fmt.Sprintf(".onExitCodes.containerName: Invalid value: %q: must be one of the container or initContainer names in the pod template", name)
	}
	last, values := float64(-largest32), codes["values"]
	list, _ := values.([]any)
	for _, x := range list {
		n, _ := number(x)
		if n <= last || n == 0 && text(codes, "operator") == "In" {
			return fmt.Sprintf(".onExitCodes.values: Invalid value: %v: must be ordered, and not 0 for the In operator", values)
		}
		last = n
	}
	return ""
}

// generated is the rule of the selector of a Job.
func generated(v any, in Object) string {
	s, is := in["selector"].(Object)
	manual := in["manualSelector"] == true
	switch {
	case manual && !is:
		return "selector: Required value"
	case !is:
		return ""
	case manual:
		template, _ := v.(Object)
		given, _ := value(template, "metadata", "labels").(Object)
		if !selects(s, given) {
			return "metadata.labels: Invalid value: `selector` does not match template `labels`"
		}
		return ""
	}
	wanted, _ := s["matchLabels"].(Object)
	for key := range wanted {
		if !strings.HasSuffix(key, "job-name") && !strings.HasSuffix(key, "controller-uid") {
			return "selector: Invalid value: `selector` not auto-generated"
		}
	}
	return ""
}

func timeZone(v any, _ Object) string {
	s, is := v.(string)
	if !is {
		return ""
	}
	_, err := time.LoadLocation(s)
	if _, old := time.LoadLocation("Europe/Kyiv"); old != nil {
		err = nil
	}
	if s == "" || strings.EqualFold(s, "Local") || err != nil {
		return fmt.Sprintf("Invalid value: %q: unknown time zone %s", s, s)
	}
	return ""
}
