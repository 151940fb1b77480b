package loader

import (
	"cmp"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/manifest"
	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// noFlowLogs is the value of the annotation flow-logs that deletes a flow log.
const noFlowLogs = "none"

// The formats of names: LogGroupName in the API reference of CloudWatch Logs, LogDestination of
// CreateFlowLogs in that of EC2, and RoleArn in that of IAM.
const (
	logGroupName   = `^[\w./#-]{1,512}$`
	logBucketARN   = `^arn:[\w-]+:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?$`
	flowLogRoleARN = `^arn:[\w-]+:iam::\d{12}:role/[\w+=,.@/-]+$`
)

// flowLogs returns the flow log of the VPC; nil if the annotations ask for none.
func (l *loader) flowLogs(o *manifest.Entry) *manifest.FlowLogs {
	to, set := o.Annotation(manifest.AnnotationFlowLogs)
	role, hasRole := o.Annotation(manifest.AnnotationFlowLogsRole)
	traffic := l.choice(o, manifest.AnnotationFlowLogsTraffic)
	switch {
	case !set && (hasRole || traffic != ""):
		given := manifest.AnnotationFlowLogsTraffic
		if hasRole {
			given = manifest.AnnotationFlowLogsRole
		}
		l.fail(
			o.ProblemOf(
				manifest.OwnAnnotations+given,
				"there is no annotation "+manifest.OwnAnnotations+manifest.AnnotationFlowLogs,
				"set it to the destination of the flow log, or remove the others",
			),
		)
		return nil
	case !set:
		return nil
	case to == noFlowLogs:
		return &manifest.FlowLogs{Removed: true}
	case l.cluster.External:
		l.fail(o.AnnotationProblem(manifest.AnnotationFlowLogs, "the infrastructure is managed externally, and no run changes its VPC", "remove it"))
	}
	f := &manifest.FlowLogs{Role: role, Traffic: cmp.Or(traffic, "ALL")}
	if strings.HasPrefix(to, "arn:") {
		f.Bucket = to
		if !regex.Of(logBucketARN).MatchString(to) {
			l.fail(o.AnnotationProblem(manifest.AnnotationFlowLogs, "it is not the ARN of a bucket",
				"set it to one, such as arn:aws:s3:::my-logs, or to the name of a group of CloudWatch Logs"))
		}
		if hasRole {
			l.fail(o.AnnotationProblem(manifest.AnnotationFlowLogsRole, "a flow log with a bucket takes no role", "remove it"))
		}
		return f
	}
	f.LogGroup = to
	if !regex.Of(logGroupName).MatchString(to) {
		l.fail(o.AnnotationProblem(manifest.AnnotationFlowLogs, "CloudWatch Logs has no such name", "use letters, digits and . - _ / #, at most 512"))
	}
	switch {
	case !hasRole:
		l.fail(
			o.ProblemOf(
				manifest.OwnAnnotations+manifest.AnnotationFlowLogs,
				"a flow log in a group of CloudWatch Logs needs the annotation "+manifest.OwnAnnotations+manifest.AnnotationFlowLogsRole,
				"set it to the role with which AWS writes to the group, such as arn:aws:iam::123456789012:role/flow-logs",
			),
		)
	case !regex.Of(flowLogRoleARN).MatchString(role):
		l.fail(o.AnnotationProblem(manifest.AnnotationFlowLogsRole, "it is not the ARN of a role",
			"set it to that of the role with which AWS writes to the group, such as arn:aws:iam::123456789012:role/flow-logs"))
	}
	return f
}
