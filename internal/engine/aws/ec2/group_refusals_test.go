package ec2_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// What all machines of a group are refused for is one problem, with the line of the manifest.
func TestRefusalOfAGroupIsOneProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Rewritten(
			t,
			enginetest.Quickstart,
			"\n  replicas: 1\n  selector",
			"\n  replicas: 4\n  selector",
			"      instanceType: t3.large\n      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n",
			"      instanceType: t3.large\n      iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io\n      additionalSecurityGroups: [{id: sg-0a1b2c3d4e5f67890}]\n",
		)
		a := enginetest.Prepared(t, m)
		a.Edit(func(s *awssim.State) {
			s.EC2.SecurityGroups["sg-0a1b2c3d4e5f67890"] = &awssim.SecurityGroup{
				Thing: awssim.Thing{ID: "sg-0a1b2c3d4e5f67890"},
				VPC:   "vpc-00000000000000009",
				Name:  "elsewhere",
			}
		})
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		var refused *plan.RefusedError
		require.ErrorAs(t, err, &refused)
		assert.Len(t, refused.Reasons, 1)
		assert.Equal(t, 1, strings.Count(err.Error(), "the security group sg-0a1b2c3d4e5f67890 is in the VPC"), err)
		assert.Contains(t, err.Error(), "spec.template.spec.additionalSecurityGroups[0].id")
	})
}

// A security group without outbound rules is a conflict, and the error has the command that adds a rule: machines in the group reach neither
// image registries nor the API server.
func TestGroupWithoutOutboundRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.LoadQuick(t, enginetest.Quickstart)
		a := enginetest.Prepared(t, m)
		enginetest.MustApply(t, m, a)
		var id string
		a.Edit(func(s *awssim.State) {
			for _, g := range s.EC2.SecurityGroups {
				if strings.HasSuffix(g.Name, "-node") {
					id, g.Egress = g.ID, nil
				}
			}
		})
		_, err := enginetest.Open(m, a.Process()).Plan(t.Context())
		require.ErrorAs(t, err, new(*plan.RefusedError))
		require.ErrorContains(t, err, "aws ec2 authorize-security-group-egress --group-id "+id+" --ip-permissions")
		enginetest.MustDelete(t, m, a)
	})
}
