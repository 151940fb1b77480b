package ec2_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/aws/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/engine/run"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/cluster"
)

// Machines that are stopped cost their volumes only, and run again after a start. One that somebody terminates costs
// nothing, and a stop and a start leave it out.
func TestStopAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Sized(t, 1, 2)
		a := enginetest.Alive(t, m)
		power := func() *run.Cluster {
			p := a.Process()
			return run.OpenByName(m.Name, cluster.Target{Config: p.Config(), Owner: "test", Transport: enginetest.Transport(p), Cost: true})
		}
		states := func() map[string]int {
			n := map[string]int{}
			a.Edit(func(s *awssim.State) {
				for _, i := range s.EC2.Instances {
					n[string(i.State(time.Now()))]++
				}
			})
			return n
		}
		all, err := power().PlanStop(t.Context())
		require.NoError(t, err)
		enginetest.Terminate(a, "machine/"+m.Deployments[0].Object.Name+"/1", 3*time.Hour)
		time.Sleep(time.Minute)
		planned, err := power().PlanStop(t.Context())
		require.NoError(t, err)
		assert.Less(t, planned.Cost.Before, all.Cost.Before, "a machine that is terminated is not paid for")
		assert.Less(t, planned.Cost.After, all.Cost.After, "nor are its volumes")
		_, err = power().Stop(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"stopped": 2, "shutting-down": 1}, states())
		started, err := power().Start(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"running": 2, "shutting-down": 1}, states())
		assert.InDelta(t, planned.Cost.After, started.Plan.Cost.Before, 1e-9)
		again, err := power().Start(t.Context(), cluster.Options{})
		require.NoError(t, err)
		assert.True(t, again.Plan.Empty(), "%v", enginetest.Steps(again.Plan))
	})
}

// AWS counts the rules of a group for IPv4 and for IPv6 separately, and those that refer to a group in both.
func TestNumberOfRules(t *testing.T) {
	k := enginetest.NewFixture(t)
	vpc, group := k.VPC(), k.Group("node")
	k.Observe()
	rule := func(r ec2.IngressRule, port int32) ec2.IngressRule {
		r.Protocol, r.First, r.Last = "tcp", port, port
		return r
	}
	v4, v6 := ec2.IngressRule{CIDR: "10.0.0.0/8"}, ec2.IngressRule{CIDR: "2001:db8::/32"}
	ofVPC, ofVPC6, peers := ec2.IngressRule{VPC: vpc}, ec2.IngressRule{VPC: vpc, IPv6: true}, ec2.IngressRule{From: group}
	count := func(rules ...ec2.IngressRule) (n int) {
		for _, x := range ec2.Kinds() {
			if x.Quota != nil && x.Quota.Takes != nil {
				taken, _ := x.Quota.Takes(&ec2.SecurityGroupRules{Group: group, Rules: rules})
				n = max(n, taken)
			}
		}
		return n
	}
	for _, tt := range []struct {
		rules []ec2.IngressRule
		want  int
	}{
		{[]ec2.IngressRule{rule(v4, 1)}, 1},
		{[]ec2.IngressRule{rule(v4, 1), rule(v4, 1)}, 1},
		{[]ec2.IngressRule{rule(v4, 1), rule(v4, 2)}, 2},
		{[]ec2.IngressRule{rule(v4, 1), rule(v6, 2)}, 1},
		{[]ec2.IngressRule{rule(v4, 1), rule(ofVPC, 2)}, 2},
		{[]ec2.IngressRule{rule(v6, 1), rule(ofVPC, 2)}, 1},
		{[]ec2.IngressRule{rule(v6, 1), rule(ofVPC6, 2)}, 2},
		{[]ec2.IngressRule{rule(v4, 1), rule(ofVPC6, 2)}, 1},
		{[]ec2.IngressRule{rule(v4, 1), rule(v6, 2), rule(peers, 3)}, 2},
	} {
		assert.Equal(t, tt.want, count(tt.rules...), "%v", tt.rules)
	}
}
