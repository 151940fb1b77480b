package ec2

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// throttle rejects a call that exceeds the rate limit. The classes are those of "Request
// throttling for the Amazon EC2 API": requests to RunInstances have a bucket of 5,
// refilled at 2 per second, and their instances one of 1,000, refilled at 2 per second.
// Each region has its own buckets.
func (svc *Service) throttle(op, region string, in any) error {
	class, size, refill := "EC2 "+op, 100.0, 20.0
	switch {
	case op == "RunInstances":
		size, refill = 5, 2
	case op == "CreateTags":
		size, refill = 100, 10
	case isWrite(op):
		class, size, refill = "EC2 write", 200, 5
	}
	if !svc.Take(region+class, 1, size, refill) {
		return core.Fail("RequestLimitExceeded", "request limit exceeded")
	}
	if run, ok := in.(*ec2.RunInstancesInput); ok && !svc.Take(region+"EC2 instances", float64(aws.ToInt32(run.MaxCount)), 1000, 2) {
		return core.Fail("RequestLimitExceeded", "request limit exceeded")
	}
	return nil
}

func isWrite(op string) bool {
	for _, p := range []string{"Describe", "Get", "List"} {
		if len(op) > len(p) && op[:len(p)] == p {
			return false
		}
	}
	return true
}
