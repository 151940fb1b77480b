package teardown

import (
	"slices"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"

	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/elb"
)

// CAPA's annotations of an AWSCluster or AWSManagedControlPlane about resources that
// controllers in the cluster created.
const (
	CollectAnnotation      = infrav1.ExternalResourceGCAnnotation      // "false": they are not deleted
	CollectTasksAnnotation = infrav1.ExternalResourceGCTasksAnnotation // which kinds are deleted, separated by commas; absent: all
)

// Collects reports whether resources of a kind that controllers in the cluster created are
// deleted with it.
func Collects(annotations map[string]string, kind string) bool {
	task := infrav1.GCTask(kind)
	if kind == elb.ClassicLoadBalancerKind {
		task = infrav1.GCTaskLoadBalancer // it is the task of load balancers of all types
	}
	if !slices.Contains([]infrav1.GCTask{infrav1.GCTaskLoadBalancer, infrav1.GCTaskTargetGroup, infrav1.GCTaskSecurityGroup}, task) {
		return true // the annotations are about these kinds only
	}
	tasks := annotations[CollectTasksAnnotation]
	return annotations[CollectAnnotation] != "false" && (tasks == "" || slices.Contains(strings.Split(tasks, ","), string(task)))
}
