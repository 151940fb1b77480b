package ec2_test

import (
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim"
	"github.com/clusterawsadm/clusterawsadm/internal/enginetest"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// otherSubnet returns another subnet of the machine's VPC.
func otherSubnet(s *awssim.State, machine, zone string) string {
	i := s.EC2.Instances[machine]
	for id, n := range s.EC2.Subnets {
		if n.VPC == i.VPC && id != i.Subnet && n.Zone == zone {
			return id
		}
	}
	return ""
}

// A machine whose manifest has an image, zone or subnet must have that one; otherwise any
// value is accepted.
func TestPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := enginetest.Quick(enginetest.Load(t, enginetest.Quickstart, nil))
		a := enginetest.Account(m, 0)
		enginetest.MustApply(t, m, a)
		a.Edit(func(s *awssim.State) {
			for id, i := range s.EC2.Instances {
				i.Subnet, i.Zone, i.Image = otherSubnet(s, id, "us-east-1b"), "us-east-1b", "ami-0123456789abcdef0"
			}
		})
		enginetest.RequireNoChange(t, m, a)
		const node = plan.ID("machine/quickstart-md-0/0")
		spec := &m.Deployments[0].Template.Spec.Template.Spec
		spec.AMI.ID = aws.String("ami-00000000000000000")
		enginetest.RequireRefused(t, m, a, node, "image")
		spec.AMI.ID = nil
		for _, key := range []*string{nil, aws.String("default")} {
			spec.SSHKeyName = key
			a.Edit(func(s *awssim.State) {
				for _, i := range s.EC2.Instances {
					i.Key = "other"
				}
			})
			if key == nil {
				enginetest.RequireNoChange(t, m, a)
			} else {
				enginetest.RequireRefused(t, m, a, node, "key")
			}
			spec.SSHKeyName = nil
		}
		m.Deployments[0].Object.Spec.Template.Spec.FailureDomain = "us-east-1c"
		enginetest.RequireRefused(t, m, a, node, "subnet")
	})
}
