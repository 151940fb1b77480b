package ssm

import "github.com/clusterawsadm/clusterawsadm/internal/awssim/core"

// throttle rejects a call that exceeds the throughput of Parameter Store: 3 writes a second, and 40 reads of all kinds
// together ("AWS Systems Manager endpoints and quotas", the standard throughput; "How do I prevent ThrottlingException
// errors when I use Parameter Store", AWS re:Post). AWS does not say how large its buckets are: these hold one second.
// Each region has its own.
func (svc *Service) throttle(op, region string, _ any) error {
	const writes, reads = 3.0, 40.0
	class, rate := "", 0.0
	switch op {
	case "PutParameter":
		class, rate = "SSM write", writes
	case "GetParameter", "GetParameters", "GetParametersByPath":
		class, rate = "SSM read", reads
	default:
		return nil
	}
	if !svc.Take(region+class, 1, rate, rate) {
		return core.Fail("ThrottlingException", "Rate exceeded")
	}
	return nil
}
