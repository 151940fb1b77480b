package manifest

import "cmp"

// FlowLogs says where the flow log of the VPC sends its records. Either LogGroup and Role are set,
// or Bucket, or Removed.
type FlowLogs struct {
	LogGroup string // name of a group of CloudWatch Logs
	Role     string // ARN of the role with which AWS writes to the group
	Bucket   string // ARN of a bucket of S3, and a folder in it: "arn:aws:s3:::logs/prod/"
	Traffic  string // ALL, ACCEPT or REJECT
	Removed  bool   // a flow log that an earlier run has created is deleted
}

// Annotations returns the annotations from which a manifest has the flow log.
func (f FlowLogs) Annotations() map[string]any {
	out := map[string]any{OwnAnnotations + AnnotationFlowLogs: cmp.Or(f.Bucket, f.LogGroup)}
	if f.Role != "" {
		out[OwnAnnotations+AnnotationFlowLogsRole] = f.Role
	}
	if f.Traffic != "ALL" {
		out[OwnAnnotations+AnnotationFlowLogsTraffic] = f.Traffic
	}
	return out
}
