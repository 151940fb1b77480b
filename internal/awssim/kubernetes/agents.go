package kubernetes

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ec2"
	"github.com/clusterawsadm/clusterawsadm/internal/awssim/ssm"
)

// Agents lists the instances as Systems Manager sees them.
func (svc *Service) Agents() (all []ssm.Machine) {
	for i := range svc.EC2.Instances() {
		if s := i.State(svc.Now()); s != types.InstanceStateNameTerminated && s != types.InstanceStateNameShuttingDown {
			all = append(
				all,
				ssm.Machine{
					ID:      i.ID,
					IP:      svc.address(i, ""),
					Reports: s == types.InstanceStateNameRunning && i.Boot != nil && svc.manages(i) && svc.EC2.ReachesAWS(i, "ssm"),
				},
			)
		}
	}
	return all
}

// manages reports whether the role of an instance lets the agent get commands: it has AWS's policy
// for that. The roles of Cluster API have a part of it, which is enough for agents from version
// 3.3.40 on; older ones also need ec2messages ("ec2messages and other API operations", Systems
// Manager user guide). Here no agent is that new. All images have an agent.
func (svc *Service) manages(i *ec2.Instance) bool {
	name := svc.IAM.ProfileRole(i.Profile)
	if name == "" {
		return false
	}
	r, err := svc.IAM.Role(&name)
	return err == nil && slices.ContainsFunc(r.Attached, func(arn string) bool { return strings.HasSuffix(arn, ":iam::aws:policy/AmazonSSMManagedInstanceCore") })
}
