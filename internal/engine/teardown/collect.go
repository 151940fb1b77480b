package teardown

import (
	"slices"
	"strings"
)

// CAPA's annotations of an AWSCluster or AWSManagedControlPlane about resources that
// controllers in the cluster created.
const (
	CollectAnnotation      = "aws.cluster.x-k8s.io/external-resource-gc"       // "false": they are not deleted
	CollectTasksAnnotation = "aws.cluster.x-k8s.io/external-resource-tasks-gc" // which kinds are deleted, separated by commas; absent: all
)

// Collects reports whether resources of a kind that controllers in the cluster created are
// deleted with it.
func Collects(annotations map[string]string, kind string) bool {
	collected := []string{"load-balancer", "target-group", "security-group"}
	if !slices.Contains(collected, kind) {
		return true // the annotations are about these kinds only
	}
	tasks := annotations[CollectTasksAnnotation]
	return annotations[CollectAnnotation] != "false" && (tasks == "" || slices.Contains(strings.Split(tasks, ","), kind))
}
