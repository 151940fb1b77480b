package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"

	"github.com/clusterawsadm/clusterawsadm/pkg/plan"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
)

// observer records what a run waits for.
func observer(waiting *[]string) func(plan.Event) {
	return func(e plan.Event) {
		if e.What == plan.Waiting {
			*waiting = append(*waiting, fmt.Sprintf("%s: %s", e.Resource, e.Detail))
		}
	}
}

// A load balancer of somebody else that appears in the cluster's VPC during the deletion
// prevents the deletion of the VPC: the deletion reports its name, while it waits and when
// it fails. After it is removed, the next run completes the deletion.
func TestDeletionNamesWhatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, threeZones, nil))
		a := account(m, lag)
		mustApply(t, m, a)
		x := insiderOf(t, a, m)
		x.tags = map[string]string{"team": "web"}
		x.groups = nil
		p, made := a.Process(), false
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "TerminateInstances" && !made {
				made = true
				x.service("a0123")
			}
			return awssim.None
		}
		var waiting []string
		_, err := open(m, p).Delete(t.Context(), cluster.Options{Observe: observer(&waiting)})
		require.ErrorAs(t, err, new(*plan.LeftoverError))
		require.ErrorContains(t, err, "classic-load-balancer a0123")
		require.True(t, slices.ContainsFunc(waiting, func(w string) bool { return strings.Contains(w, "ELB a0123") }), "%v", waiting)

		_, err = elb.NewFromConfig(a.Config()).DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerName: aws.String("a0123")})
		require.NoError(t, err)
		_, err = open(m, a.Process()).Delete(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "k8s-elb-a0123")
		a.Edit(func(s *awssim.State) {
			for id, g := range s.EC2.SecurityGroups {
				if strings.HasPrefix(g.Name, "k8s-elb-a0123") {
					delete(s.EC2.SecurityGroups, id)
				}
			}
		})
		mustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}

// A free network interface that a CNI has left behind is deleted with the cluster.
func TestDeletionSweepsInterfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quick(load(t, threeZones, nil))
		a := account(m, lag)
		mustApply(t, m, a)
		x := insiderOf(t, a, m)
		_, err := ec2.NewFromConfig(a.Config()).CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{
			SubnetId: &x.subnet, Groups: x.groups[:1], Description: aws.String("aws-K8S-i-0123"),
		})
		require.NoError(t, err)
		mustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}
