package teardown_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
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
		m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		x := enginetest.InsiderOf(t, a, m)
		x.Tags = map[string]string{"team": "web"}
		x.Groups = nil
		p, made := a.Process(), false
		p.Fault = func(_ int, _, op string) awssim.Fault {
			if op == "TerminateInstances" && !made {
				made = true
				x.Service("a0123")
			}
			return awssim.None
		}
		var waiting []string
		_, err := enginetest.Open(m, p).Delete(t.Context(), cluster.Options{Observe: observer(&waiting)})
		require.ErrorAs(t, err, new(*plan.LeftoverError))
		require.ErrorContains(t, err, "classic-load-balancer a0123")
		require.True(t, slices.ContainsFunc(waiting, func(w string) bool { return strings.Contains(w, "ELB a0123") }), "%v", waiting)

		_, err = elb.NewFromConfig(a.Config()).DeleteLoadBalancer(t.Context(), &elb.DeleteLoadBalancerInput{LoadBalancerName: aws.String("a0123")})
		require.NoError(t, err)
		_, err = enginetest.Open(m, a.Process()).Delete(t.Context(), cluster.Options{})
		require.ErrorContains(t, err, "k8s-elb-a0123")
		a.Edit(func(s *awssim.State) {
			for id, g := range s.EC2.SecurityGroups {
				if strings.HasPrefix(g.Name, "k8s-elb-a0123") {
					delete(s.EC2.SecurityGroups, id)
				}
			}
		})
		enginetest.MustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}

// A free network interface that a CNI has left behind is deleted with the cluster.
func TestDeletionSweepsInterfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.ThreeZones, nil))
		a := enginetest.Account(m, enginetest.Lag)
		enginetest.MustApply(t, m, a)
		x := enginetest.InsiderOf(t, a, m)
		_, err := ec2.NewFromConfig(a.Config()).CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{
			SubnetId: &x.Subnet, Groups: x.Groups[:1], Description: aws.String("aws-K8S-i-0123"),
		})
		require.NoError(t, err)
		enginetest.MustDelete(t, m, a)
		require.Empty(t, a.Inventory())
	})
}
