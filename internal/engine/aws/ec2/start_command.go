package ec2

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// IsStopping reports whether the machine is stopping: EC2 starts it only when it has stopped ("Instance state changes", EC2 user guide).
func (s InstanceState) IsStopping() bool { return s.Status == string(types.InstanceStateNameStopping) }

// StartCommand returns the command that starts stopped machines, after those that are still stopping have stopped. Without a region, the command
// uses that of the caller's configuration.
func StartCommand(region string, machines ...InstanceState) string {
	options := ""
	if region != "" {
		options = " --region " + region
	}
	var all, stopping []string
	for _, m := range machines {
		all = append(all, m.ID)
		if m.IsStopping() {
			stopping = append(stopping, m.ID)
		}
	}
	slices.Sort(all)
	slices.Sort(stopping)
	start := "aws ec2 start-instances" + options + " --instance-ids " + strings.Join(all, " ")
	if len(stopping) == 0 {
		return start
	}
	return "aws ec2 wait instance-stopped" + options + " --instance-ids " + strings.Join(stopping, " ") + " && " + start
}
